// SPDX-License-Identifier: Apache-2.0
#include "strategies/job.hpp"

#include "core/error.hpp"
#include "strategies/parts.hpp"
#include "strategies/ways.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace reckon {

void check_workload(const Workload& workload, const PlanOptions& options) {
  if (workload.bytes() == 0) {
    fail(ErrorKind::input, fmt::format("workload '{}' has no gradient bytes", workload.name));
  }
  const auto [forward, backward] = pass_seconds(workload, options);
  if (options.order == Order::priority && forward + backward <= 0) {
    fail(ErrorKind::input, fmt::format("--order priority: workload '{}' has no forward and "
                                       "backward times; give --forward and --backward",
                                       workload.name));
  }
  for (const Tensor& t : workload.tensors) {
    if (options.optimizer && t.dtype != DType::fp32) {
      fail(ErrorKind::input,
           fmt::format("--optimizer {}: steps are fp32, and workload '{}' has gradients of {}; "
                       "leave the step out",
                       name_of(*options.optimizer), workload.name, name_of(t.dtype)));
    }
  }
}

Job job_without_ranks(const Workload& workload, const PlanOptions& options) {
  check_workload(workload, options);
  Job job{workload, layout_of(workload), {}, {}, {}, {}};
  for (const Tensor& t : workload.tensors) {
    job.ends.push_back((job.ends.empty() ? 0 : job.ends.back()) + static_cast<double>(t.bytes()));
  }
  job.wire = options.wire;
  const auto [forward, backward] = pass_seconds(workload, options);
  if (forward + backward > 0) {
    job.passes = passes_of(job.layout, workload, forward, backward);
    job.forward_s = forward;
    job.backward_s = backward;
  }
  return job;
}

Job job_between(const PlanInputs& inputs, const PlanOptions& options, const Ways& ways) {
  Job job = job_without_ranks(inputs.workload, options);
  job.workers = ways.workers();
  job.devices = ways.servers();
  return job;
}

int given_lanes(const Roles& roles) {
  int lanes = 0;
  for (const RoleGroup& group : roles.groups) {
    lanes = std::max(lanes, group.lanes);
  }
  return lanes;
}

} // namespace reckon
