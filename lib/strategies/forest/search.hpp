// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "strategies/prediction.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace reckon {

/// Smaller parts, wider windows and other trees must be worth it: of all that is equal to this, the
/// one with fewer parts.
inline constexpr double k_worth = 0.002;

/// For the plan of trees that is taken.
inline constexpr PlayEffort k_taken{400'000, 800'000, true};

/// Looks for the part size and window with which a plan of trees takes the least predicted time.
/// Holds references.
class TreeSearch {
public:
  /// `options`: part size, window, cutting and order, as far as they are asked for. `steady_s`:
  /// what the trees keep their busiest station.
  TreeSearch(const Job& job, const Ways& ways, const PlanOptions& options, double steady_s)
      : m_job(job), m_ways(ways), m_options(options), m_steady_s(steady_s) {}

  /// Both take a plan of ranks, trees and collective, without parts, and predict its traffic alone:
  /// by one short play, and by a search.
  [[nodiscard]] Plan first(const Plan& base) const;
  [[nodiscard]] Plan fastest(const Plan& base) const;
  /// How parts of this plan were kept from being tiny where nothing says what writes cost, for
  /// Plan::assumed; empty: that is known of all its ways, or the part size was asked for.
  [[nodiscard]] std::string assumed(const Plan& plan) const;

private:
  [[nodiscard]] Plan cut(const Plan& base, std::uint64_t part_bytes) const;
  [[nodiscard]] double least_part_bytes(const Plan& base) const;
  [[nodiscard]] std::vector<std::uint64_t> part_sizes(const Plan& base, double most_writes) const;
  [[nodiscard]] std::uint64_t window(const Plan& plan, double times) const;
  void set_lives(Plan& plan) const;

  const Job& m_job;
  const Ways& m_ways;
  const PlanOptions& m_options;
  double m_steady_s;
};

/// Adds the job's passes to a plan of trees, with the parts in the order asked for.
void add_passes_to_trees(Plan& plan, const Job& job, const Ways& ways, const PlanOptions& options);

} // namespace reckon
