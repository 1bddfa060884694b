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

/// `run --reprofile-every`: the plan's documents, to make it anew.
struct AdaptArguments {
  std::optional<std::uint32_t> every; ///< counted iterations between pauses
  std::string profile, workload, roles;
  std::string gain; ///< the gain that a change of plan must reach; empty: k_replan_margin
};

struct AdaptInputs {
  std::uint32_t every = 0;
  double gain = k_replan_margin; ///< fraction of the running plan's time that a change must save
  Profile profile;
  Workload workload;
  std::optional<Roles> roles;
};

/// Reads the documents. Throws Error{usage} or Error{input} unless the plan names them and they
/// give a plan that can be made anew while it runs. `plans_anew`: also plans with them, and throws
/// when that gives another plan.
[[nodiscard]] AdaptInputs read_adapt_inputs(const AdaptArguments& arguments, const Plan& plan,
                                            const std::string& plan_name,
                                            const std::string& transport, bool plans_anew);

/// The result of a run whose plan may have changed.
struct AdaptedResult {
  JobResult first; ///< of the plan as given; its verification is of all iterations
  ReprofilingReport reprofiling;
};

/// run_rank() with pauses that measure the links again; if a new plan is better, the job continues
/// with it. Rank 0 plans, alone: the ranks may share processors, and the others get the same plan
/// from it. `schedules_of` lowers a plan.
[[nodiscard]] AdaptedResult
run_adapting(Rendezvous& rendezvous, const Plan& plan, AdaptInputs inputs,
             const RunOptions& options,
             const std::function<JobSchedules(const Plan&)>& schedules_of,
             const std::function<void(std::size_t, double)>& progress);

} // namespace reckon
