// SPDX-License-Identifier: Apache-2.0
#include "compare/facts.hpp"
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
    out.count("verification", "verification", "verification/checked_bytes",
              static_cast<double>(before.checked_bytes), static_cast<double>(after.checked_bytes),
              "bytes");
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
                       number_side(*b->measured_seconds, "seconds")));
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
  out.count("replan", "reprofiling", "reprofiling/replans", static_cast<double>(from.size()),
            static_cast<double>(to.size()), "");
  for (std::size_t i = 0; i < std::min(from.size(), to.size()); ++i) {
    out.text("replan", "reprofiling", fmt::format("reprofiling/replans/{}", i), from[i], to[i]);
  }
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
  const auto simulated = [](const Report& r) {
    return r.simulation ? std::optional(r.simulation->profile) : std::nullopt;
  };
  out.link("simulated links", simulated(before), simulated(after));
  if (before.simulation && after.simulation) {
    out.causes_from("simulation/settings", before.simulation->settings, after.simulation->settings);
  }
  out.causes_from("context", before.context, after.context);

  compare_verification(out, before.verification, after.verification);
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
  // what differs in these is noise too (14.9 % and 15.1 % of a 15 % tolerance). None is worse or
  // better by itself: a run that is faster than predicted may be outside the tolerance.
  if (measurement_differs || prediction_differs) {
    out.number("error", "error", "error", before.error, after.error, "ratio");
    out.text("cause", "error", "cause", before.cause, after.cause);
    const auto verdict = [](const Report& r) -> std::string {
      return r.within_tolerance ? "within the tolerance" : "outside the tolerance";
    };
    out.text("verdict", "error", "within_tolerance", verdict(before), verdict(after));
  }
  compare_all_facts(out, before, after);
  compare_reprofiling(out, before, after);
  return std::move(out).finish();
}

} // namespace reckon
