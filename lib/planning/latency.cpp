// SPDX-License-Identifier: Apache-2.0
#include "planning/latency.hpp"

#include "core/units.hpp"
#include "strategies/lower.hpp"
#include "strategies/plan_network.hpp"
#include "strategies/play.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace reckon {
namespace {

/// Plans that latency dominates have few parts; those of many, or of many ranks, are not played
/// once more.
constexpr std::size_t k_most_parts = 2000, k_most_parts_of_ranks = 200'000;

double longest_latency(const PlayNetwork& network) {
  double longest = network.latency_s;
  for (const std::vector<double>& row : network.path_latency_s) {
    for (const double seconds : row) {
      longest = std::max(longest, seconds);
    }
  }
  return longest;
}

} // namespace

void add_latency(Plan& plan, const Profile& profile) {
  Prediction& p = plan.prediction;
  if (plan.passes || plan.asynchronous || plan.one_queue || plan.parts.size() > k_most_parts ||
      plan.parts.size() * plan.ranks.size() > k_most_parts_of_ranks ||
      p.mid_seconds <= 2 * p.busy_seconds()) {
    return;
  }
  const PlanNetwork between = network_of(plan, profile);
  const double latency_s = longest_latency(between.network);
  if (latency_s <= 0) {
    return;
  }
  PlayNetwork without = between.network;
  without.latency_s = 0;
  without.path_latency_s.clear();
  const Schedule schedule = lower(plan);
  const double all_s = play(schedule, between.network, between.cost).total_seconds;
  const double rest_s = play(schedule, without, between.cost).total_seconds;
  const double part = all_s > 0 ? 1 - rest_s / all_s : 0;
  const double seconds = part * p.mid_seconds;
  if (part < 0.5) {
    return;
  }
  const double steps = std::round((all_s - rest_s) / latency_s);
  plan.quantities.push_back(
      {std::string(k_latency_quantity),
       seconds,
       "of the predicted time: that of a play less that of one without latency",
       {{"steps", steps}, {"latency_seconds", latency_s}}});
  p.relief = fmt::format(
      "latency is {:.0f} % of the predicted time: {} one after another, of {} each; fewer steps or "
      "a "
      "shorter latency help (1 us less saves {}), more gradient in one exchange costs little, and "
      "more bandwidth saves {} at most",
      100 * part, counted(static_cast<std::uint64_t>(steps), "write"), to_text(Seconds(latency_s)),
      to_text(Seconds(std::min(seconds, steps * 1e-6))), to_text(Seconds(p.busy_seconds())));
}

} // namespace reckon
