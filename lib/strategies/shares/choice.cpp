// SPDX-License-Identifier: Apache-2.0
#include "strategies/shares/choice.hpp"

#include "strategies/shares/shape.hpp"
#include "strategies/update.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace reckon {
namespace {

/// The one asked for, or all powers of two that are worth a look.
std::vector<double> part_sizes(const SharesJob& job) {
  if (job.options.part_bytes) {
    return {static_cast<double>(*job.options.part_bytes)};
  }
  constexpr double k_most = 16 * 1024 * 1024;
  const double least = job.model().one_machine() ? 64 * 1024 : 16 * 1024;
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

} // namespace

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

Choice evaluate(const SharesJob& job, const std::string& strategy) {
  Choice best;
  best.solution = solve(strategy, job.model(), job.bytes());
  best.solution.ring_order = best.solution.ring ? job.ring_order : std::vector<std::size_t>();
  if (job.options.async_steps && best.solution.ring) {
    best.solution.reason = "asynchronous training needs a server that keeps the latest parameters";
  }
  if (!best.solution.reason.empty()) {
    return best;
  }
  const std::vector<double> sizes = part_sizes(job);
  std::vector<Prediction> predictions;
  std::vector<double> predicted_s, compared_s;
  for (const double size : sizes) {
    const PartShape shape = shape_for(job, size, best.solution.ring);
    predictions.push_back(predict(job.model(), best.solution, best.solution.share_bytes, shape));
    lower_bound(predictions.back(), job.least());
    const Prediction& p = predictions.back();
    predicted_s.push_back(p.mid_seconds);
    compared_s.push_back(p.mid_seconds);
    if (best.solution.ring && !job.model().one_machine()) {
      // What a port's other parts hide of the chain counts, too: with parts as long as that only
      // just allows, every rank that is late makes all others wait.
      compared_s.back() =
          p.mid_seconds - p.terms.back().seconds + ring_chain_seconds(job.model(), shape);
    }
  }
  std::size_t chosen = largest_of_best(compared_s, tolerance(job));
  constexpr double k_clearly = 0.95;
  if (const std::size_t longer = largest_of_best(predicted_s, tolerance(job));
      predicted_s[longer] < k_clearly * predicted_s[chosen]) {
    chosen = longer;
  }
  best.shape = shape_for(job, sizes[chosen], best.solution.ring);
  best.shape.part_bytes = sizes[chosen];
  best.prediction = std::move(predictions[chosen]);
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
