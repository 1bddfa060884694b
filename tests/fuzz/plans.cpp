// SPDX-License-Identifier: Apache-2.0
//
// Plans that somebody changed: each is refused, by the reader or by the checker, or its sums are
// right. All ranks of a run are in this thread.
#include "target.hpp"

#include "core/json.hpp"
#include "documents/json.hpp"
#include "planning/request.hpp"
#include "run/checks.hpp"
#include "schedule/snapshot.hpp"
#include "strategies/forest/planner.hpp"
#include "strategies/lower.hpp"
#include "strategies/proxies/planner.hpp"
#include "support/inside_profiles.hpp"
#include "support/torus_plans.hpp"
#include "unit/run/virtual_job.hpp"

#include <cstdint>

namespace reckon::fuzz {
namespace {

/// Larger ones are proved and not run: that takes too long here.
constexpr std::uint64_t k_most_bytes = std::uint64_t{1} << 24U;
constexpr std::size_t k_most_ops = 20'000;

std::uint64_t memory_of(const Schedule& schedule) {
  std::uint64_t bytes = 0;
  for (const RankProgram& rank : schedule.ranks) {
    for (const std::uint64_t buffer : rank.buffer_bytes) {
      bytes = std::max(bytes, bytes + buffer);
    }
  }
  return bytes;
}

void run_schedule(Schedule schedule) {
  for (RankProgram& rank : schedule.ranks) {
    for (LaneProgram& lane : rank.lanes) {
      lane.scale_delays(0);
    }
  }
  const auto job = value_or_refusal([&] { return std::make_unique<test::Job>(schedule); });
  for (std::uint32_t iteration = 0; job && iteration < 2; ++iteration) {
    if (const int wrong = (*job)->iterate(iteration); wrong != 0) {
      broken(fmt::format("the checker proved a schedule with {} wrong sums: {}", wrong,
                         (*job)->error()));
    }
  }
}

bool run_plan(std::string_view text) {
  const auto plan = value_or_refusal([&] { return plan_from_json(parse_json(text, "f"), "f"); });
  const auto fits = [&] {
    check_in_place(*plan, "f");
    check_memory(*plan, false, plan->update.has_value());
    return true;
  };
  if (!plan || !value_or_refusal(fits, {ErrorKind::input, ErrorKind::unavailable})) {
    return false;
  }
  const auto usual = value_or_refusal([&] { return lower(*plan); });
  if (!usual) {
    return false;
  }
  JobSchedules schedules{*usual, {}, {}};
  if (plan->update && !plan->asynchronous) {
    schedules.saving = with_snapshot(*usual);
    schedules.restoring = restoring(*schedules.saving);
  }
  const Proof proof = proof_of(schedules, *plan, "f");
  if (proof.fault.empty() && proof.ops <= k_most_ops && memory_of(*usual) <= k_most_bytes) {
    run_schedule(*usual);
  }
  return proof.fault.empty();
}

// --- what is changed -----------------------------------------------------------------------------

std::vector<Tensor> few_tensors() {
  return {{"a", 900, DType::fp32}, {"b", 301, DType::bf16}, {"c", 77, DType::fp16}};
}
std::vector<Tensor> few_parameters() {
  return {{"a", 900, DType::fp32}, {"b", 77, DType::fp32}};
}

PlanOptions short_parts() {
  PlanOptions options;
  options.part_bytes = 1024;
  options.window_parts = 2;
  return options;
}

/// Every strategy, and one of them with everything that changes what is done.
std::vector<Plan> plans_of_shares() {
  std::vector<Plan> plans;
  test::for_each_shape({3}, {2}, {2}, [&](const test::Shape& shape) {
    plans.push_back(test::plan_of(shape, short_parts(), few_tensors()));
  });
  const auto add = [&](auto change, const test::Shape& shape = {"byteps_split", 3, 1, 1}) {
    PlanOptions options = short_parts();
    change(options);
    plans.push_back(test::plan_of(shape, options, few_parameters()));
  };
  for (const UpdatePlace place : {UpdatePlace::server, UpdatePlace::worker}) {
    add([&](PlanOptions& options) {
      options.optimizer = Optimizer::adam;
      options.update_at = place;
    });
  }
  add([](PlanOptions& options) {
    options.optimizer = Optimizer::sgd;
    options.async_steps = 2;
  });
  add([](PlanOptions& options) { options.fixed_point = FixedPointRequest{}; });
  add([](PlanOptions& options) {
    options.forward_seconds = options.backward_seconds = 1e-4;
    options.order = Order::priority;
  });
  PlanOptions in_place = short_parts();
  in_place.sums_in_place = true;
  plans.push_back(test::plan_for(test::machine_that_shares(), test::workload(few_tensors()), 3, 1,
                                 in_place, 2));
  return plans;
}

/// Trees of each collective, in one machine; two rings of memory devices.
std::vector<Plan> plans_of_trees() {
  std::vector<Plan> plans;
  std::mt19937_64 random(7);
  const Profile machine = test::random_inside_profile(random, 4);
  const Workload gradient = test::workload(few_parameters());
  for (const Collective collective :
       {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather,
        Collective::broadcast, Collective::reduce}) {
    InsidePlanOptions options;
    options.collective = collective;
    options.plan.part_bytes = 1024;
    plans.push_back(
        plan_inside({machine, gradient, {"p", digest_of("p")}, {"w", digest_of("w")}}, options));
  }
  Profile devices = test::empty_profile("devices");
  devices.machines = {{"gpu", "gpu", 3, 8, 0}, {"cpu", "cpu", 2, 8, 0}};
  test::add_port(devices, "gpu", 1e9);
  test::add_port(devices, "cpu", 1e9);
  const Roles roles = default_roles(devices, 3, 2, 1);
  PlanOptions options = short_parts();
  options.strategy = "coarse";
  plans.push_back(plan_proxies(test::inputs_of(devices, gradient, roles), options,
                               {.proxy_bytes = k_all_proxy_bytes}));
  return plans;
}

/// Machines of eight GPUs whose heads sum first; a torus.
std::vector<Plan> plans_of_requests() {
  std::vector<Plan> plans;
  const auto add = [&](const std::string& profile, const std::string& strategy, auto change) {
    PlanRequest request;
    request.options = short_parts();
    request.options.strategy = strategy;
    change(request);
    const PlanDocuments documents{test::shipped_profile(profile),
                                  test::workload(few_parameters()),
                                  std::nullopt,
                                  {"p", digest_of("p")},
                                  {"w", digest_of("w")},
                                  std::nullopt};
    plans.push_back(plan_as_asked(documents, request));
  };
  add("h100-cluster", "hierarchical_split", [](PlanRequest& request) {
    request.workers = 2;
    request.places = PlacesAsked::gpu;
  });
  add("ace-torus", "torus", [](PlanRequest& request) { request.shape = "2x2x1"; });
  return plans;
}

std::vector<std::string> plan_texts() {
  std::vector<std::string> texts;
  for (const auto& plans : {plans_of_shares(), plans_of_trees(), plans_of_requests()}) {
    for (Plan plan : plans) {
      plan.candidates.clear(); // what decides nothing is not worth a change
      plan.quantities.clear();
      texts.push_back(canonical_text(plan));
    }
  }
  return texts;
}

} // namespace

std::vector<Target> plan_targets() {
  return {{"plan", run_plan, plan_texts, true}};
}

} // namespace reckon::fuzz
