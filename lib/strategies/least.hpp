// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "equations/split.hpp"
#include "strategies/model.hpp"

#include <string>
#include <string_view>

namespace reckon {

/// A bound on all trees between some ranks, for any scheme.
struct LeastTime {
  double seconds = 0;
  std::string by; ///< the binding resource, with the equation
};

/// Trees between the model's racks: what leaves and enters a rack passes its uplink, or its ports
/// together where these are slower. Workers are racks in which somebody works, servers the others,
/// each in the order of model.racks().
[[nodiscard]] Star star_of_racks(const CostModel& model, double model_bytes);

/// For a gradient of `model_bytes` between the model's ranks: equation 8 over their ports, and over
/// the racks' uplinks where these are slower. Where ranks share a machine, each of n gradients has
/// to be read from its memory once and its sum written there once, at the best measured rate.
/// Measured pairs can only raise the bound; a linear program finds by how much (equation 26).
[[nodiscard]] LeastTime least_time(const CostModel& model, double model_bytes);

/// For bytes that ranks on one machine read from its memory and write to it, at the best measured
/// rate.
[[nodiscard]] LeastTime least_through_memory(const CostModel& model, double traffic_bytes);

/// Term of a prediction: the difference between its rates and a bound that other cells of the
/// profile give.
inline constexpr std::string_view k_contradiction = "contradiction";

/// Lowers the prediction's bound from its own scheme's, which becomes its busiest resource, to the
/// bound on any trees. A prediction below that bound contradicts the bound's cells: it is raised to
/// the bound by a term of its own, k_contradiction.
void lower_bound(Prediction& prediction, const LeastTime& least);

} // namespace reckon
