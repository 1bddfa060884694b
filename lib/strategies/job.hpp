// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "documents/workload.hpp"
#include "strategies/planner.hpp"

#include <cstddef>
#include <optional>
#include <vector>

namespace reckon {

class Ways;

/// The task of a planner, before any choice.
struct Job {
  const Workload& workload;
  GradientLayout layout;
  std::vector<std::size_t> workers, devices; ///< ranks
  /// By tensor: bytes of the gradient up to its end, without gaps.
  std::vector<double> ends;
  std::optional<Passes> passes;
  double forward_s = 0, backward_s = 0;
  std::optional<DType> wire{}; ///< PlanOptions::wire

  [[nodiscard]] std::size_t tensors() const { return ends.size(); }
  [[nodiscard]] std::size_t ranks() const { return workers.size() + devices.size(); }
  [[nodiscard]] double bytes() const { return ends.back(); }
  [[nodiscard]] double bytes_before(std::size_t tensor) const {
    return tensor == 0 ? 0 : ends[tensor - 1];
  }
  /// For an all-reduce in which every rank takes part.
  [[nodiscard]] double writes_per_part() const { return 2.0 * static_cast<double>(ranks() - 1); }
};

/// Throws Error{input} where the options need something that the workload lacks: an order by
/// priority without passes, an optimizer's step of gradients other than fp32, or anything without a
/// gradient.
void check_workload(const Workload& workload, const PlanOptions& options);

/// Without its ranks. Throws as check_workload().
[[nodiscard]] Job job_without_ranks(const Workload& workload, const PlanOptions& options);

/// Between the ranks of the ways: their workers, and the other ranks as devices. Throws as
/// job_without_ranks().
[[nodiscard]] Job job_between(const PlanInputs& inputs, const PlanOptions& options,
                              const Ways& ways);

/// Lanes of each rank; 0: the planner chooses.
[[nodiscard]] int given_lanes(const Roles& roles);

} // namespace reckon
