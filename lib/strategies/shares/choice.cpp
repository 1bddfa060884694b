// SPDX-License-Identifier: Apache-2.0
#include "strategies/shares/choice.hpp"

#include "strategies/update.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace reckon {
namespace {

/// Bytes that a ring with unequal ports has under way at least, over all its ranks, for hosts
/// that are late. Not much more: all of it waits before the slowest port, on one connection, and
/// once that has as much in it as TCP allows, its acknowledgements, which wait behind the port's
/// own data, hold the next bytes back. On netlab (200 and 150 Mbit/s, TCP windows of 1 MiB) 1 MiB
/// in 4 ranks takes 1.002 times the bound, 2 MiB 1.02, all at once 1.08; equal ports do not care.
constexpr double k_ring_bytes = 1 << 20;

/// Whether the workers' ports differ by more than measurements do.
bool unequal_ports(const CostModel& model) {
  double least = std::numeric_limits<double>::infinity(), greatest = 0;
  for (const RankModel& r : model.ranks()) {
    if (r.worker) {
      least = std::min(least, r.port_bytes_per_s);
      greatest = std::max(greatest, r.port_bytes_per_s);
    }
  }
  constexpr double k_as_equal = 0.97;
  return least < k_as_equal * greatest;
}

/// Parts that a worker has under way in a lane. On ports: what is in the pipeline when every
/// port is busy, twice. A part waits for those of the other workers at its server's ingress (n
/// parts) and for the sums to the others at its egress (n parts); the other half keeps the ports
/// busy when workers drift apart. More when a part is shorter on the wire than the way there and
/// back. On one machine: two for each rank that can work at once. More are no longer in the caches
/// when they are summed: of 8 ranks on 2 processors 4 to 5 parts are 1.05 to 1.75 times as fast
/// as 40, over each transport. In a ring with unequal ports what keeps them busy, and no less
/// than k_ring_bytes.
double window_for(const SharesJob& job, double part_bytes, const Solution& solution) {
  const CostModel& model = job.model();
  const double rate = model.one_machine() ? model.shared_rate(2, part_bytes).mid
                                          : model.ranks().front().port_bytes_per_s;
  const double round_trip_parts = 2 * model.latency_s() * rate / part_bytes;
  if (model.one_machine()) {
    const auto at_work = static_cast<double>(std::min(model.ranks().size(), model.cores()));
    return std::max(4.0, 2 * at_work) + std::min(64.0, std::ceil(round_trip_parts));
  }
  if (solution.ring && unequal_ports(model)) {
    // A part is sent on n times before its sum is back, and each port sends 2 (n - 1) / n of the
    // gradient: by Little's law n / (2 (n - 1)) equal parts keep it busy.
    const double hops = static_cast<double>(job.workers.size()), others = std::max(1.0, hops - 1);
    const double busy = std::ceil(hops / (2 * others) * (1 + round_trip_parts / 2));
    return std::max(busy, std::floor(k_ring_bytes / (hops * part_bytes)));
  }
  const double workers = static_cast<double>(job.workers.size());
  const auto groups = static_cast<double>(solution.groups);
  const double waits = groups > 0 ? 2 * (groups + workers / groups) : workers;
  return std::max(std::ceil(4 * waits) + std::ceil(round_trip_parts), 8.0);
}

/// The shortest parts worth a look. On one machine none shorter than those that were rehearsed:
/// what these take nobody knows, unless they are needed for each rank to have some.
double shortest_part(const SharesJob& job) {
  const CostModel& model = job.model();
  if (!model.one_machine()) {
    return 16 * 1024;
  }
  constexpr double k_least = 64 * 1024, k_parts_of_rank = 4;
  double rehearsed = model.rehearsed().empty() ? k_least : std::numeric_limits<double>::infinity();
  for (const CostModel::Rehearsed& one : model.rehearsed()) {
    rehearsed = std::min(rehearsed, one.part_bytes);
  }
  const double of_rank = job.bytes() / k_parts_of_rank / static_cast<double>(model.ranks().size());
  return std::max(k_least, std::exp2(std::floor(std::log2(std::min(rehearsed, of_rank)))));
}

/// The one asked for, or all powers of two that are worth a look.
std::vector<double> part_sizes(const SharesJob& job) {
  if (job.options.part_bytes) {
    return {static_cast<double>(*job.options.part_bytes)};
  }
  constexpr double k_most = 16 * 1024 * 1024;
  const double least = shortest_part(job);
  std::vector<double> sizes;
  for (double s = least; s <= k_most && s < 2 * job.bytes(); s *= 2) {
    sizes.push_back(s);
  }
  if (sizes.empty()) {
    sizes.push_back(least);
  }
  return sizes;
}

/// The largest of those that are as good as the best: larger parts cost less of what the profile
/// may not know.
std::size_t largest_of_best(const std::vector<double>& seconds, double tolerance) {
  const double shortest = *std::min_element(seconds.begin(), seconds.end());
  std::size_t i = seconds.size() - 1;
  while (i > 0 && seconds[i] > (1 + tolerance) * shortest) {
    --i;
  }
  return i;
}

/// The gradient in parts of `part_bytes`, with the given window or the one solved for these parts.
PartShape shape_for(const SharesJob& job, double part_bytes, const Solution& solution) {
  PartShape shape;
  shape.dtype = job.dtype;
  shape.part_count = std::max(1.0, std::ceil(job.bytes() / part_bytes));
  shape.part_bytes = std::min(part_bytes, std::ceil(job.bytes() / shape.part_count));
  shape.window_parts = job.options.window_parts ? static_cast<double>(*job.options.window_parts)
                                                : window_for(job, part_bytes, solution);
  return shape;
}

} // namespace

double tolerance(const SharesJob& job) {
  return job.model().one_machine() ? 0.01 : 0.002;
}

void scale(Prediction& prediction, double exchanges) {
  for (double* const seconds : {&prediction.bound_seconds, &prediction.lo_seconds,
                                &prediction.mid_seconds, &prediction.hi_seconds}) {
    *seconds *= exchanges;
  }
  if (prediction.busiest_seconds) {
    *prediction.busiest_seconds *= exchanges;
  }
  for (Term& t : prediction.terms) {
    t.seconds *= exchanges;
  }
}

namespace {

/// Sums in place, in parts that a service and its peers take turns at evenly; nothing where they
/// cannot be made so.
void consider_in_place(const SharesJob& job, const Load& load, Choice& best) {
  constexpr std::uint64_t k_part_bytes = 1 << 20; // as measured; it decides nothing but the balance
  if (best.solution.hands_on() || !job.why_not_in_place.empty() ||
      !job.options.sums_in_place.value_or(true)) {
    return;
  }
  PartShape shape = shape_for(
      job, static_cast<double>(job.options.part_bytes.value_or(k_part_bytes)), best.solution);
  shape.in_place = true;
  Prediction p = predict(job.model(), best.solution, load, shape);
  lower_bound(p, job.least());
  const bool taken = job.options.sums_in_place || p.mid_seconds < best.prediction.mid_seconds;
  if (!job.options.sums_in_place) {
    best.other_sums_seconds = taken ? best.prediction.mid_seconds : p.mid_seconds;
  }
  if (taken) {
    best.shape = shape;
    best.prediction = std::move(p);
  }
}

} // namespace

Choice evaluate(const SharesJob& job, const std::string& strategy) {
  Choice best;
  best.solution = solve(strategy, job.model(), job.bytes());
  best.solution.ring_order = best.solution.ring ? job.ring_order : std::vector<std::size_t>();
  if (job.options.async_steps && best.solution.hands_on()) {
    best.solution.reason = "asynchronous training needs a server that keeps the latest parameters";
  }
  if (best.solution.hands_on() && job.options.sums_in_place.value_or(false)) {
    best.solution.reason = "it hands sums on from rank to rank, and does not make them in place";
  }
  if (!best.solution.reason.empty()) {
    return best;
  }
  const Load load = job.load_of(best.solution, best.solution.share_bytes);
  best.exact_port_seconds = load.port_seconds;
  const std::vector<double> sizes = part_sizes(job);
  std::vector<Prediction> predictions;
  std::vector<double> predicted_s, compared_s;
  for (const double size : sizes) {
    const PartShape shape = shape_for(job, size, best.solution);
    predictions.push_back(predict(job.model(), best.solution, load, shape));
    lower_bound(predictions.back(), job.least());
    const Prediction& p = predictions.back();
    predicted_s.push_back(p.mid_seconds);
    compared_s.push_back(p.mid_seconds);
    if (best.solution.ring && !job.model().one_machine()) {
      // What a port's other parts hide of the chain counts, too: with parts as long as that only
      // just allows, every rank that is late makes all others wait.
      compared_s.back() =
          p.mid_seconds - p.terms.back().seconds + ring_chain_seconds(job.model(), load, shape);
    }
  }
  std::size_t chosen = largest_of_best(compared_s, tolerance(job));
  constexpr double k_clearly = 0.95;
  if (const std::size_t longer = largest_of_best(predicted_s, tolerance(job));
      predicted_s[longer] < k_clearly * predicted_s[chosen]) {
    chosen = longer;
  }
  best.shape = shape_for(job, sizes[chosen], best.solution);
  best.shape.part_bytes = sizes[chosen];
  best.prediction = std::move(predictions[chosen]);
  consider_in_place(job, load, best);
  if (job.options.optimizer) {
    best.prediction =
        choose_update(job.model(), best.solution, best.solution.share_bytes, best.shape,
                      best.prediction, *job.options.optimizer, job.options.update_at)
            .prediction;
  }
  scale(best.prediction, job.steps());
  return best;
}

} // namespace reckon
