// SPDX-License-Identifier: Apache-2.0
#include "run_options.hpp"

#include "core/error.hpp"
#include "core/processors.hpp"
#include "core/units.hpp"
#include "launch/rendezvous.hpp"
#include "schedule/stragglers.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <string>

namespace reckon {

AskedRun asked_run(const RunArguments& arguments) {
  AskedRun asked;
  RunOptions& options = asked.options;
  asked.tolerance = parse_fraction(arguments.tolerance, "--tolerance");
  if (asked.tolerance > 1 && arguments.tolerance.find('%') == std::string::npos) {
    fail(ErrorKind::usage, fmt::format("--tolerance {}: write {}% (or a fraction up to 1)",
                                       arguments.tolerance, arguments.tolerance));
  }
  options.budget = parse_seconds(arguments.budget, "--budget");
  options.limit = parse_seconds(arguments.limit, "--limit");
  asked.peer_limit = parse_seconds(arguments.peer_limit, "--peer-limit");
  if (asked.peer_limit < k_least_peer_limit) {
    fail(ErrorKind::usage, fmt::format("--peer-limit {}: at least {}", arguments.peer_limit,
                                       to_text(k_least_peer_limit)));
  }
  options.warm_up = arguments.warm_up;
  if (arguments.iterations) {
    if (*arguments.iterations == 0) {
      fail(ErrorKind::usage, "--iterations 0: at least 1");
    }
    options.iterations = arguments.iterations;
  }
  if (arguments.without) {
    options.habits = habits_without(*arguments.without);
  }
  options.stragglers = fmt::format("{}", fmt::join(arguments.stragglers, ", "));
  return asked;
}

std::optional<PassCompute> compute_of(const RunArguments& arguments, const Plan& plan) {
  if (!arguments.compute) {
    return std::nullopt;
  }
  PassCompute compute = parse_pass_compute(*arguments.compute);
  compute.dedicated = !arguments.shared_cores;
  if (!plan.passes) {
    fail(ErrorKind::input,
         fmt::format("{}: --compute {}: the plan has no forward and backward passes to work in; "
                     "plan for a workload with their times, or with --forward and --backward",
                     arguments.plan, *arguments.compute));
  }
  static_cast<void>(place_threads(allowed_cpus(), 1, 0, 1, compute)); // whether it can be
  return compute;
}

CheckpointOptions checkpoints_of(const RunArguments& arguments, const Plan& plan) {
  CheckpointOptions options;
  options.save_folder = arguments.checkpoint;
  options.resume_folder = arguments.resume;
  if (arguments.checkpoint_every) {
    if (arguments.checkpoint.empty()) {
      fail(ErrorKind::usage, "--checkpoint-every: say where with --checkpoint FOLDER");
    }
    if (*arguments.checkpoint_every == 0) {
      fail(ErrorKind::usage, "--checkpoint-every 0: at least 1");
    }
    options.every = *arguments.checkpoint_every;
  }
  const char* const asked = !arguments.checkpoint.empty() ? "--checkpoint"
                            : !arguments.resume.empty()   ? "--resume"
                                                          : nullptr;
  if (asked != nullptr && plan.asynchronous) {
    fail(
        ErrorKind::input,
        fmt::format("{}: {} starts from the first parameters again in every iteration, so there is "
                    "nothing to save; plan without --async",
                    asked, arguments.plan));
  }
  if (asked != nullptr && !plan.update) {
    fail(ErrorKind::input,
         fmt::format("{}: {} only sums gradients and keeps nothing from one iteration to the next; "
                     "plan with --optimizer",
                     asked, arguments.plan));
  }
  return options;
}

void make_stragglers(Schedule& schedule, const RunArguments& arguments) {
  for (const auto& [rank, factor] : parse_stragglers(arguments.stragglers, schedule.ranks.size())) {
    if (slow_down(schedule, rank, factor) == 0) {
      fail(ErrorKind::input,
           fmt::format("--straggler: rank {} plays no forward or backward pass; plan for a "
                       "workload with their times, or give them",
                       rank));
    }
  }
}

} // namespace reckon
