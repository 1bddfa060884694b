// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "adapt/adapt.hpp"
#include "command_line.hpp"
#include "documents/plan.hpp"
#include "run/job.hpp"
#include "schedule/schedule.hpp"

#include <optional>
#include <string>
#include <vector>

namespace reckon {

/// The command line of `reckon run`.
struct RunArguments {
  std::string plan, output, trace, transport;
  RunOptions options;     ///< options that do not need the plan
  double tolerance = 0;   ///< largest error of the prediction that passes
  Seconds peer_limit{10}; ///< a rank that is silent for longer is dead
  std::optional<std::string> inject;
  bool shared_cores = false;
  std::vector<std::string> stragglers;
  AdaptArguments adapt;
  bool json = false, list = false, check_only = false, unchecked = false;
  ColorMode color = ColorMode::automatic;

  /// Whether steps are saved or resumed from.
  [[nodiscard]] bool checkpoints() const {
    return !options.checkpoints.save_folder.empty() || !options.checkpoints.resume_folder.empty();
  }
};

/// Adds the options to `command`; they write into `arguments`, which must live as long.
void add_run_options(Arguments& command, RunArguments& arguments);

/// The options for this plan. Throws Error{input} where it has no passes to work in or nothing to
/// save, and Error{unavailable} where the processors are too few.
[[nodiscard]] RunOptions options_for(const RunArguments& arguments, const Plan& plan);

/// Stretches the passes of the slow ranks: "RANK=2x", any number of them. Throws Error{usage} for
/// text of another form, and Error{input} for ranks without passes.
void make_stragglers(Schedule& schedule, const RunArguments& arguments);

} // namespace reckon
