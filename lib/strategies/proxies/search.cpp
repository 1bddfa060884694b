// SPDX-License-Identifier: Apache-2.0
#include "strategies/proxies/search.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

namespace reckon {
namespace {

constexpr double k_infinity = std::numeric_limits<double>::infinity();
constexpr double k_least_shard = 16 << 10;
constexpr std::array<std::uint64_t, 5> k_windows{4, 8, 16, 32, 64};
/// Shorter shards than S': more of them cost what no profile knows.
constexpr double k_worth_cutting = 0.02;

/// The whole number of tensors whose bytes come nearest to m.
std::size_t boundary_at(const Job& job, double bytes) {
  bytes = std::min(bytes, job.bytes());
  std::size_t best = 0;
  double distance = bytes;
  for (std::size_t t = 0; t < job.tensors(); ++t) {
    if (std::abs(job.ends[t] - bytes) < distance) {
      distance = std::abs(job.ends[t] - bytes);
      best = t + 1;
    }
  }
  return best;
}

/// The least rate of a write between two ranks of a group, in a ring in the order of ranks.
double ring_bandwidth(const CurveOf& curve_of, const std::vector<std::size_t>& members) {
  double least = k_infinity;
  for (std::size_t i = 0; members.size() > 1 && i < members.size(); ++i) {
    const Curve between = curve_of(members[i], members[(i + 1) % members.size()], nullptr);
    least = std::min(least, between.marginal_bandwidth().as_bytes_per_s());
  }
  return least;
}

} // namespace

DualSolutions solve_dual(const Job& job, const Ways& ways, const std::vector<ProxyRoute>& routes) {
  DualSolutions dual;
  if (job.workers.size() < 2 || job.devices.size() < 2) {
    return dual;
  }
  const CurveOf curve_of = ways.curves();
  double client = k_infinity;
  for (const ProxyRoute& r : routes) {
    const Curve between = curve_of(r.client, r.bandwidth_proxy, nullptr);
    client = std::min(client, between.marginal_bandwidth().as_bytes_per_s());
  }
  DualSync& inputs = dual.inputs;
  inputs.workers = job.workers.size();
  inputs.devices = std::min(job.devices.size(), job.workers.size());
  inputs.bytes = job.bytes();
  inputs.proxy_bytes_per_s = ring_bandwidth(curve_of, job.devices);
  inputs.gpu_bytes_per_s = ring_bandwidth(curve_of, job.workers);
  inputs.client_bytes_per_s = client;
  inputs.forward_s = job.forward_s;
  inputs.backward_s = job.backward_s;
  inputs.shared_link = true; // a rank has one port
  dual.paper = solve_dual_sync(inputs, DualSyncModel::paper);
  dual.corrected = solve_dual_sync(inputs, DualSyncModel::corrected);
  return dual;
}

ProxySearch::ProxySearch(const Job& job, const Ways& ways, const std::vector<ProxyRoute>& routes,
                         const PlanOptions& options, const ProxyOptions& proxies,
                         const DualSolutions& dual)
    : m_job(job), m_ways(ways), m_routes(routes), m_options(options), m_proxies(proxies),
      m_dual(dual) {}

ProxyPlans ProxySearch::search(double partition_bytes, const std::optional<UpdatePlan>& update) {
  TreeCut cut;
  cut.boundary = m_job.tensors();
  cut.update = update;
  choose_shards(partition_bytes, cut);
  cut.shard_bytes = m_shard;
  const ProxyPlans best = plans(cut);
  if (m_options.order == Order::gradient || !m_job.passes) {
    return best;
  }
  // In gradient order the forward pass comes after all traffic.
  const Plan& first = best.dual ? *best.dual : best.dense;
  cut.traffic_s = std::max(first.prediction.mid_seconds - m_job.forward_s, m_job.backward_s);
  return plans(cut);
}

ProxyPlans ProxySearch::plans(TreeCut cut) {
  constexpr std::uint64_t k_first_window = 16;
  ProxyPlans made;
  tell("one device for all", 0.3);
  cut.dense = true;
  made.dense = thorough(best_window(cut, k_first_window));
  cut.dense = false;
  tell("rings of the proxies", 0.4);
  const Found whole = best_directions(cut, k_first_window);
  made.whole = thorough(whole);
  if (m_options.strategy == "dense") {
    return made;
  }
  tell("rings of the workers", 0.5);
  const std::optional<Found> dual = best_boundary(whole);
  made.dual = dual ? thorough(*dual) : made.whole;
  if (!m_proxies.proxy_bytes &&
      made.dual->prediction.mid_seconds > made.whole.prediction.mid_seconds) {
    made.dual = made.whole; // a short play was mistaken
  }
  return made;
}

/// By a play of shards so long that they are not too many.
double ProxySearch::seconds_of(const TreeCut& cut, std::uint64_t window) {
  const auto [at, added] = m_played.try_emplace({cut, window}, 0.0);
  if (added) {
    TreeCut coarser = cut;
    while (m_job.bytes() / coarser.shard_bytes * m_job.writes_per_part() >
           k_quick.most_writes / 2) {
      coarser.shard_bytes *= 2;
    }
    Plan plan = cut_into_trees(m_job, m_ways, m_routes, coarser);
    predict(plan, m_job, m_ways, window, k_quick);
    at->second = plan.prediction.mid_seconds;
  }
  return at->second;
}

/// From the guess on to narrower windows as long as those are as good, else to wider ones as long
/// as they are worth it.
ProxySearch::Found ProxySearch::best_window(const TreeCut& cut, std::uint64_t first_guess) {
  if (m_options.window_parts) {
    return {cut, *m_options.window_parts, seconds_of(cut, *m_options.window_parts)};
  }
  auto at = std::find(k_windows.begin(), k_windows.end(), first_guess);
  double least = seconds_of(cut, *at);
  bool wider = true;
  while (at + 1 != k_windows.end() && wider) {
    const double seconds = seconds_of(cut, *(at + 1));
    wider = seconds < least * (1 - k_worth_searching);
    if (wider) {
      least = seconds;
      ++at;
    }
  }
  while (*at <= first_guess && at != k_windows.begin()) {
    const double seconds = seconds_of(cut, *(at - 1));
    if (seconds * (1 - k_worth_searching) >= least) {
      break;
    }
    least = std::min(least, seconds);
    --at;
  }
  return {cut, *at, least};
}

ProxySearch::Found ProxySearch::best_directions(TreeCut cut, std::uint64_t first_guess) {
  cut.directions = m_proxies.ring_directions.value_or(1);
  Found one = best_window(cut, first_guess);
  if (m_proxies.ring_directions) {
    return one;
  }
  cut.directions = 2;
  Found two = best_window(cut, one.window);
  return two.seconds < one.seconds * (1 - k_worth_searching) ? two : one;
}

/// The best of what the equations give and some boundaries between all and nothing, then of those
/// near the best, ever nearer; none where all through the proxies is better.
std::optional<ProxySearch::Found> ProxySearch::best_boundary(const Found& whole) {
  const std::size_t all = m_job.tensors();
  const auto cut_at = [&](std::size_t boundary) {
    TreeCut cut = whole.cut;
    cut.boundary = boundary;
    return cut;
  };
  if (m_proxies.proxy_bytes) {
    return best_window(cut_at(boundary_at(m_job, *m_proxies.proxy_bytes)), whole.window);
  }
  if (m_job.workers.size() < 2 || m_proxies.one_queue) {
    return std::nullopt;
  }
  std::set<std::size_t> boundaries;
  for (const auto& solved : {m_dual.paper, m_dual.corrected}) {
    if (solved) {
      boundaries.insert(boundary_at(m_job, solved->proxy_bytes));
    }
  }
  constexpr int k_between = 8;
  for (int i = 0; i < k_between; ++i) {
    boundaries.insert(boundary_at(m_job, m_job.bytes() * i / k_between));
  }
  std::size_t best = all;
  double least = whole.seconds;
  const auto try_one = [&](std::size_t boundary) {
    const double seconds = seconds_of(cut_at(boundary), whole.window);
    if (seconds < least * (1 - k_worth_searching)) {
      least = seconds;
      best = boundary;
    }
  };
  double done = 0;
  for (const std::size_t boundary : boundaries) {
    try_one(boundary);
    tell("rings of the workers", 0.5 + 0.2 * ++done / static_cast<double>(boundaries.size()));
  }
  for (const int steps : {2 * k_between, 4 * k_between, 8 * k_between}) {
    const double around = m_job.bytes_before(best);
    for (const int side : {-1, 1}) {
      const double bytes = around + side * m_job.bytes() / steps;
      if (bytes > 0 && bytes < m_job.bytes()) {
        try_one(boundary_at(m_job, bytes));
      }
    }
  }
  return best == all ? std::nullopt : std::optional(best_window(cut_at(best), whole.window));
}

Plan ProxySearch::thorough(const Found& found) const {
  Plan plan = cut_into_trees(m_job, m_ways, m_routes, found.cut);
  predict(plan, m_job, m_ways, found.window, k_thorough);
  return plan;
}

/// Equation 30's S', or less of it.
void ProxySearch::choose_shards(double partition_bytes, TreeCut cut) {
  m_shard = partition_bytes;
  if (m_options.part_bytes || m_proxies.paper_shards || m_ways.one_machine()) {
    return;
  }
  cut.dense = m_options.strategy == "dense";
  std::uint64_t window = 16;
  double least = k_infinity;
  for (double size = partition_bytes; size >= k_least_shard; size /= 4) {
    if (m_job.bytes() / size * m_job.writes_per_part() > k_quick.most_writes / 2 &&
        least < k_infinity) {
      break; // too many for a play
    }
    tell("lengths of shards", 0.3 * (1 - std::log2(size / k_least_shard) /
                                             (1 + std::log2(partition_bytes / k_least_shard))));
    cut.shard_bytes = size;
    const Found found = best_window(cut, window);
    window = found.window;
    if (found.seconds < least * (1 - k_worth_cutting)) {
      least = found.seconds;
      m_shard = size;
    }
  }
}

void ProxySearch::tell(const char* step, double done) const {
  if (m_options.progress) {
    m_options.progress(step, done);
  }
}

} // namespace reckon
