// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "strategies/prediction.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace reckon {

/// The gain that smaller parts, wider windows and other trees must reach; otherwise the plan with
/// fewer parts wins.
inline constexpr double k_worth = 0.002;

/// For the plan that is taken.
inline constexpr PlayEffort k_taken{400'000, 800'000, true};

/// Part sizes to choose from.
inline constexpr std::array<std::uint64_t, 10> k_part_bytes{
    16U << 10U,  32U << 10U, 64U << 10U, 128U << 10U, 256U << 10U,
    512U << 10U, 1U << 20U,  2U << 20U,  4U << 20U,   8U << 20U};

/// What a write costs besides its bytes where nothing says it: the call of a copy, its end, which
/// somebody has to see, and the peer that wakes up took 5 us (host memory) to 20 us (GPUs) on
/// machines that were measured. It is in no prediction, but parts are no shorter than what passes
/// in that time, so that it is half of theirs at most.
inline constexpr double k_assumed_write_s = 10e-6;

/// Writes between two ranks of a network whose parts may be no shorter than the slowest allows.
class LeastPart {
public:
  explicit LeastPart(const PlayNetwork& network) : m_network(network) {}
  void add(std::size_t from, std::size_t to);
  /// What passes the slowest in k_assumed_write_s, where nobody knows what some of them cost; else,
  /// and where no rate is known, 0. The slowest way paces a part: what a write costs on a faster
  /// one passes beside it.
  [[nodiscard]] double bytes() const;

private:
  const PlayNetwork& m_network;
  double m_slowest_s = 0;
  bool m_all_known = true;
};
/// Plan::assumed of parts that are at least so long for that; empty for 0.
[[nodiscard]] std::string assumed_write(double least_bytes);

/// Looks for the part size and window with which a plan of trees takes the least predicted time.
/// Holds references.
class TreeSearch {
public:
  /// `options`: part size, window, cutting and order, if given. `steady_s`: how long the trees keep
  /// their busiest station busy.
  TreeSearch(const Job& job, const Ways& ways, const PlanOptions& options, double steady_s)
      : m_job(job), m_ways(ways), m_options(options), m_steady_s(steady_s) {}

  /// Both take a plan with ranks, trees and collective but without parts, and predict its traffic
  /// alone: by one short play, and by a search. One that is not found to be faster than `than_s` is
  /// not searched to the end.
  [[nodiscard]] Plan first(const Plan& base) const;
  [[nodiscard]] Plan fastest(const Plan& base,
                             double than_s = std::numeric_limits<double>::infinity()) const;
  /// How this plan's parts were kept from being tiny where the cost of a write is unknown, for
  /// Plan::assumed; empty: the cost is known for all ways, or the part size was given.
  [[nodiscard]] std::string assumed(const Plan& plan) const;

private:
  /// A plan with parts, and the mean time from a part's first write to its last.
  struct Cut {
    Plan plan;
    double life_s = 0;
  };
  [[nodiscard]] Cut cut(const Plan& base, std::uint64_t part_bytes) const;
  [[nodiscard]] double least_part_bytes(const Plan& base) const;
  [[nodiscard]] std::vector<std::uint64_t> part_sizes(const Plan& base, double most_writes) const;
  [[nodiscard]] std::uint64_t window(const Cut& cut, double lives) const;
  [[nodiscard]] double parts_played(const Plan& plan) const;
  [[nodiscard]] static double writes_per_part(const Plan& plan);
  [[nodiscard]] double set_lives(Plan& plan) const;

  const Job& m_job;
  const Ways& m_ways;
  const PlanOptions& m_options;
  double m_steady_s;
};

/// Adds the job's passes to a plan of trees, with the parts in the order asked for.
void add_passes_to_trees(Plan& plan, const Job& job, const Ways& ways, const PlanOptions& options);

} // namespace reckon
