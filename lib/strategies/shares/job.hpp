// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "documents/workload.hpp"
#include "equations/contended.hpp"
#include "strategies/job.hpp"
#include "strategies/strategy.hpp"
#include "strategies/ways.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace reckon {

/// The job of strategies that give each rank a share of the gradient to sum, with the given options
/// and the network between the ranks.
struct SharesJob : Job {
  /// Throws Error{input} where the options contradict each other or the workload, and as Ways.
  SharesJob(const PlanInputs& inputs, const PlanOptions& options);

  const PlanInputs& inputs;
  const PlanOptions& options;
  DType dtype; ///< of most of the gradient
  Ways ways;   ///< with the given number of lanes, or the needed one
  bool lanes_given = false;
  std::optional<ContentionFactors> contention;
  std::vector<std::size_t> ring_order; ///< of the workers
  /// Why sums cannot be made in place; empty: they can.
  std::string why_not_in_place;

  [[nodiscard]] const CostModel& model() const { return ways.model(); }
  [[nodiscard]] const LeastTime& least() const { return ways.least(); }
  /// Measured ways between the ranks' machines; else null.
  [[nodiscard]] const Between* pairs() const { return ways.measured(); }

  /// What the ranks send and add when they own these bytes: reckon::load_of(), and conversions of
  /// the workers' gradients to what is sent and back, as sums of two.
  [[nodiscard]] Load load_of(const Solution& solution, std::span<const double> loads) const;

  /// Exchanges of a worker in one iteration.
  [[nodiscard]] double steps() const {
    return options.async_steps ? static_cast<double>(*options.async_steps) : 1;
  }
};

} // namespace reckon
