// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "strategies/play.hpp"
#include "strategies/strategy.hpp"

#include <optional>

namespace reckon {

struct Between;

/// What a prediction needs to know of how the gradient is cut.
struct PartShape {
  double part_bytes = 0; ///< largest part
  double part_count = 0;
  double window_parts = 1;
  DType dtype = DType::fp32; ///< of most of the gradient
  bool in_place = false;     ///< sums are made where the gradients lie (Plan::sums_in_place)
};

/// Bound and predicted time of one iteration when the ranks own `loads` bytes each.
///
/// Ports: each rank's traffic over its port at the rate for that part size, beside it (it overlaps)
/// the summation on its lanes; the slower of the two of the slowest rank is the steady time.
/// Filling the pipeline adds what it takes until the first sums come back: one part from each of
/// the ranks that talk at once.
///
/// One machine: ranks share cores and memory. Each processor writes and adds up what its lanes have
/// to, one after the other, at its part of the measured rates of as many as are at work. In place
/// nothing is written to anybody: each rank that sums reads all gradients of its parts once and
/// writes them once, at the measured rate of such sums.
[[nodiscard]] Prediction predict(const CostModel& model, const Solution& solution,
                                 std::span<const double> loads, const PartShape& shape);

/// What a part alone takes round the ring of the model's workers and back, hop by hop, on ports.
[[nodiscard]] double ring_chain_seconds(const CostModel& model, const PartShape& shape);

/// predict() for ranks that share one machine, of any exchange with that load.
[[nodiscard]] Prediction predict_shared(const CostModel& model, const Load& load,
                                        const PartShape& shape);

/// Turns the prediction of an exchange into that of an iteration with the model's passes: the
/// backward pass, the traffic beside and after it, and the forward pass (docs/equations.md, 18).
/// `played`: of the whole iteration, where it was played. `credit_seconds`: where parts go by
/// priority, the traffic that is under way at once, which nothing overtakes; how much only counts
/// where nothing was played. None: they go in gradient order, and the forward pass waits for all.
void add_passes(Prediction& prediction, const Passes& passes, const std::optional<double>& played,
                const std::optional<double>& credit_seconds = std::nullopt);

/// The play's time for the whole; what it has beyond the steady traffic and summation is filling
/// and draining the pipeline, and waiting.
void replace_by_played(Prediction& prediction, double seconds);

/// The fewest lanes with which no rank sums slower than its port brings the operands, each port
/// carrying as many of them, and not more than one machine's cores. `traffic_share`: of the time of
/// a rank's traffic, that in which it has sums to make.
[[nodiscard]] int lanes_needed(const CostModel& model, const Load& load, DType dtype,
                               double part_bytes, double traffic_share = 1);

/// What the ranks' local ops cost on ports, in parts of about `part_bytes`.
[[nodiscard]] OpCost op_cost(const CostModel& model, double part_bytes);

} // namespace reckon
