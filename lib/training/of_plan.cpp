// SPDX-License-Identifier: Apache-2.0
#include "training/of_plan.hpp"

#include "core/error.hpp"
#include "documents/document.hpp"
#include "planning/planned_profile.hpp"
#include "run/checks.hpp"
#include "strategies/parts.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace reckon {

void require_plain_sums(const Plan& plan, const std::string& file) {
  const char* const what = plan.collective != Collective::all_reduce ? "is no all-reduce"
                           : plan.asynchronous                       ? "is asynchronous"
                           : plan.update    ? "makes the optimizer's step, which is the program's"
                           : plan.one_queue ? "shows a deadlock"
                                            : nullptr;
  if (what != nullptr) {
    fail(ErrorKind::input, fmt::format("{}: the plan {}; plan for plain sums", file, what));
  }
  if (plan.passes && !in_gradient_order(plan.parts)) {
    fail(ErrorKind::input,
         fmt::format("{}: the plan hides traffic behind the next forward pass, and a training "
                     "program waits for all gradients before it; plan with --order gradient",
                     file));
  }
}

/// Whether the plan's parts are cut from where the workload's gradients lie.
static bool lies_as_planned(const Workload& workload, const Plan& plan) {
  const GradientLayout layout = layout_of(plan.wire ? as_sent(workload, *plan.wire) : workload);
  return layout.runs == plan.runs && layout.total_bytes == plan.gradient_bytes;
}

Workload workload_of(const Plan& plan, const std::string& plan_file, const std::string& workload) {
  std::optional<PlannedWorkload> found;
  if (workload.empty()) {
    found = find_workload(plan.workload, plan_file);
    if (!found) {
      fail(ErrorKind::input,
           fmt::format("neither a shipped workload nor a file beside {} is '{}' ({}), which it was "
                       "made from; copy its file there, or name it as the workload",
                       plan_file, plan.workload.name, plan.workload.digest));
    }
  } else {
    found = PlannedWorkload{read_workload(workload), workload};
  }
  if (!lies_as_planned(found->workload, plan)) {
    fail(ErrorKind::input, fmt::format("{} is not the workload that {} was made from: its "
                                       "gradients lie otherwise",
                                       found->file, plan_file));
  }
  return std::move(found->workload);
}

Workload parts_as_workload(const Plan& plan, const std::string& plan_file) {
  const std::vector<DType> dtypes = part_dtypes(plan);
  Workload workload;
  workload.name = plan.workload.name;
  for (const std::size_t p : plan.parts.by_offset()) {
    workload.tensors.push_back({fmt::format("part {}", p), // as the plan counts
                                plan.parts.bytes[p] / size_of(dtypes[p]),
                                plan.wire ? DType::fp32 : dtypes[p]});
  }
  if (!lies_as_planned(workload, plan)) {
    fail(ErrorKind::input,
         fmt::format("{}: the runs of its gradient do not lie as a workload's do, "
                     "one after the other at multiples of 64 bytes; plan again",
                     plan_file));
  }
  return workload;
}

std::vector<Staging::Place> places_of(const Workload& workload, const GradientLayout& layout) {
  std::vector<Staging::Place> places;
  for (std::size_t t = 0; t < workload.tensors.size(); ++t) {
    const Tensor& tensor = workload.tensors[t];
    places.push_back({{layout.tensor_offset_bytes[t], tensor.bytes()}, tensor.dtype});
  }
  return places;
}

std::vector<Stretch> stretches_of(const Plan& plan) {
  const std::uint64_t times = plan.wire ? size_of(DType::fp32) / size_of(*plan.wire) : 1;
  std::vector<Stretch> stretches;
  for (std::size_t p = 0; p < plan.parts.size(); ++p) {
    stretches.push_back({times * plan.parts.offset_bytes[p], times * plan.parts.bytes[p]});
  }
  return stretches;
}

JobEnvironment environment_for(const Plan& plan, const std::string& file) {
  const std::optional<JobEnvironment> job = job_from_environment();
  const std::size_t ranks = plan.ranks.size();
  if (!job && ranks > 1) {
    fail(ErrorKind::input,
         fmt::format("{}: the plan is for {} ranks and no launcher says which this is; set RANK, "
                     "WORLD_SIZE, MASTER_ADDR and MASTER_PORT",
                     file, ranks));
  }
  JobEnvironment mine = job.value_or(JobEnvironment());
  check_rank_count(plan, file, mine.size);
  return mine;
}

} // namespace reckon
