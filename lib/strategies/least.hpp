// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "strategies/model.hpp"

#include <string>
#include <string_view>

namespace reckon {

/// What no trees between some ranks beat, whichever scheme a plan has.
struct LeastTime {
  double seconds = 0;
  std::string by; ///< what binds, with its equation
};

/// Of a gradient of `model_bytes` between the model's ranks: equation 8 over their ports, and over
/// the racks' uplinks where these are slower. Where ranks share a machine each of n gradients has
/// to be read from its memory once and its sum written there once, at the best rate ever measured.
/// Measured pairs only make it longer: that a linear program finds (equation 26).
[[nodiscard]] LeastTime least_time(const CostModel& model, double model_bytes);

/// Of bytes that ranks on one machine read from its memory and write to it, at the best rate ever
/// measured.
[[nodiscard]] LeastTime least_through_memory(const CostModel& model, double traffic_bytes);

/// Term of a prediction: what its rates leave to a bound that other cells of the profile give.
inline constexpr std::string_view k_contradiction = "contradiction";

/// Lowers the prediction's bound from what its own scheme needs, which becomes its busiest
/// resource, to what any trees need. A prediction below that bound contradicts what the bound is
/// made of: it is raised to it, by a term of its own, k_contradiction.
void lower_bound(Prediction& prediction, const LeastTime& least);

} // namespace reckon
