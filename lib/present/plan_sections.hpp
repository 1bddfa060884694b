// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "present/style.hpp"

#include <string>

namespace reckon {

// What render() and explain() put together; each ends with a line end, all but made_text() and
// prediction_text() begin with a blank line and a title.

/// What it was made from and how; without a title.
[[nodiscard]] std::string made_text(const Plan& plan, const Style& style);
/// The strategies that were compared.
[[nodiscard]] std::string candidates_text(const Plan& plan, const Style& style);
/// What the links inside machines carry, and what each is worth.
[[nodiscard]] std::string resources_text(const Plan& plan, const Style& style);
/// Who takes part (equal ones on one line), the lanes' ports, and how the gradient is cut.
[[nodiscard]] std::string ranks_text(const Plan& plan, const Style& style);
[[nodiscard]] std::string lanes_text(const Plan& plan, const Style& style);
[[nodiscard]] std::string parts_text(const Plan& plan, const Style& style);
/// Bound, prediction and its terms, relief.
[[nodiscard]] std::string prediction_text(const Plan& plan, const Style& style);
/// "0" or, if the rank is one of a machine's, "gpu0".
[[nodiscard]] std::string place_text(const Plan& plan, std::size_t rank);
/// The clients' routing tables, one row for equal ones, and the path of each tensor.
[[nodiscard]] std::string routing_text(const Plan& plan, const Style& style);
/// The same tables with their equations, and the reasons for this crossing and this m.
[[nodiscard]] std::string routing_reasons(const Plan& plan, const Style& style);
/// Who sums for whom, the largest shares first where there are many.
[[nodiscard]] std::string trees_text(const Plan& plan, const Style& style);
/// Each solved quantity with its equation and inputs, and the profile's cells behind it.
[[nodiscard]] std::string solved_text(const Plan& plan, const Style& style);

} // namespace reckon
