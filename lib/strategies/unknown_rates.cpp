// SPDX-License-Identifier: Apache-2.0
#include "strategies/unknown_rates.hpp"

#include "core/name_ranges.hpp"
#include "documents/cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace reckon {
namespace {

bool is_processor(const TopologyObject& object) {
  return object.kind == ObjectKind::package || object.kind == ObjectKind::numa_node;
}
/// Each where it stands first.
std::vector<std::string> once(const std::vector<std::string>& names) {
  std::vector<std::string> out;
  for (const std::string& name : names) {
    if (std::find(out.begin(), out.end(), name) == out.end()) {
      out.push_back(name);
    }
  }
  return out;
}
/// The way to a host bridge, and that between a package or a NUMA node that has no like and what
/// it is in: between several such it is the way from one to another.
bool is_inside_processor(const Topology& topology, const TopologyObject& a,
                         const TopologyObject& b) {
  if (a.kind == ObjectKind::host_bridge || b.kind == ObjectKind::host_bridge) {
    return true;
  }
  const TopologyObject& inner = a.parent == b.id ? a : b;
  const TopologyObject& outer = a.parent == b.id ? b : a;
  return inner.parent == outer.id &&
         (inner.kind == ObjectKind::package || inner.kind == ObjectKind::numa_node) &&
         std::ranges::count_if(topology.objects, [&](const TopologyObject& o) {
           return o.kind == inner.kind && o.parent == outer.id;
         }) == 1;
}
/// The objects at the ends of a link, "gpu0 > sw" of any of the machines.
std::pair<const TopologyObject*, const TopologyObject*>
ends_of(const Profile& profile, const Network& network, std::string_view link) {
  constexpr std::string_view k_to = " > ";
  const std::size_t at = link.find(k_to);
  if (at == std::string_view::npos) {
    return {};
  }
  for (const NetworkMachine& one : network.machines) {
    const std::string& machine = one.group;
    const auto object = [&](std::string_view name) {
      return profile.topology.find(name == machine ? machine : fmt::format("{}/{}", machine, name));
    };
    const TopologyObject* const a = object(link.substr(0, at));
    const TopologyObject* const b = object(link.substr(at + k_to.size()));
    if (a != nullptr && b != nullptr) {
      return {a, b};
    }
  }
  return {};
}
std::string listed(const std::vector<std::string>& all) {
  return first_names(all, 4);
}

} // namespace

std::vector<std::string> unknown_rates(const Profile& profile, const Places& places) {
  const Network& network = *places.network;
  std::vector<std::string> links, children, ports, other, memories, gpus;
  for (const std::string& name : once(network.unknown)) { // machines may be alike
    const auto [a, b] = ends_of(profile, network, name);
    if (a == nullptr || b == nullptr) {
      other.push_back(name);
    } else if (is_inside_processor(profile.topology, *a, *b)) {
      continue;
    } else if ((a->parent == b->id || b->parent == a->id) && !is_processor(*a) &&
               !is_processor(*b)) {
      children.push_back((a->parent == b->id ? a : b)->id);
      ports.push_back(name);
    } else {
      links.push_back(name);
    }
  }
  for (const std::size_t endpoint : places.of_rank) {
    const Place& e = network.places[endpoint];
    if (network.add[endpoint].empty()) {
      (e.memory ? memories : gpus).push_back(network.name_of(endpoint));
    }
  }
  std::ranges::sort(children);
  children.erase(std::unique(children.begin(), children.end()), children.end());
  std::vector<std::string> out;
  const auto say = [&](const std::string& of, const std::string& remedy) {
    out.push_back(
        fmt::format("{}{}, so they count as unlimited, and the prediction may be much too "
                    "low: {}",
                    k_no_rate, of, remedy));
  };
  if (!links.empty()) {
    say(listed(links),
        "say it in topology.links, as the bytes_per_second of an entry between the two");
  }
  if (!children.empty()) {
    say(listed(ports),
        fmt::format("give {} in topology.objects a pcie_bytes_per_second", listed(children)));
  }
  if (!memories.empty()) {
    say(fmt::format("the memory and sums of {}", listed(memories)),
        fmt::format("add {}, {} or {} cells", k_stream_copy, k_memory_read, k_reduce_sum));
  }
  if (!other.empty()) {
    say(listed(other), "`reckon probe` on the machine measures them");
  }
  if (!network.at_least.empty()) {
    out.push_back(fmt::format(
        "each GPU sends and receives at most as fast as the fastest copy that was measured of it "
        "({}): what it moves to several at once is not known. Give the rates of its links: `reckon "
        "import --merge` onto a profile of the machine's topology, or `reckon probe` there",
        listed(once(network.at_least))));
  }
  if (!gpus.empty() && sums(network.collective)) {
    out.push_back(fmt::format("sums on {} take no time: the profile has no {} with \"from\" one of "
                              "them and 2 \"sources\"",
                              first_names(name_ranges(gpus), 4), k_gpu_reduce));
  }
  return out;
}

} // namespace reckon
