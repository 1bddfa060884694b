// SPDX-License-Identifier: Apache-2.0
#include "strategies/forest/search.hpp"

#include "core/units.hpp"
#include "documents/cells.hpp"
#include "strategies/forest/cutting.hpp"
#include "strategies/parts.hpp"
#include "strategies/provenance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

namespace reckon {
namespace {

/// Of more writes plays have the beginnings: of the search, in half parts, which are fewer events.
constexpr double k_most_writes = 150'000;
constexpr PlayEffort k_played{k_most_writes, 2 * k_most_writes, true};
/// Of all parts: in the play that compares forests, and of the smallest parts that are tried.
constexpr double k_first_writes = 200'000, k_smallest_writes = 2'000'000;
/// More parts would be an unwieldy plan.
constexpr double k_most_parts = 25'000;
/// Windows to begin and to end with, in lives of a part.
constexpr double k_first_window = 4, k_widest_window = 64;
/// Wider ones in a row that do not help, after which none is tried.
constexpr int k_most_failed = 2;
/// Every part of a window has a slot at each child's parent: more would be memory without use.
constexpr double k_most_under_way = 1024;

/// Whether a network knows more of a way than rates.
bool knows_cost(const PlayNetwork& network, std::size_t from, std::size_t to) {
  return network.latency_of(from, to) > 0 || network.write_overhead_s > 0 ||
         std::ranges::any_of(network.paths[from][to], [&](std::uint32_t station) {
           return station < network.station_busy.size() && !network.station_busy[station].empty();
         });
}

/// Puts whole parts into another order.
void reorder(Parts& parts, const std::vector<std::size_t>& order) {
  for (std::vector<std::uint64_t>* const column :
       {&parts.offset_bytes, &parts.bytes, &parts.server, &parts.lane, &parts.tree}) {
    const std::vector<std::uint64_t> before = *column;
    for (std::size_t i = 0; i < before.size(); ++i) {
      (*column)[i] = before[order[i]];
    }
  }
}

constexpr double k_long = 1U << 20U; // bytes

} // namespace

void LeastPart::add(std::size_t from, std::size_t to) {
  m_all_known = m_all_known && knows_cost(m_network, from, to);
  m_slowest_s = std::max(m_slowest_s, m_network.write_seconds(from, to, k_long));
}

double LeastPart::bytes() const {
  return !m_all_known && m_slowest_s > 0 ? k_assumed_write_s * k_long / m_slowest_s : 0;
}

std::string assumed_write(double least_bytes) {
  return least_bytes > 0
             ? fmt::format("writes cost nothing besides their bytes: the profile has neither {} "
                           "nor {} of ways that this plan uses; parts are at least {}, so that a "
                           "write that costs {} takes at most half of a part's time",
                           k_pair_write, k_pair_latency,
                           to_text(Bytes(static_cast<std::uint64_t>(least_bytes))),
                           to_text(Seconds(k_assumed_write_s)))
             : "";
}

Plan TreeSearch::first(const Plan& base) const {
  Cut parts = cut(base, part_sizes(base, k_first_writes).front());
  predict(parts.plan, m_job, m_ways, window(parts, 4 * k_first_window), k_played);
  return std::move(parts.plan);
}

/// Smaller parts fill less, until what each write costs tells: from the smallest that can be played
/// on up, until that takes longer. The window is looked for with the smallest: of all the narrowest
/// that is as good as any, and as many lives of a part with the larger ones.
Plan TreeSearch::fastest(const Plan& base, double than_s) const {
  std::optional<Cut> best;
  double best_lives = k_first_window;
  const auto seconds = [](const Cut& parts) { return parts.plan.prediction.mid_seconds; };
  const auto with = [&](Cut& parts, double lives) {
    predict(parts.plan, m_job, m_ways, window(parts, lives), k_played);
    const bool better = !best || seconds(parts) < seconds(*best) * (1 - k_worth);
    if (better) {
      best = parts;
      best_lives = lives;
    }
    return better;
  };
  for (const std::uint64_t part_bytes : part_sizes(base, k_smallest_writes)) {
    Cut parts = cut(base, part_bytes);
    const bool first = !best;
    with(parts, best_lives);
    const bool longer = seconds(parts) > seconds(*best) * (1 + k_worth);
    int failed = 0;
    for (double lives = 2 * k_first_window;
         first && !m_options.window_parts && window(parts, lives) > parts.plan.window_parts &&
         static_cast<double>(parts.plan.window_parts) < parts_played(parts.plan) &&
         lives <= k_widest_window && failed < k_most_failed;
         lives *= 2) {
      failed = with(parts, lives) ? 0 : failed + 1;
    }
    if (longer) {
      break;
    }
  }
  if (seconds(*best) >= than_s * (1 - k_worth)) {
    return std::move(best->plan); // a longer play would show it no faster
  }
  // A beginning that hardly fills the window flatters it: the next wider one is played longer, too.
  Cut wider = *best;
  predict(best->plan, m_job, m_ways, best->plan.window_parts, k_taken);
  if (const std::uint64_t next = window(wider, 2 * best_lives); next > best->plan.window_parts) {
    predict(wider.plan, m_job, m_ways, next, k_taken);
    if (seconds(wider) < seconds(*best) * (1 - k_worth)) {
      best = std::move(wider);
    }
  }
  return std::move(best->plan);
}

/// Each tree's share by itself.
TreeSearch::Cut TreeSearch::cut(const Plan& base, std::uint64_t part_bytes) const {
  Plan plan = base;
  const auto lanes = static_cast<std::uint64_t>(plan.ranks.front().lanes);
  plan.parts =
      cut_for_trees(m_job.layout, m_job.workload, plan.trees, part_bytes, m_options.cutting,
                    has_nths(plan.collective) ? m_job.workers.size() : 1);
  give_lanes(plan, lanes);
  plan.part_bytes = *std::max_element(plan.parts.bytes.begin(), plan.parts.bytes.end());
  const double life_s = set_lives(plan);
  for (PlanRank& rank : plan.ranks) {
    rank.server = !rank.worker;
    rank.share_bytes = 0;
    rank.assigned_bytes = 0;
  }
  for (const SumTree& tree : plan.trees) {
    PlanRank& root = plan.ranks[tree.root()];
    root.server = true;
    root.share_bytes += tree.share * static_cast<double>(plan.gradient_bytes);
  }
  for (std::size_t p = 0; p < plan.parts.size(); ++p) {
    plan.ranks[plan.parts.server[p]].assigned_bytes += plan.parts.bytes[p];
  }
  return {std::move(plan), life_s};
}

/// Of the trees' ways.
double TreeSearch::least_part_bytes(const Plan& base) const {
  const PlayNetwork network = m_ways.between(k_long).network;
  LeastPart least(network);
  for (const SumTree& tree : base.trees) {
    for (std::size_t r = 0; r < base.ranks.size(); ++r) {
      for (const std::int64_t to : {tree.up[r], tree.down[r]}) {
        if (to >= 0 && to != static_cast<std::int64_t>(r)) {
          least.add(r, static_cast<std::size_t>(to));
        }
      }
    }
  }
  return least.bytes();
}

std::string TreeSearch::assumed(const Plan& plan) const {
  return assumed_write(m_options.part_bytes ? 0 : least_part_bytes(plan));
}

/// Of a search's play: no window is wider than all of them.
double TreeSearch::parts_played(const Plan& plan) const {
  const auto parts = static_cast<double>(plan.parts.size());
  const double writes = parts * writes_per_part(plan);
  return writes > k_most_writes ? parts_of_beginning(parts, writes, k_played) : parts;
}

double TreeSearch::writes_per_part(const Plan& plan) {
  const double halves = plan.collective == Collective::all_reduce ? 2 : 1;
  return halves * static_cast<double>(plan.ranks.size() - 1);
}

/// Sizes that make at most so many writes, the smallest first; the largest where none does.
std::vector<std::uint64_t> TreeSearch::part_sizes(const Plan& base, double most_writes) const {
  if (m_options.part_bytes) {
    return {*m_options.part_bytes};
  }
  const double least = least_part_bytes(base);
  std::vector<std::uint64_t> sizes;
  for (const std::uint64_t size : k_part_bytes) {
    const double parts = static_cast<double>(m_job.layout.total_bytes) / static_cast<double>(size);
    if (static_cast<double>(size) >= least && parts <= k_most_parts &&
        parts * writes_per_part(base) <= most_writes) {
      sizes.push_back(size);
    }
  }
  return sizes.empty() ? std::vector<std::uint64_t>{k_part_bytes.back()} : sizes;
}

/// As many parts as keep every station busy for so many lives of a part.
std::uint64_t TreeSearch::window(const Cut& cut, double lives) const {
  if (m_options.window_parts) {
    return *m_options.window_parts;
  }
  const Plan& plan = cut.plan;
  const double parts = static_cast<double>(plan.parts.size()) / plan.ranks.front().lanes;
  return static_cast<std::uint64_t>(
      std::clamp(std::ceil(lives * cut.life_s / m_steady_s * parts), 2.0,
                 std::max(2.0, std::min(std::ceil(parts), k_most_under_way))));
}

/// A tree's life is its longest way up and its longest way down. Returns the mean over all trees,
/// by their shares, in seconds. In the mean a tree counts at least the time in which all copies of
/// a part pass the busiest station of the tree, such as the port of a root that many write to.
double TreeSearch::set_lives(Plan& plan) const {
  const auto bytes = static_cast<double>(plan.part_bytes);
  const PlayNetwork network = m_ways.between(bytes).network;
  std::vector<double> busy(network.station_bytes_per_s.size());
  double mean_s = 0;
  for (SumTree& tree : plan.trees) {
    double all_s = 0;
    tree.life_seconds = 0;
    for (const bool up : {true, false}) {
      const std::vector<std::int64_t>& parents = up ? tree.up : tree.down;
      double longest_s = 0, busiest_s = 0;
      std::ranges::fill(busy, 0.0);
      const auto is_root = [&](std::size_t r) {
        return parents[r] < 0 || parents[r] == static_cast<std::int64_t>(r);
      };
      const auto write = [&](std::size_t r) { // from and to
        const auto parent = static_cast<std::size_t>(parents[r]);
        return up ? std::pair(r, parent) : std::pair(parent, r);
      };
      for (std::size_t r = 0; r < parents.size(); ++r) {
        if (is_root(r)) {
          continue;
        }
        for (const std::uint32_t s : network.paths[write(r).first][write(r).second]) {
          busy[s] += bytes / network.station_bytes_per_s[s];
          busiest_s = std::max(busiest_s, busy[s]);
        }
        double way_s = 0;
        for (std::size_t at = r; !is_root(at); at = static_cast<std::size_t>(parents[at])) {
          way_s += network.write_seconds(write(at).first, write(at).second, bytes);
        }
        longest_s = std::max(longest_s, way_s);
      }
      tree.life_seconds += longest_s;
      all_s += std::max(longest_s, busiest_s);
    }
    mean_s += tree.share * all_s;
  }
  return mean_s;
}

void add_passes_to_trees(Plan& plan, const Job& job, const Ways& ways, const PlanOptions& options) {
  if (!job.passes) {
    return;
  }
  const double traffic_s = plan.prediction.mid_seconds;
  plan.passes = job.passes;
  if (options.order == Order::priority && traffic_s > 0) {
    reorder(plan.parts, priority_order(plan.parts, *job.passes, job.bytes() / traffic_s));
  }
  predict(plan, job, ways, plan.window_parts, k_thorough);
}

} // namespace reckon
