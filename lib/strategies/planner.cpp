// SPDX-License-Identifier: Apache-2.0
#include "strategies/planner.hpp"

#include "core/error.hpp"
#include "core/json_fwd.hpp"
#include "strategies/forest/equal_machines.hpp"
#include "strategies/forest/machines.hpp"
#include "strategies/shares/choice.hpp"
#include "strategies/shares/description.hpp"
#include "strategies/shares/draft.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace reckon {
namespace {

struct WindowsToTry {
  std::vector<double> windows;
  double gain; ///< part of the time that a further one must save
};

/// Windows beside the solved one count only where a play can tell them apart: one that falls in
/// with the period of the shares can cost a percent or two. In a ring the least window that is as
/// good as the others.
WindowsToTry windows_to_try(const SharesJob& job, const Choice& choice) {
  WindowsToTry out{{choice.shape.window_parts}, 1e-9};
  constexpr double k_small_job = 16; // workers: beyond it a play takes long, and shares are finer
  const bool open = !job.options.window_parts && !job.model().one_machine();
  if (open && choice.solution.ring) {
    out.gain = tolerance(job);
    for (int doubled = 1; doubled <= 6; ++doubled) {
      out.windows.push_back(2 * out.windows.back());
    }
  } else if (open && static_cast<double>(job.workers.size()) <= k_small_job) {
    out.windows.push_back(std::round(0.75 * out.windows[0]));
    out.windows.push_back(std::round(1.5 * out.windows[0]));
  }
  return out;
}

/// Parts that a window is of, in the lane that has most of them.
std::size_t all_in_a_window(const Plan& plan, bool ring) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::size_t> count; // lane, in a ring owner
  std::size_t most = 0;
  for (std::size_t p = 0; p < plan.parts.size(); ++p) {
    most = std::max(most, ++count[{plan.parts.lane[p], ring ? plan.parts.server[p] : 0}]);
  }
  return most;
}

/// Cuts, assigns and predicts the plan in every window that is open, and keeps the fastest.
void draft(const SharesJob& job, Choice& choice) {
  const Plan assigned = cut_and_assign(job, choice);
  const auto [windows, gain] = windows_to_try(job, choice);
  const auto all =
      windows.size() > 1 ? static_cast<double>(all_in_a_window(assigned, choice.solution.ring)) : 0;
  bool all_at_once = false;
  for (const double window : windows) {
    if (all_at_once && window >= all && !job.passes && !job.options.async_steps) {
      continue; // the same plan once more
    }
    all_at_once = all_at_once || window >= all;
    Plan plan = predicted(job, choice, assigned, window);
    if (!choice.draft ||
        plan.prediction.mid_seconds < (1 - gain) * choice.draft->prediction.mid_seconds) {
      choice.draft = std::move(plan);
    }
    if (choice.draft->prediction.mid_seconds * (1 - gain) <=
        choice.draft->prediction.busy_seconds()) {
      break;
    }
  }
  choice.prediction = choice.draft->prediction;
}

/// Tells whoever asks what is being planned, and that of all strategies so many have been.
void tell(const SharesJob& job, const std::vector<Choice>& choices, const Choice& now) {
  if (job.options.progress) {
    const auto done = std::ranges::count_if(
        choices, [](const Choice& c) { return c.draft || !c.solution.reason.empty(); });
    job.options.progress(now.solution.strategy,
                         static_cast<double>(done) / static_cast<double>(choices.size()));
  }
}

[[noreturn]] void refuse(const std::string& strategy, const std::string& reason) {
  fail(ErrorKind::input, fmt::format("--strategy {} does not apply: {}", strategy, reason));
}

/// The one asked for; null where that is "auto", or trees.
Choice* asked_for(std::vector<Choice>& choices, const std::string& strategy) {
  if (strategy == "auto" || strategy == k_rack_hierarchical) {
    return nullptr;
  }
  check_strategy(strategy);
  const auto it = std::find_if(choices.begin(), choices.end(),
                               [&](const Choice& c) { return c.solution.strategy == strategy; });
  if (it == choices.end()) { // one of another planner's
    fail(ErrorKind::usage, fmt::format("--strategy {} does not apply here", strategy));
  }
  if (!it->solution.reason.empty()) {
    refuse(strategy, it->solution.reason);
  }
  return &*it;
}

/// Whichever is fastest is cut, assigned and predicted as it would run, until the fastest is one
/// that has been. Null where none applies but `other_than`.
Choice* fastest(const SharesJob& job, std::vector<Choice>& choices, const Choice* other_than) {
  for (;;) {
    Choice* best = nullptr;
    for (Choice& c : choices) {
      if (c.solution.reason.empty() && &c != other_than &&
          (best == nullptr || c.prediction.mid_seconds < best->prediction.mid_seconds)) {
        best = &c;
      }
    }
    if (best == nullptr || best->draft) {
      return best;
    }
    tell(job, choices, *best);
    draft(job, *best);
  }
}

/// Puts the plan with trees over racks among the candidates, and in the place of the plan where it
/// is faster, or asked for.
void compare_racks(Plan& plan, const SharesJob& job) {
  const PlanOptions& options = job.options;
  const bool asked = options.strategy == k_rack_hierarchical;
  const RackTrees racks = trees_over_racks(job.model());
  std::string reason =
      racks.reason.empty() ? why_no_trees(job.inputs, options, plan) : racks.reason;
  if (asked && !reason.empty()) {
    refuse(options.strategy, reason);
  }
  std::optional<Plan> trees;
  if (reason.empty()) {
    if (options.progress) {
      options.progress(k_rack_hierarchical, 1);
    }
    trees = with_trees_over_racks(plan, job.inputs, options, racks,
                                  asked ? std::numeric_limits<double>::infinity()
                                        : plan.prediction.mid_seconds);
    reason = trees ? ""
                   : fmt::format("its busiest port or uplink alone takes as long as all of {}",
                                 plan.strategy);
  }
  Candidate candidate{k_rack_hierarchical, {}, reason};
  if (trees) {
    candidate.prediction = trees->prediction;
    const bool faster =
        options.strategy == "auto" && trees->prediction.mid_seconds < plan.prediction.mid_seconds;
    if (asked || faster) {
      trees->candidates = std::move(plan.candidates);
      plan = std::move(*trees);
    }
  }
  plan.candidates.push_back(std::move(candidate));
}

} // namespace

void check_strategy(const std::string& name) {
  std::vector<std::string> known = strategy_names();
  known.insert(known.begin(), "auto");
  known.insert(known.end(),
               {k_rack_hierarchical, k_optimum, k_hierarchical_split, k_hierarchical_two_level,
                "coarse", "dense", "torus", "torus_scatter"});
  if (std::find(known.begin(), known.end(), name) == known.end()) {
    const std::string near = did_you_mean(name, known);
    fail(ErrorKind::usage, fmt::format("--strategy {}: unknown; {}it is one of {}", name,
                                       near.empty() ? "" : fmt::format("did you mean {}? ", near),
                                       fmt::join(known, ", ")));
  }
}

Plan make_plan(const PlanInputs& inputs, const PlanOptions& options) {
  const SharesJob job(inputs, options);
  std::vector<Choice> choices;
  constexpr std::size_t k_many = 64; // of fewer workers a sum waits for few parts
  for (const std::string& name : strategy_names()) {
    if (name != k_two_level_split || name == options.strategy || job.workers.size() >= k_many) {
      choices.push_back(evaluate(job, name));
    }
  }
  Choice* const asked = asked_for(choices, options.strategy);
  if (asked != nullptr) {
    tell(job, choices, *asked);
    draft(job, *asked);
  }
  for (Choice& c : choices) { // the formulas know ports, and not the ways between pairs
    if (job.pairs() && c.solution.reason.empty() && !c.draft) {
      tell(job, choices, c);
      draft(job, c);
    }
  }
  Choice* chosen = asked != nullptr ? asked : fastest(job, choices, nullptr);
  Choice* second = fastest(job, choices, chosen);
  // A formula may be slower than the play of what it stands for: of short messages by half.
  while (asked == nullptr && second != nullptr &&
         second->prediction.mid_seconds < chosen->prediction.mid_seconds) {
    chosen = second;
    second = fastest(job, choices, chosen);
  }
  Plan plan = std::move(*chosen->draft);
  for (const Choice& c : choices) {
    plan.candidates.push_back({c.solution.strategy, std::nullopt, c.solution.reason});
    if (c.solution.reason.empty()) {
      plan.candidates.back().prediction = c.prediction;
    }
  }
  describe(plan, job, *chosen);
  compare_racks(plan, job);
  add_margin(plan, options.strategy != "auto");
  return plan;
}

PassSeconds pass_seconds(const Workload& workload, const PlanOptions& options) {
  if (options.zero_compute) {
    return {};
  }
  PassSeconds of_layers;
  for (const Layer& l : workload.layers) {
    of_layers.forward += l.forward.seconds.value_or(0);
    of_layers.backward +=
        l.input_gradient.seconds.value_or(0) + l.weight_gradient.seconds.value_or(0);
  }
  return {
      options.forward_seconds.value_or(workload.forward_seconds.value_or(of_layers.forward)),
      options.backward_seconds.value_or(workload.backward_seconds.value_or(of_layers.backward))};
}

} // namespace reckon
