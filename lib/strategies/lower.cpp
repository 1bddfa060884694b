// SPDX-License-Identifier: Apache-2.0
#include "strategies/lower.hpp"

#include "core/error.hpp"
#include "strategies/forest/racks.hpp"
#include "strategies/lowerings.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace reckon {

Schedule lower(const Plan& plan) {
  constexpr double k_longest_s = 1000; // a straggler's, a million times as long, still has a number
  if (plan.passes && !(plan.passes->total_seconds() <= k_longest_s)) {
    fail(ErrorKind::input, fmt::format("the passes of one iteration take {} s; at most {} s can be "
                                       "planned; give their time in seconds",
                                       plan.passes->total_seconds(), k_longest_s));
  }
  if ((plan.groups > 0 || !plan.machine_trees.empty()) &&
      (!plan.trees.empty() || plan.torus || plan.strategy == "ring" || plan.sums_in_place ||
       plan.asynchronous)) {
    fail(ErrorKind::input,
         "a plan with groups or machine_trees has neither trees, a torus nor a ring, and neither "
         "sums in place nor asynchronous training");
  }
  if (plan.wire && (plan.collective != Collective::all_reduce || plan.sums_in_place ||
                    plan.asynchronous || plan.update || plan.fixed_point || plan.torus)) {
    fail(ErrorKind::input,
         fmt::format("a plan whose gradients travel as {} is for plain sums: it "
                     "has neither sums in place, an optimizer's step, fixed-point "
                     "sums, a torus nor another collective than all-reduce",
                     name_of(*plan.wire)));
  }
  if (plan.wire && std::ranges::any_of(
                       plan.runs, [&](const DTypeRun& run) { return run.dtype != *plan.wire; })) {
    fail(ErrorKind::input,
         fmt::format("a plan whose gradients travel as {} has runs of that type only",
                     name_of(*plan.wire)));
  }
  if (plan.collective != Collective::all_reduce) {
    return lower_halves(plan);
  }
  if (plan.sums_in_place) {
    return lower_in_place(plan);
  }
  if (plan.asynchronous) {
    return lower_async(plan);
  }
  if (plan.fixed_point && plan.update) {
    fail(ErrorKind::input, "a plan has either an optimizer's step or fixed-point sums");
  }
  if (plan.strategy == k_rack_hierarchical && plan.trees.empty()) {
    fail(ErrorKind::input, fmt::format("a plan of strategy {} has trees, and this one of an older "
                                       "version has none; make the plan again with this version",
                                       plan.strategy));
  }
  Schedule sums = plan.torus ? lower_torus(plan) : lower_trees(plan);
  if (plan.one_queue) {
    if (plan.trees.empty()) {
      fail(ErrorKind::input,
           "a plan whose proxies have one queue has trees, and this one has none");
    }
    sums = with_one_queue(sums, plan);
  }
  if (plan.wire) {
    return with_wire(sums, plan);
  }
  if (plan.fixed_point) {
    return with_fixed_point(sums, plan);
  }
  if (plan.update) {
    require_fp32(plan, "an optimizer's step");
    return with_update(sums, plan);
  }
  return sums;
}

} // namespace reckon
