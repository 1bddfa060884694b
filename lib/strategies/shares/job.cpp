// SPDX-License-Identifier: Apache-2.0
#include "strategies/shares/job.hpp"

#include "core/error.hpp"
#include "core/log.hpp"
#include "documents/cells.hpp"
#include "equations/fixed_point.hpp"
#include "strategies/predict.hpp"
#include "strategies/ring_order.hpp"
#include "strategies/strategy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

namespace reckon {
namespace {

DType most_common(const GradientLayout& layout) {
  std::map<DType, std::uint64_t> bytes;
  for (const DTypeRun& run : layout.runs) {
    bytes[run.dtype] += run.bytes;
  }
  const auto most = std::max_element(
      bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == bytes.end() ? DType::fp32 : most->first;
}

std::optional<ContentionFactors> contention_of(const SharesJob& job) {
  const std::optional<ContentionRequest>& asked = job.options.contention;
  if (!asked) {
    return std::nullopt;
  }
  if (!job.passes || job.options.async_steps) {
    fail(ErrorKind::input,
         fmt::format("--contention {}: {}", asked->operation,
                     job.passes ? "asynchronous plans are predicted without it"
                                : "without forward and backward passes nothing is "
                                  "computed; give --forward and --backward"));
  }
  return contention_factors(job.inputs.profile, *asked);
}

constexpr double k_typical_part_bytes = 1 << 20; // the part size is not known yet

/// What the ranks of an asynchronous plan add up, as bytes of sums: each worker's gradient or
/// change is applied by itself and the latest copied for it; a worker that sends changes copies,
/// steps and subtracts.
void load_async(const SharesJob& job, const Solution& solution, Load& load) {
  const CostModel& model = job.model();
  load.operands = 2;
  const double sums = model.reduce_rate(job.dtype, 1, load.operands, k_typical_part_bytes).mid;
  const bool changes = job.options.update_at != UpdatePlace::server;
  for (std::size_t r = 0; r < load.summed_bytes.size(); ++r) {
    const RankModel& rank = model.ranks()[r];
    // Without a rate in the profile steps cost nothing.
    const double step = sums / model.step_rate(rank.machine, *job.options.optimizer, 1).mid;
    const double apply = changes ? std::max(1.0, step) : step;
    load.summed_bytes[r] =
        solution.share_bytes[r] * static_cast<double>(job.workers.size()) * (apply + 1);
    if (changes && rank.worker) {
      load.summed_bytes[r] += job.bytes() * (2 + step);
    }
  }
}

/// Lanes that any strategy needs. Ranks that share a machine have one: they already are several
/// threads.
int needed_lanes(const SharesJob& job) {
  const CostModel& model = job.model();
  int needed = 1;
  for (const std::string& name : strategy_names()) {
    const Solution solution = solve(name, model, job.bytes());
    if (model.one_machine() || !solution.reason.empty() ||
        (job.options.async_steps && solution.hands_on())) {
      continue;
    }
    Load load = job.load_of(solution, solution.share_bytes);
    if (job.options.async_steps) {
      load_async(job, solution, load);
    }
    // A ring sums all it will sum in its first half, the reduce-scatter. What a worker converts
    // before it sends it, and when it comes back, waits for a lane that is busy with other parts:
    // in plays, lanes that are at work for a quarter of the time let little wait.
    const bool converts = job.options.wire || job.options.fixed_point;
    needed = std::max(needed, lanes_needed(model, load, job.dtype, k_typical_part_bytes,
                                           converts        ? 0.25
                                           : solution.ring ? 0.5
                                                           : 1));
  }
  return needed;
}

/// `lanes`: as the roles give them; 0: to be solved.
void choose_lanes(SharesJob& job, int lanes) {
  job.lanes_given = lanes > 0;
  if (job.lanes_given && lanes % job.model().ports() != 0) {
    log(LogLevel::warn,
        "--lanes {}: machines with {} network ports were measured, and a lane uses one of them; "
        "{} or a multiple use all alike",
        lanes, job.model().ports(), job.model().ports());
  }
  job.ways.set_lanes(std::max(1, lanes));
  if (lanes == 0) {
    job.ways.set_lanes(needed_lanes(job));
  }
}

void check_options(const SharesJob& job) {
  const PlanOptions& options = job.options;
  if (options.async_steps && (!options.optimizer || state_arrays(*options.optimizer) > 0)) {
    fail(ErrorKind::input, "--async is for --optimizer sgd: an optimizer's state would be another "
                           "one at every worker (BytePS proves nothing for that)");
  }
  if (options.fixed_point && options.optimizer) {
    fail(ErrorKind::input, "--reduction fixed: sums gradients; leave out --optimizer and --async");
  }
  if (options.fixed_point && fixed_point_limit(options.fixed_point->bits, job.workers.size()) < 1) {
    fail(ErrorKind::input,
         fmt::format("--reduction fixed:{}: the sum of {} workers does not fit in {} bits",
                     options.fixed_point->bits, job.workers.size(), options.fixed_point->bits));
  }
}

/// Where the ways between machines, or the racks that they are in, differ: the best one.
std::vector<std::size_t> ring_order_of(const SharesJob& job) {
  const bool differ = job.pairs() || job.model().racks().size() > 1;
  if (!differ || job.model().one_machine() || job.options.ring_order == RingOrdering::given) {
    return job.workers;
  }
  return best_ring_order(job.ways.between(k_typical_part_bytes).network, job.workers).ranks;
}

std::string why_not_in_place(const SharesJob& job) {
  const CostModel& model = job.model();
  const PlanOptions& options = job.options;
  if (job.workers.size() < 2) {
    return "one worker has nothing to add";
  }
  if (!model.one_machine()) {
    return "the ranks are on several machines, and only ranks of one read each other's memory";
  }
  if (model.transport() != "host") {
    return fmt::format("--transport {}: ranks read each other's memory over host alone",
                       model.transport());
  }
  const std::string sent =
      options.async_steps   ? "--async" // makes steps, too
      : options.optimizer   ? fmt::format("--optimizer {}", name_of(*options.optimizer))
      : options.fixed_point ? fmt::format("--reduction fixed:{}", options.fixed_point->bits)
      : options.wire        ? fmt::format("--wire {}", name_of(*options.wire))
                            : "";
  if (!sent.empty()) {
    return sent + " needs gradients that are sent";
  }
  if (!model.in_place_rate(job.dtype, 1, 2)) {
    return fmt::format("profile '{}' has no {} cells; `reckon probe` measures them",
                       job.inputs.profile.name, k_sum_in_place);
  }
  return "";
}

void check_dtypes(const SharesJob& job) {
  for (const DTypeRun& run : job.layout.runs) {
    if (job.options.fixed_point && run.dtype != DType::fp32) {
      fail(ErrorKind::input, fmt::format("--reduction fixed: is for gradients of fp32, and "
                                         "workload '{}' has some of {}",
                                         job.inputs.workload.name, name_of(run.dtype)));
    }
  }
}

} // namespace

Load SharesJob::load_of(const Solution& solution, std::span<const double> loads) const {
  Load load = reckon::load_of(solution, model(), loads);
  if (options.wire || options.fixed_point) {
    for (const std::size_t worker : workers) {
      load.summed_bytes[worker] += 2 * bytes();
    }
  }
  return load;
}

SharesJob::SharesJob(const PlanInputs& the_inputs, const PlanOptions& the_options)
    : Job(job_without_ranks(the_inputs.workload, the_options)), inputs(the_inputs),
      options(the_options), dtype(most_common(layout)), ways(inputs, options) {
  workers = model().workers();
  contention = contention_of(*this);
  choose_lanes(*this, given_lanes(inputs.roles));
  check_options(*this);
  ring_order = ring_order_of(*this);
  check_dtypes(*this);
  why_not_in_place = reckon::why_not_in_place(*this);
  if (options.sums_in_place.value_or(false) && !why_not_in_place.empty()) {
    fail(ErrorKind::input, fmt::format("--sums in-place: {}; leave --sums out", why_not_in_place));
  }
}

} // namespace reckon
