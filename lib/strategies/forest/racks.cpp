// SPDX-License-Identifier: Apache-2.0
#include "strategies/forest/racks.hpp"

#include "strategies/least.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace reckon {
namespace {

/// A plan lists all ranks of each tree. More would be an unwieldy plan.
constexpr std::size_t k_most_entries = 1U << 18U;

struct Rack {
  std::string name;
  std::vector<std::size_t> workers;
  std::vector<std::size_t> servers; ///< ranks that only serve
  std::vector<std::size_t> both;    ///< workers that may sum
  double share = 0;                 ///< of the gradient, what is summed here for all racks
  [[nodiscard]] const std::vector<std::size_t>& sums() const {
    return servers.empty() ? both : servers;
  }
};

std::vector<Rack> racks_of(const CostModel& model) {
  std::vector<Rack> racks(model.racks().size());
  for (std::size_t r = 0; r < model.ranks().size(); ++r) {
    const RankModel& rank = model.ranks()[r];
    Rack& rack = racks[model.rack_of()[r]];
    rack.name = rank.rack;
    if (rank.worker) {
      rack.workers.push_back(r);
    }
    if (rank.server) {
      (rank.worker ? rack.both : rack.servers).push_back(r);
    }
  }
  return racks;
}

/// By equation 8.
void share_out(std::vector<Rack>& racks, const StarShares& shares) {
  auto worker = shares.worker_bytes.begin(), server = shares.server_bytes.begin();
  for (Rack& rack : racks) {
    rack.share = rack.workers.empty() ? *server++ : *worker++;
  }
}

/// Cuts a rack's share at every end of one of its ranks' shares, of all racks: in each piece one
/// rank sums in each rack. The ends, in (0, 1].
std::vector<double> pieces(const std::vector<Rack>& racks) {
  std::vector<double> ends;
  for (const Rack& rack : racks) {
    for (std::size_t i = 1; i <= rack.sums().size(); ++i) {
      ends.push_back(static_cast<double>(i) / static_cast<double>(rack.sums().size()));
    }
  }
  std::ranges::sort(ends);
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  return ends;
}

} // namespace

RackTrees trees_over_racks(const CostModel& model) {
  RackTrees out;
  std::vector<Rack> racks = racks_of(model);
  out.racks = static_cast<std::size_t>(
      std::ranges::count_if(racks, [](const Rack& rack) { return !rack.workers.empty(); }));
  if (model.one_machine()) {
    out.reason = "all ranks are on one machine";
    return out;
  }
  for (const Rack& rack : racks) {
    if (rack.sums().empty()) {
      out.reason = fmt::format("rack '{}' has no rank that may sum", rack.name);
      return out;
    }
  }
  if (out.racks < 2) {
    out.reason = model.racks().front().empty() ? "the profile knows no racks"
                                               : "all workers are in one rack";
    return out;
  }
  const StarSplit split = solve_star_split(star_of_racks(model, 1));
  out.uplink_part = std::ranges::max(split.traffic.worker_port_bytes);
  share_out(racks, split.shares);
  constexpr double k_no_share = 1e-9; // what rounding leaves
  const auto roots = static_cast<std::size_t>(
      std::ranges::count_if(racks, [](const Rack& rack) { return rack.share > k_no_share; }));
  const std::vector<double> ends = pieces(racks);
  const std::size_t ranks = model.ranks().size(), trees = roots * ends.size();
  if (trees * ranks > k_most_entries) {
    out.reason = fmt::format("its {} trees over {} ranks are more than a plan lists; where one "
                             "machine of each rack only serves, there is a tree a rack",
                             trees, ranks);
    return out;
  }
  for (const Rack& root_rack : racks) {
    if (root_rack.share <= k_no_share) {
      continue;
    }
    double begin = 0;
    for (const double end : ends) {
      const auto sums_in = [&](const Rack& rack) {
        const auto count = static_cast<double>(rack.sums().size());
        return static_cast<std::int64_t>(
            rack.sums()[static_cast<std::size_t>((begin + end) / 2 * count)]);
      };
      const std::int64_t root = sums_in(root_rack);
      SumTree& tree = out.trees.emplace_back();
      tree.scheme = fmt::format("racks to rank {}", root);
      tree.share = (end - begin) * root_rack.share;
      tree.up.assign(ranks, -1);
      tree.up[static_cast<std::size_t>(root)] = root;
      for (const Rack& rack : racks) {
        if (rack.workers.empty()) {
          continue;
        }
        const std::int64_t sums = sums_in(rack);
        for (const std::size_t worker : rack.workers) {
          tree.up[worker] = sums;
        }
        tree.up[static_cast<std::size_t>(sums)] = root;
      }
      tree.down = tree.up;
      begin = end;
    }
  }
  return out;
}

} // namespace reckon
