// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/document.hpp"
#include "documents/report.hpp"
#include "launch/rendezvous.hpp"
#include "run/job.hpp"
#include "strategies/proxies/replan.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace reckon {

/// `run --reprofile-every`: what the plan was made from, to make it anew.
struct AdaptArguments {
  std::optional<std::uint32_t> every; ///< counted iterations between pauses
  std::string profile, workload, roles;
  std::string gain; ///< what a change of plan must save; empty: k_replan_margin
};

struct AdaptInputs {
  std::uint32_t every = 0;
  double gain = k_replan_margin; ///< part of the running plan's time that a change must save
  Profile profile;
  Workload workload;
  std::optional<Roles> roles;
};

/// Reads the documents. Throws Error{usage} or Error{input} unless they are the ones that the plan
/// names and give a plan that can be made anew while it runs. `plans_anew`: also plans with them,
/// and throws when that gives another plan.
[[nodiscard]] AdaptInputs read_adapt_inputs(const AdaptArguments& arguments, const Plan& plan,
                                            const std::string& plan_name,
                                            const std::string& transport, bool plans_anew);

/// What a run gave whose plan may have changed.
struct AdaptedResult {
  JobResult first; ///< of the plan as given; its verification is of all iterations
  ReprofilingReport reprofiling;
};

/// run_rank() with pauses in which the links are measured again; where a plan made anew is better,
/// the job goes on with that. Rank 0 plans, alone: the ranks may share processors, and what it
/// sends to the others is the same everywhere. `schedules_of` lowers a plan.
[[nodiscard]] AdaptedResult
run_adapting(Rendezvous& rendezvous, const Plan& plan, AdaptInputs inputs,
             const RunOptions& options,
             const std::function<JobSchedules(const Plan&)>& schedules_of,
             const std::function<void(std::size_t, double)>& progress);

} // namespace reckon
