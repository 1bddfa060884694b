// SPDX-License-Identifier: Apache-2.0
#include "compare/build.hpp"
#include "compare/measured.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

namespace reckon {
namespace {

void compare_verification(Builder& out, const Verification& before, const Verification& after) {
  const auto text = [](const Verification& v) -> std::string {
    return v.ok ? "correct" : (v.first_error.empty() ? "wrong" : "wrong: " + v.first_error);
  };
  out.compared();
  if (before.ok != after.ok) {
    Difference d = difference("verification", "verification", "verification/ok",
                              text_side(text(before)), text_side(text(after)));
    d.effect = after.ok ? Effect::better : Effect::worse;
    out.add(std::move(d));
  }
  // How much was checked is how many iterations there was time for; only nothing at all differs.
  if ((before.checked_bytes == 0) != (after.checked_bytes == 0)) {
    out.count("verification", "verification", "verification/checked_bytes", before.checked_bytes,
              after.checked_bytes, "bytes");
  }
}

void compare_stages(Builder& out, const Report& before, const Report& after) {
  for (const auto& [name, sides] : paired(before.stages, after.stages, &StageReport::name)) {
    Both<StageReport>(out, "predicted", fmt::format("stages/{}/", name), sides.first, sides.second)
        .number("time", "predicted_seconds", &StageReport::predicted_seconds, "seconds",
                Better::lower);
  }
}

/// Only medians are kept of a stage, so that nothing can be tested: shown beside a total that did
/// change.
void add_stage_changes(Builder& out, const Report& before, const Report& after) {
  for (const StageReport& a : before.stages) {
    const auto b = std::find_if(after.stages.begin(), after.stages.end(),
                                [&](const StageReport& s) { return s.name == a.name; });
    if (a.name == "total" || b == after.stages.end() || !a.measured_seconds ||
        !b->measured_seconds ||
        !beyond(*a.measured_seconds, *b->measured_seconds, out.options().bandwidth_tolerance)) {
      continue;
    }
    out.add(difference("stage", "measured", fmt::format("stages/{}/measured_seconds", a.name),
                       number_side(*a.measured_seconds, "seconds"),
                       number_side(*b->measured_seconds, "seconds"), Better::lower));
  }
}

void compare_ranks(Builder& out, const Report& before, const Report& after) {
  out.count("rank", "ranks", "ranks", before.ranks.size(), after.ranks.size(), "");
  for (std::size_t i = 0; i < std::min(before.ranks.size(), after.ranks.size()); ++i) {
    const Both<RankReport> ranks(out, "ranks", fmt::format("ranks/{}", i), &before.ranks[i],
                                 &after.ranks[i]);
    ranks.count("traffic", "/egress_bytes", &RankReport::egress_bytes, "bytes");
    ranks.count("traffic", "/ingress_bytes", &RankReport::ingress_bytes, "bytes");
  }
}

/// How often the plan changed in the middle, and into what. When and how long is noise.
void compare_reprofiling(Builder& out, const Report& before, const Report& after) {
  if (!before.reprofiling && !after.reprofiling) {
    return;
  }
  const ReprofilingReport none;
  const ReprofilingReport& a = before.reprofiling ? *before.reprofiling : none;
  const ReprofilingReport& b = after.reprofiling ? *after.reprofiling : none;
  const auto changes_of = [](const ReprofilingReport& r) {
    std::vector<std::string> all;
    for (const PauseReport& pause : r.pauses) {
      if (pause.replan) {
        all.push_back(fmt::format("{}", fmt::join(pause.replan->changes, "; ")));
      }
    }
    return all;
  };
  const std::vector<std::string> from = changes_of(a), to = changes_of(b);
  out.count("reprofiling", "reprofiling", "reprofiling/every_iterations", a.every_iterations,
            b.every_iterations, "");
  out.count("replan", "reprofiling", "reprofiling/replans", from.size(), to.size(), "");
  for (std::size_t i = 0; i < std::min(from.size(), to.size()); ++i) {
    out.text("replan", "reprofiling", fmt::format("reprofiling/replans/{}", i), from[i], to[i]);
  }
}

/// What two simulations differ in beside their times; a run and a simulation differ in their kind.
void compare_simulation(Builder& out, const Report& before, const Report& after) {
  if (!before.simulation || !after.simulation) {
    return;
  }
  const Simulation &a = *before.simulation, &b = *after.simulation;
  const auto scenarios = [](const Simulation& s) {
    return s.scenarios.empty() ? std::string("as planned")
                               : fmt::format("{}", fmt::join(s.scenarios, "; "));
  };
  out.text("scenario", "run", "simulation/scenarios", scenarios(a), scenarios(b));
  out.text("engine", "run", "simulation/engine", a.engine, b.engine);
  out.causes_from("simulation/settings", a.settings, b.settings, {});
  out.count("coarsening", "run", "simulation/merged_parts", a.merged_parts, b.merged_parts, "");
}

/// Whether the iterations differ by more than their noise; adds what is found.
bool measured_time_differs(Builder& out, const Report& before, const Report& after) {
  Difference time = difference("time", "measured", "iteration_seconds",
                               number_side(before.p50_seconds, "seconds"),
                               number_side(after.p50_seconds, "seconds"), Better::lower);
  out.compared();
  Measured measured(out);
  measured.add(std::move(time), {.before = before.iteration_seconds,
                                 .after = after.iteration_seconds,
                                 .spread = std::max(before.spread, after.spread),
                                 .tolerance = out.options().bandwidth_tolerance});
  return measured.settle() > 0;
}

} // namespace

Comparison compare(const Report& before, const Report& after, const CompareOptions& options) {
  Builder out("report", options);
  out.link("plan", before.plan, after.plan);
  out.link("profile", before.profile, after.profile);
  out.link("workload", before.workload, after.workload);
  const auto emulated = [](const Report& r) {
    return r.emulation ? std::optional(r.emulation->profile) : std::nullopt;
  };
  out.link("emulated links", emulated(before), emulated(after));
  const auto links = [](const Report& r) -> std::string {
    return r.emulation ? "emulated" : "this machine's own";
  };
  out.text("emulation", "run", "emulation", links(before), links(after));
  const auto simulated = [](const Report& r) {
    return r.simulation ? std::optional(r.simulation->profile) : std::nullopt;
  };
  out.link("simulated links", simulated(before), simulated(after));
  compare_simulation(out, before, after);
  out.causes_from("context", before.context, after.context, k_volatile_context);

  out.text("kind", "run", "kind", before.kind, after.kind);
  out.text("strategy", "run", "strategy", before.strategy, after.strategy);
  out.text("transport", "run", "transport", before.transport, after.transport);
  compare_verification(out, before.verification, after.verification);
  out.number("bound", "predicted", "prediction/bound_seconds", before.prediction.bound_seconds,
             after.prediction.bound_seconds, "seconds", Better::lower);
  out.number("time", "predicted", "prediction/mid_seconds", before.prediction.mid_seconds,
             after.prediction.mid_seconds, "seconds", Better::lower);
  compare_stages(out, before, after);
  const bool prediction_differs =
      beyond(before.prediction.mid_seconds, after.prediction.mid_seconds, options.exact_tolerance);

  bool measurement_differs = false;
  if (before.simulation && after.simulation) { // no noise
    out.number("time", "simulated", "iteration_seconds", before.p50_seconds, after.p50_seconds,
               "seconds", Better::lower);
    measurement_differs = beyond(before.p50_seconds, after.p50_seconds, options.exact_tolerance);
  } else {
    measurement_differs = measured_time_differs(out, before, after);
  }
  if (measurement_differs) {
    add_stage_changes(out, before, after);
  }
  // The error, its cause and the verdict follow from the two times: while those agree within noise,
  // what differs in these is noise too (14.9 % and 15.1 % of a 15 % tolerance).
  if (measurement_differs || prediction_differs) {
    out.number("error", "error", "error", before.error, after.error, "ratio");
    out.text("cause", "error", "cause", before.cause, after.cause);
    const auto verdict = [](const Report& r) -> std::string {
      return r.within_tolerance ? "within the tolerance" : "outside the tolerance";
    };
    const std::size_t index = out.result().differences.size();
    out.text("verdict", "error", "within_tolerance", verdict(before), verdict(after));
    if (out.result().differences.size() > index) {
      out.result().differences.back().effect =
          after.within_tolerance ? Effect::better : Effect::worse;
    }
  }
  compare_ranks(out, before, after);
  compare_reprofiling(out, before, after);
  return std::move(out).finish();
}

} // namespace reckon
