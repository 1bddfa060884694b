// SPDX-License-Identifier: Apache-2.0
#include "strategies/job.hpp"

#include "core/error.hpp"
#include "strategies/parts.hpp"

#include <fmt/format.h>

namespace reckon {

Job job_without_ranks(const Workload& workload, const PlanOptions& options) {
  Job job{workload, layout_of(workload), {}, {}, {}, {}};
  if (job.layout.total_bytes == 0) {
    fail(ErrorKind::input, fmt::format("workload '{}' has no gradient bytes", workload.name));
  }
  for (const Tensor& t : workload.tensors) {
    job.ends.push_back((job.ends.empty() ? 0 : job.ends.back()) + static_cast<double>(t.bytes()));
  }
  const auto [forward, backward] = pass_seconds(workload, options);
  if (forward + backward > 0) {
    job.passes = passes_of(job.layout, workload, forward, backward);
    job.forward_s = forward;
    job.backward_s = backward;
  }
  return job;
}

Job job_between(const PlanInputs& inputs, const PlanOptions& options, const CostModel& model) {
  Job job = job_without_ranks(inputs.workload, options);
  for (std::size_t r = 0; r < model.ranks().size(); ++r) {
    const RankModel& rank = model.ranks()[r];
    if (rank.worker) {
      job.workers.push_back(r);
    } else if (rank.server) {
      job.devices.push_back(r);
    }
  }
  return job;
}

} // namespace reckon
