// SPDX-License-Identifier: Apache-2.0
#include "compare/follow.hpp"

#include "documents/cells.hpp"
#include "documents/contention.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <span>
#include <string_view>

namespace reckon {
namespace {

using Cases = std::span<const std::string_view>;

constexpr std::array<std::string_view, 2> k_ports{k_port_bandwidth, k_single_port};
constexpr std::array<std::string_view, 10> k_pass_ports{
    k_rail_bandwidth,   k_pair_bandwidth,    k_pair_write, k_fan_in,
    k_fan_out,          k_fabric_write,      k_uplink,     k_bisection_by_order,
    k_bisection_random, k_bisection_by_racks};
constexpr std::array<std::string_view, 1> k_processors{k_processor_loop};
constexpr std::array<std::string_view, 2> k_memories{k_stream_copy, k_stream_add};
constexpr std::array<std::string_view, 12> k_use_memory{
    k_numa_copy,    k_numa_read,      k_numa_write,       k_link_bandwidth,
    k_host_memcpy,  k_reduce_sum,     k_rehearsal,        k_sum_in_place,
    k_sum_and_send, k_optimizer_step, k_fabric_aggregate, k_contention_communication};
constexpr std::array<std::string_view, 17> k_use_processors{k_stream_copy,
                                                            k_stream_add,
                                                            k_numa_copy,
                                                            k_numa_read,
                                                            k_numa_write,
                                                            k_host_memcpy,
                                                            k_reduce_sum,
                                                            k_rehearsal,
                                                            k_sum_in_place,
                                                            k_sum_and_send,
                                                            k_optimizer_step,
                                                            k_fabric_latency,
                                                            k_fabric_write,
                                                            k_fabric_aggregate,
                                                            k_memory_latency,
                                                            k_contention_compute,
                                                            k_contention_communication};

/// Differences that explain others of the same machine, those that explain most first.
struct Layer {
  Cases cases;     ///< none: facts of the topology
  Cases followers; ///< of the topology besides those: cells of the object
};
constexpr std::array<Layer, 4> k_layers{{{{}, k_ports},
                                         {k_ports, k_pass_ports},
                                         {k_processors, k_use_processors},
                                         {k_memories, k_use_memory}}};

bool among(Cases cases, const std::string& test) {
  return std::find(cases.begin(), cases.end(), test) != cases.end();
}

/// The first layer that it explains others in; k_layers.size(): none.
std::size_t layer_of(const Difference& d) {
  if (d.group == "topology" || d.group == "machines") {
    return 0;
  }
  const auto* const it = std::find_if(k_layers.begin() + 1, k_layers.end(),
                                      [&](const Layer& l) { return among(l.cases, d.group); });
  return static_cast<std::size_t>(it - k_layers.begin());
}

class Follow {
public:
  explicit Follow(const std::map<std::string, std::string>& set_of) : m_set_of(set_of) {}

  [[nodiscard]] bool follows(const Difference& d, const Difference& root) const {
    if ((d.kind != "latency" && d.kind != "bandwidth") || d.effect != root.effect) {
      return false;
    }
    const Layer& layer = k_layers[layer_of(root)];
    const bool follower = among(layer.followers, d.group) && on_machine_of(d, root);
    if (layer.cases.empty()) {
      return follower || std::any_of(d.places.begin(), d.places.end(), [&](const auto& place) {
               return place.find('/') != std::string::npos &&
                      std::find(root.places.begin(), root.places.end(), place) != root.places.end();
             });
    }
    constexpr double k_further = 1.25;
    const auto x = speed_of(d), y = speed_of(root);
    return follower && x && y &&
           std::abs(std::log(*x)) <= std::abs(std::log(*y)) + std::log(k_further);
  }

private:
  [[nodiscard]] std::string machine_of(const std::string& place) const {
    const std::string machine = place.substr(0, place.find('/'));
    const auto set = m_set_of.find(machine);
    return set == m_set_of.end() ? machine : set->second;
  }
  /// What names no machine is about all of them.
  [[nodiscard]] bool on_machine_of(const Difference& d, const Difference& root) const {
    return d.places.empty() || std::any_of(d.places.begin(), d.places.end(), [&](const auto& x) {
             return std::any_of(root.places.begin(), root.places.end(),
                                [&](const auto& y) { return machine_of(x) == machine_of(y); });
           });
  }

  const std::map<std::string, std::string>& m_set_of;
};

} // namespace

std::optional<double> speed_of(const Difference& d) {
  if (!d.before.number || !d.after.number || *d.before.number <= 0 || *d.after.number <= 0) {
    return std::nullopt;
  }
  return d.before.unit == k_seconds ? *d.before.number / *d.after.number
                                    : *d.after.number / *d.before.number;
}

void tell_what_follows(Comparison& comparison, const std::map<std::string, std::string>& set_of) {
  const Follow follow(set_of);
  auto& all = comparison.differences;
  const std::size_t known = all.size();
  for (std::size_t layer = 0; layer < k_layers.size(); ++layer) {
    std::vector<Difference> roots;
    std::copy_if(
        all.begin(), all.begin() + static_cast<std::ptrdiff_t>(known), std::back_inserter(roots),
        [&](const Difference& d) { return layer_of(d) == layer && d.effect != Effect::neutral; });
    for (const Difference& root : roots) {
      const std::string& from = root.follows_from.empty() ? root.where : root.follows_from;
      for (Difference& d : all) {
        if (d.follows_from.empty() && layer_of(d) > layer && follow.follows(d, root)) {
          d.follows_from = from;
        }
      }
      for (Difference& d : comparison.undecided) {
        if (layer_of(d) > layer && follow.follows(d, root)) {
          d.follows_from = from;
          all.push_back(d);
        }
      }
      std::erase_if(comparison.undecided,
                    [](const Difference& d) { return !d.follows_from.empty(); });
    }
  }
  const auto rank = [](const Difference& d) {
    return d.follows_from.empty() ? layer_of(d) : k_layers.size() + 1;
  };
  std::stable_sort(all.begin(), all.end(),
                   [&](const Difference& a, const Difference& b) { return rank(a) < rank(b); });
}

} // namespace reckon
