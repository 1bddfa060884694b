// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/json_fwd.hpp"
#include "solve_overlap_asked.hpp"

#include <optional>
#include <string>
#include <vector>

namespace reckon::solve_command {

struct OverlapAnswers {
  std::vector<OverlapAnswer> configurations;
  /// The shortest iteration of those whose communication takes nothing of the endpoint.
  std::optional<double> ideal_s;
};

/// For the configuration `wanted`, or "all".
[[nodiscard]] OverlapAnswers overlap_answers(const OverlapAsked& asked, const std::string& wanted);

/// `explain`: with each layer.
[[nodiscard]] Json answers_json(const OverlapAnswers& all, const OverlapAsked& asked, bool explain);
[[nodiscard]] std::string answers_text(const OverlapAnswers& all, const OverlapAsked& asked,
                                       const OverlapOptions& options);
/// One line a stretch, from the begin of the iteration that repeats.
[[nodiscard]] std::string timeline_csv(const OverlapAnswers& all, const Workload& workload);

} // namespace reckon::solve_command
