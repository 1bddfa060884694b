// SPDX-License-Identifier: Apache-2.0
#include "equations/coarse.hpp"

#include "core/error.hpp"
#include "equations/checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <tuple>
#include <utility>

namespace reckon {

using equations::check_amount;
using equations::check_positive;
using equations::k_tie;

namespace {

/// What any size in a document may be.
constexpr double k_largest_bytes = 0x1p53;
/// A partition of a few bytes would only fill the memory.
constexpr std::uint64_t k_most_shards = 10'000'000;

void check_tolerance(double tolerance) {
  if (!(tolerance >= 0 && tolerance < 1)) {
    fail(ErrorKind::usage,
         fmt::format("tolerance of {}: must be at least 0 and below 1", tolerance));
  }
}

/// Both curves' sizes and, behind them, the largest there is: both are linear in between.
std::vector<double> knots_of(const Curve& a, const Curve& b) {
  std::vector<double> knots;
  for (const Curve* curve : {&a, &b}) {
    for (const CurvePoint& sample : curve->points()) {
      knots.push_back(sample.bytes);
    }
  }
  knots.push_back(k_largest_bytes);
  std::ranges::sort(knots);
  knots.erase(std::unique(knots.begin(), knots.end()), knots.end());
  return knots;
}

/// The sizes at which `latency` - `bandwidth` changes its sign, and the sign before the first of
/// them: whether BwProxy is faster there.
std::pair<std::vector<double>, bool> crossings_of(const Curve& latency, const Curve& bandwidth) {
  struct Knot {
    double bytes, difference_s;
  };
  std::vector<double> crossings;
  std::optional<Knot> signed_before;             // the last knot at which one proxy was faster
  std::optional<std::pair<double, double>> even; // the equal knots since then: first and last
  bool starts_with_bandwidth = false;
  for (const double bytes : knots_of(latency, bandwidth)) {
    const double a = latency.seconds_at(bytes);
    const double b = bandwidth.seconds_at(bytes);
    const Knot knot{bytes, a - b};
    if (std::abs(knot.difference_s) <= k_tie * std::max(a, b)) {
      even = {even ? even->first : bytes, bytes};
      continue;
    }
    const bool bandwidth_faster = knot.difference_s > 0;
    if (!signed_before) {
      starts_with_bandwidth = bandwidth_faster;
    } else if (bandwidth_faster != (signed_before->difference_s > 0)) {
      if (even) {
        crossings.push_back(bandwidth_faster ? even->second : even->first);
      } else {
        const double part =
            signed_before->difference_s / (signed_before->difference_s - knot.difference_s);
        crossings.push_back(std::lerp(signed_before->bytes, bytes, part));
      }
    }
    signed_before = knot;
    even.reset();
  }
  return {std::move(crossings), starts_with_bandwidth};
}

double total_s(const Curve& latency, const Curve& bandwidth, std::span<const SizeCount> sizes,
               const std::optional<double>& threshold) {
  double total = 0;
  for (const SizeCount& size : sizes) {
    const bool far = threshold && size.bytes > *threshold;
    total += size.count * (far ? bandwidth : latency).seconds_at(size.bytes);
  }
  return total;
}

void check(const DualSync& sync) {
  if (sync.workers == 0 || sync.devices == 0 || sync.devices > sync.workers) {
    fail(ErrorKind::usage,
         fmt::format("dual synchronization: {} workers and {} devices: at least one of both, and "
                     "no more devices than workers, for each serves a worker of its own",
                     sync.workers, sync.devices));
  }
  check_positive(sync.proxy_bytes_per_s, "dual synchronization: a proxy's bandwidth");
  check_positive(sync.gpu_bytes_per_s, "dual synchronization: the workers' ring's bandwidth");
  check_positive(sync.client_bytes_per_s.value_or(sync.proxy_bytes_per_s),
                 "dual synchronization: a client's bandwidth");
  check_amount(sync.bytes, "dual synchronization: bytes");
  check_amount(sync.forward_s, "dual synchronization: seconds forward");
  check_amount(sync.backward_s, "dual synchronization: seconds backward");
}

/// base + slope m seconds after the forward pass.
struct Line {
  double base, slope;
  [[nodiscard]] double at(double m) const { return base + slope * m; }
};

/// What a ring of `members` moves through each port, in each direction, for a byte.
double ring_factor(std::uint64_t members) {
  const double count = static_cast<double>(members);
  return 2 * (count - 1) / count;
}

/// The linear functions of m whose greatest is the time: equation 32 or 33.
std::vector<Line> lines_of(const DualSync& sync, DualSyncModel model) {
  const double n = sync.bytes;
  const double ring = ring_factor(sync.workers) / sync.gpu_bytes_per_s;
  const Line after_backward{sync.backward_s + ring * n, -ring};
  if (model == DualSyncModel::paper) {
    return {after_backward, {0, ring_factor(sync.workers) / sync.proxy_bytes_per_s}};
  }
  const std::uint64_t clients = (sync.workers + sync.devices - 1) / sync.devices;
  const double push = 1 / sync.client_bytes_per_s.value_or(sync.proxy_bytes_per_s);
  const double proxy = std::max(push, (static_cast<double>(clients) + ring_factor(sync.devices)) /
                                          sync.proxy_bytes_per_s);
  const double ready = n > 0 ? sync.backward_s / n : 0; // seconds until another byte is ready
  std::vector<Line> lines{{sync.backward_s, 0}, {0, proxy}};
  if (sync.ring == WorkerRing::after_backward) {
    lines.push_back(after_backward);
    if (sync.shared_link) {
      // By the end of the backward pass the proxies have taken backward_s / proxy bytes; the rest
      // of their part passes the link before the ring's.
      lines.push_back({after_backward.base - push * sync.backward_s / proxy, push - ring});
    }
  } else {
    // When the ring's first byte is ready, at ready m, the proxies have taken ready m / proxy
    // bytes.
    const double left = sync.shared_link ? push * std::max(0.0, 1 - ready / proxy) : 0;
    lines.push_back({ring * n, ready + left - ring});
  }
  return lines;
}

double greatest(const std::vector<Line>& lines, double m) {
  double most = lines.front().at(m);
  for (const Line& line : lines) {
    most = std::max(most, line.at(m));
  }
  return most;
}

/// Whether the greatest of the lines falls when m goes on from there in `direction` (1 or -1).
bool falls(const std::vector<Line>& lines, double m, double direction) {
  const double most = greatest(lines, m);
  return std::ranges::all_of(lines, [&](const Line& line) {
    return line.at(m) < most - k_tie * most || line.slope * direction < 0;
  });
}

} // namespace

ProxyChoice choose_proxies(std::span<const Curve> proxies, double tolerance) {
  check_tolerance(tolerance);
  if (proxies.empty()) {
    fail(ErrorKind::usage, "routing: no proxies");
  }
  double smallest = 0;
  double largest = k_largest_bytes;
  for (const Curve& curve : proxies) {
    smallest = std::max(smallest, curve.points().front().bytes);
    largest = std::min(largest, curve.points().back().bytes);
  }
  const auto at = [&](double bytes) {
    std::vector<double> seconds;
    std::ranges::transform(proxies, std::back_inserter(seconds),
                           [&](const Curve& curve) { return curve.seconds_at(bytes); });
    return seconds;
  };
  const auto first_below = [](const std::vector<double>& seconds, double limit) {
    const auto found = std::ranges::find_if(seconds, [&](double value) { return value <= limit; });
    return static_cast<std::size_t>(found - seconds.begin());
  };
  const std::vector<double> latencies = at(smallest);
  const std::vector<double> times = at(largest); // of equal bytes: least time, most bandwidth
  ProxyChoice choice;
  choice.latency = first_below(latencies, std::ranges::min(latencies) * (1 + tolerance));
  const double limit = std::ranges::min(times) / (1 - tolerance);
  choice.bandwidth = times[choice.latency] <= limit ? choice.latency : first_below(times, limit);
  return choice;
}

Routing solve_routing(const Curve& latency_proxy, const Curve& bandwidth_proxy,
                      std::span<const SizeCount> sizes) {
  std::vector<SizeCount> tested;
  for (const SizeCount& size : sizes) {
    check_amount(size.bytes, "routing: a tensor's bytes");
    check_amount(size.count, "routing: a count of tensors");
  }
  if (sizes.empty()) {
    std::vector<double> knots = knots_of(latency_proxy, bandwidth_proxy);
    const double largest =
        std::max(latency_proxy.points().back().bytes, bandwidth_proxy.points().back().bytes);
    for (const double bytes : knots) {
      if (bytes <= largest) {
        tested.push_back({bytes, 1});
      }
    }
    sizes = tested;
  }
  Routing routing;
  bool bandwidth = false;
  std::tie(routing.crossings_bytes, bandwidth) = crossings_of(latency_proxy, bandwidth_proxy);
  routing.several = routing.crossings_bytes.size() > 1;
  std::vector<std::optional<double>> upward; // crossings with BwProxy above
  routing.intervals.push_back({.bandwidth_proxy = bandwidth});
  for (const double crossing : routing.crossings_bytes) {
    bandwidth = !bandwidth;
    routing.intervals.back().to_bytes = crossing;
    routing.intervals.push_back({.from_bytes = crossing, .bandwidth_proxy = bandwidth});
    if (bandwidth) {
      upward.emplace_back(crossing);
    }
  }
  routing.reversed = !routing.crossings_bytes.empty() && !bandwidth;
  for (const SizeCount& size : sizes) {
    const double latency_s = size.count * latency_proxy.seconds_at(size.bytes);
    const double bandwidth_s = size.count * bandwidth_proxy.seconds_at(size.bytes);
    routing.latency_s += latency_s;
    routing.bandwidth_s += bandwidth_s;
    routing.best_s += std::min(latency_s, bandwidth_s);
  }
  std::vector<std::optional<double>> candidates = upward;
  if (routing.crossings_bytes.empty()) {
    candidates = {bandwidth ? std::optional<double>(0) : std::nullopt};
  } else if (routing.several || routing.reversed) {
    candidates.emplace_back(0);
    candidates.emplace_back(std::nullopt);
  }
  routing.threshold_s = std::numeric_limits<double>::infinity();
  for (const std::optional<double>& candidate : candidates) {
    const double time_s = total_s(latency_proxy, bandwidth_proxy, sizes, candidate);
    if (time_s < routing.threshold_s * (1 - k_tie)) {
      routing.threshold_s = time_s;
      routing.threshold_bytes = candidate;
    }
  }
  return routing;
}

double partition_bytes(const Curve& curve, double tolerance) {
  check_tolerance(tolerance);
  double greatest_bytes_per_s = 0;
  for (const CurvePoint& sample : curve.points()) {
    greatest_bytes_per_s = std::max(greatest_bytes_per_s, sample.bytes / sample.seconds);
  }
  if (greatest_bytes_per_s == 0) {
    fail(ErrorKind::usage, "partition: the curve has no size above 0 bytes; measure some");
  }
  const auto found = std::ranges::find_if(curve.points(), [&](const CurvePoint& sample) {
    return sample.bytes / sample.seconds >= (1 - tolerance) * greatest_bytes_per_s;
  });
  return found->bytes;
}

std::vector<std::uint64_t> shards_of(std::uint64_t tensor_bytes, std::uint64_t partition_bytes,
                                     std::uint64_t element_bytes) {
  if (element_bytes == 0) {
    fail(ErrorKind::usage, "partition: elements of 0 bytes: must be at least 1");
  }
  if (tensor_bytes == 0) {
    return {};
  }
  const std::uint64_t unit = tensor_bytes % element_bytes == 0 ? element_bytes : 1;
  const std::uint64_t units = tensor_bytes / unit;
  std::uint64_t count = 1;
  if (partition_bytes > 0) {
    const std::uint64_t least = partition_bytes / unit + (partition_bytes % unit == 0 ? 0 : 1);
    count = std::max<std::uint64_t>(1, units / least);
  }
  if (count > k_most_shards) {
    fail(ErrorKind::usage,
         fmt::format("partition: {} bytes in shards of {} are more than {}; use larger ones",
                     tensor_bytes, partition_bytes, k_most_shards));
  }
  std::vector<std::uint64_t> shards(count, units / count * unit);
  std::for_each_n(shards.begin(), units % count, [&](std::uint64_t& shard) { shard += unit; });
  return shards;
}

double dual_sync_s(const DualSync& sync, DualSyncModel model, double proxy_bytes) {
  check(sync);
  if (!(proxy_bytes >= 0 && proxy_bytes <= sync.bytes)) {
    fail(ErrorKind::usage, fmt::format("dual synchronization: {} of {} bytes to the proxies: must "
                                       "be between 0 and all",
                                       proxy_bytes, sync.bytes));
  }
  return sync.forward_s + greatest(lines_of(sync, model), proxy_bytes);
}

DualSplit solve_dual_sync(const DualSync& sync, DualSyncModel model) {
  check(sync);
  const std::vector<Line> lines = lines_of(sync, model);
  std::vector<double> candidates{0, sync.bytes};
  for (std::size_t i = 0; i < lines.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const double meet = (lines[i].base - lines[j].base) / (lines[j].slope - lines[i].slope);
      if (meet > 0 && meet < sync.bytes) { // not for parallel lines: infinite or NaN
        candidates.push_back(meet);
      }
    }
  }
  std::ranges::sort(candidates);
  double best = std::numeric_limits<double>::infinity();
  for (const double m : candidates) {
    best = std::min(best, greatest(lines, m));
  }
  const auto is_best = [&](double m) { return !(greatest(lines, m) > best * (1 + k_tie)); };
  DualSplit split;
  split.proxy_bytes = *std::ranges::find_if(candidates, is_best);
  split.most_proxy_bytes = *std::find_if(candidates.rbegin(), candidates.rend(), is_best);
  split.worker_bytes = sync.bytes - split.proxy_bytes;
  split.time_s = sync.forward_s + best;
  split.clipped = (split.proxy_bytes == sync.bytes && falls(lines, sync.bytes, 1)) ||
                  (split.proxy_bytes == 0 && falls(lines, 0, -1));
  return split;
}

DualRounding round_dual_sync(const DualSync& sync, DualSyncModel model,
                             std::span<const std::uint64_t> tensor_bytes) {
  const DualSplit exact = solve_dual_sync(sync, model);
  const std::vector<Line> lines = lines_of(sync, model);
  double sum = 0;
  DualRounding rounding;
  double best = greatest(lines, 0);
  for (std::size_t i = 0; i < tensor_bytes.size(); ++i) {
    sum += static_cast<double>(tensor_bytes[i]);
    const double time_s = greatest(lines, sum);
    if (time_s < best * (1 - k_tie)) {
      best = time_s;
      rounding.tensors = i + 1;
      rounding.proxy_bytes = sum;
    }
  }
  if (sum != sync.bytes) {
    fail(ErrorKind::usage,
         fmt::format("dual synchronization: tensors of {} bytes for a gradient of {}", sum,
                     sync.bytes));
  }
  rounding.time_s = sync.forward_s + best;
  rounding.cost_s = std::max(0.0, rounding.time_s - exact.time_s);
  return rounding;
}

} // namespace reckon
