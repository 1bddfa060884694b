// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "strategies/play.hpp"
#include "strategies/strategy.hpp"

#include <optional>

namespace reckon {

struct Between;

/// How the gradient is cut, as far as a prediction needs it.
struct PartShape {
  double part_bytes = 0; ///< largest part
  double part_count = 0;
  double window_parts = 1;
  DType dtype = DType::fp32; ///< of most of the gradient
  bool in_place = false;     ///< sums are made in place (Plan::sums_in_place)
};

/// Bound and predicted time of one iteration with this load, of load_of(), of the solution's ranks.
///
/// Ports: each rank's traffic over its port at the rate for that part size overlaps the summation
/// on its lanes; the slower of the two at the slowest rank is the steady time. Filling the pipeline
/// adds the time until the first sums come back: one part from each of the ranks that talk at once.
///
/// One machine: predict_on_machine().
[[nodiscard]] Prediction predict(const CostModel& model, const Solution& solution, const Load& load,
                                 const PartShape& shape);

/// The time of a single part round the ring of the model's workers and back, hop by hop, on ports.
[[nodiscard]] double ring_chain_seconds(const CostModel& model, const Load& load,
                                        const PartShape& shape);

/// Turns the prediction of an exchange into that of an iteration with the model's passes: the
/// backward pass, the traffic beside and after it, and the forward pass (docs/equations.md, 18).
/// `parts`: of the exchange; none begins before its last byte's layer is done. `played`: time of
/// the whole iteration, if it was played. `credit_seconds`: where parts go by priority, the traffic
/// that is under way at once, which nothing overtakes (it only counts without a play); absent:
/// parts go in gradient order, and the forward pass waits for all sums.
void add_passes(Prediction& prediction, const Passes& passes, const Parts& parts,
                const std::optional<double>& played,
                const std::optional<double>& credit_seconds = std::nullopt);

/// What traffic that takes so long alone leaves exposed beside passes in gradient order (18).
[[nodiscard]] double exposed_seconds(const Passes& passes, const Parts& parts, double traffic_s);
/// The time of a plan's traffic alone: of one with passes in gradient order, what leaves as much
/// exposed as it predicts.
[[nodiscard]] double traffic_seconds(const Plan& plan);
/// What a plan with passes in gradient order leaves exposed if its backward pass takes `longer`
/// times as long from the first gradient on, and its traffic as long as ever (18c).
[[nodiscard]] double exposed_seconds(const Plan& plan, double longer);

/// Takes the play's time for the whole. Its excess over the steady traffic and summation is filling
/// and draining the pipeline, and waiting.
void replace_by_played(Prediction& prediction, double seconds);

/// The fewest lanes with which every rank sums as fast as its port brings the operands, each port
/// with equally many lanes, and not more than one machine's cores. `traffic_share`: the fraction of
/// a rank's traffic time in which it has sums to make.
[[nodiscard]] int lanes_needed(const CostModel& model, const Load& load, DType dtype,
                               double part_bytes, double traffic_share = 1);

/// The cost of the ranks' local ops on ports, in parts of about `part_bytes`.
[[nodiscard]] OpCost op_cost(const CostModel& model, double part_bytes);

} // namespace reckon
