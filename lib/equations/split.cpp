// SPDX-License-Identifier: Apache-2.0
#include "equations/split.hpp"

#include "core/error.hpp"
#include "equations/checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace reckon {

using equations::check_amount;
using equations::check_positive;
using equations::k_tie;

namespace {

void check_workers(std::uint64_t workers) {
  if (workers == 0) {
    fail(ErrorKind::usage, "split: no workers: at least one is needed");
  }
}

void check(const Star& star) {
  check_amount(star.model_bytes, "split: bytes");
  check_workers(star.worker_bytes_per_s.size());
  for (const double b : star.worker_bytes_per_s) {
    check_positive(b, "split: a worker's bandwidth");
  }
  for (const double b : star.server_bytes_per_s) {
    check_positive(b, "split: a server's bandwidth");
  }
}

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}
double least(const std::vector<double>& values) {
  return *std::min_element(values.begin(), values.end());
}

bool same(double a, double b) {
  return std::abs(a - b) <= k_tie * std::max(std::abs(a), std::abs(b));
}

/// The slowest workers set the time. `gain(count)`: the joint gain when `count` of them become
/// faster.
template <class Gain>
void limit_by_workers(StarSplit& split, const Star& star, const Gain& gain) {
  split.limit = StarLimit::slowest_workers;
  const double slowest = least(star.worker_bytes_per_s);
  for (std::size_t i = 0; i < star.worker_bytes_per_s.size(); ++i) {
    if (same(star.worker_bytes_per_s[i], slowest)) {
      split.limiting_workers.push_back(i);
    }
  }
  split.joint_gain = gain(static_cast<double>(split.limiting_workers.size()));
  split.worker_gain = split.limiting_workers.size() == 1 ? split.joint_gain : 0.0;
}

StarSplit with_shares(const Star& star, StarShares shares) {
  StarSplit split;
  split.traffic = traffic_of(star, shares);
  split.shares = std::move(shares);
  split.time_s = split.traffic.time_s;
  return split;
}

/// The shares for three workers or more. Every port that can help is filled to one level of time t:
/// a worker up to (tB - M)/(n-2), a server up to tB/n. A worker too slow to send its own gradient
/// within t gets no share.
struct Level {
  StarShares shares;
  double level_s = 0;
};

Level fill(const Star& star) {
  const double model = star.model_bytes;
  const std::size_t n = star.worker_bytes_per_s.size();
  const double workers = static_cast<double>(n);
  std::vector<std::size_t> fastest(n);
  std::iota(fastest.begin(), fastest.end(), std::size_t{0});
  std::stable_sort(fastest.begin(), fastest.end(), [&](std::size_t a, std::size_t b) {
    return star.worker_bytes_per_s[a] > star.worker_bytes_per_s[b];
  });
  const double servers_rate = sum(star.server_bytes_per_s) / workers;
  double worker_rate = 0; // sum of B/(n-2) over the workers that share
  std::size_t sharing = 0;
  const auto level = [&] {
    return model * (1 + static_cast<double>(sharing) / (workers - 2)) /
           (worker_rate + servers_rate);
  };
  // Without servers and before the first worker the level is infinite: the first worker always
  // joins.
  double t = level();
  while (sharing < n && star.worker_bytes_per_s[fastest[sharing]] * t > model) {
    worker_rate += star.worker_bytes_per_s[fastest[sharing]] / (workers - 2);
    ++sharing;
    t = level();
  }
  Level out;
  out.level_s = t;
  out.shares.worker_bytes.assign(n, 0.0);
  for (std::size_t i = 0; i < sharing; ++i) {
    const double share = (star.worker_bytes_per_s[fastest[i]] * t - model) / (workers - 2);
    out.shares.worker_bytes[fastest[i]] = std::max(0.0, share);
  }
  for (const double b : star.server_bytes_per_s) {
    out.shares.server_bytes.push_back(b * t / workers);
  }
  return out;
}

/// Two workers: a share costs a worker's port nothing, so the slower worker's own gradient is the
/// limit. The servers take what they can carry meanwhile (as equation 6 has it for equal
/// ports), the workers halve the rest.
StarShares fill_two(const Star& star) {
  const double model = star.model_bytes;
  const double time = model / least(star.worker_bytes_per_s);
  const double rate = sum(star.server_bytes_per_s);
  StarShares shares;
  double left = model;
  if (rate > 0) {
    const double served = std::min(model, time * rate / 2);
    for (const double b : star.server_bytes_per_s) {
      shares.server_bytes.push_back(served * (b / rate));
    }
    left -= served;
  }
  shares.worker_bytes.assign(2, left / 2);
  return shares;
}

double as_double(std::uint64_t value) {
  return static_cast<double>(value);
}

/// n^2 + kn - 2k, where k need not be whole (servers of another bandwidth than the workers').
double slots_d(double n, double k) {
  return n * n + k * (n - 2);
}

} // namespace

StarTraffic traffic_of(const Star& star, const StarShares& shares) {
  check(star);
  const std::size_t n = star.worker_bytes_per_s.size();
  if (shares.worker_bytes.size() != n ||
      shares.server_bytes.size() != star.server_bytes_per_s.size()) {
    fail(ErrorKind::usage, fmt::format("split: {} + {} shares for {} workers and {} servers",
                                       shares.worker_bytes.size(), shares.server_bytes.size(), n,
                                       star.server_bytes_per_s.size()));
  }
  const double workers = static_cast<double>(n);
  StarTraffic out;
  for (std::size_t i = 0; i < n; ++i) {
    const double bytes = star.model_bytes + (workers - 2) * shares.worker_bytes[i];
    out.worker_port_bytes.push_back(bytes);
    out.time_s = std::max(out.time_s, bytes / star.worker_bytes_per_s[i]);
  }
  for (std::size_t j = 0; j < star.server_bytes_per_s.size(); ++j) {
    const double bytes = workers * shares.server_bytes[j];
    out.server_port_bytes.push_back(bytes);
    out.time_s = std::max(out.time_s, bytes / star.server_bytes_per_s[j]);
  }
  return out;
}

StarSplit solve_star_split(const Star& star) {
  check(star);
  const std::size_t n = star.worker_bytes_per_s.size();
  if (n == 1 || star.model_bytes == 0) {
    // Also for no bytes: equal shares of nothing.
    StarShares alone{std::vector<double>(n, star.model_bytes),
                     std::vector<double>(star.server_bytes_per_s.size(), 0.0)};
    return with_shares(star, std::move(alone));
  }
  const double slowest = least(star.worker_bytes_per_s);
  const double own_s = star.model_bytes / slowest;
  const auto own_gain = [&](double) { return -own_s / slowest; };
  if (n == 2) {
    StarSplit split = with_shares(star, fill_two(star));
    split.time_s = own_s;
    limit_by_workers(split, star, own_gain);
    return split;
  }
  Level level = fill(star);
  StarSplit split = with_shares(star, std::move(level.shares));
  split.time_s = std::max(level.level_s, own_s);
  // T = M (1 + n/(n-2)) / rate, so dT/dB = -(T / rate) * what the port adds to the rate for one
  // byte per second.
  const double workers = static_cast<double>(n);
  const double rate =
      sum(star.worker_bytes_per_s) / (workers - 2) + sum(star.server_bytes_per_s) / workers;
  const double per_worker = -split.time_s / rate / (workers - 2);
  const double per_server = -split.time_s / rate / workers;
  if (same(level.level_s, own_s)) {
    // Both limits at once: a faster worker lowers its own limit by more than the common one, which
    // is what remains.
    limit_by_workers(split, star, [&](double count) { return count * per_worker; });
  } else if (level.level_s < own_s) {
    limit_by_workers(split, star, own_gain);
  } else {
    split.limit = StarLimit::all_ports;
    split.worker_gain = per_worker;
    split.server_gain = star.server_bytes_per_s.empty() ? 0.0 : per_server;
    split.joint_gain =
        workers * per_worker + static_cast<double>(star.server_bytes_per_s.size()) * per_server;
  }
  return split;
}

EqualSplit solve_equal_split(std::uint64_t workers, std::uint64_t servers, double model_bytes,
                             double worker_bytes_per_s, double server_bytes_per_s) {
  check_amount(model_bytes, "split: bytes");
  check_workers(workers);
  check_positive(worker_bytes_per_s, "split: a worker's bandwidth");
  EqualSplit out;
  const double n = as_double(workers);
  const double k = as_double(servers);
  double relative = 0; // a server's bandwidth in workers' bandwidths
  if (servers > 0) {
    check_positive(server_bytes_per_s, "split: a server's bandwidth");
    relative = server_bytes_per_s / worker_bytes_per_s;
  }
  if (workers == 1) {
    out.worker_share_bytes = model_bytes;
    return out;
  }
  const double counted = k * relative;
  if (counted < n) {
    const double d = slots_d(n, counted);
    out.server_share_bytes = 2 * (n - 1) / d * relative * model_bytes;
    out.worker_share_bytes = (n - counted) / d * model_bytes;
    out.time_s = 2 * n * (n - 1) * model_bytes / (d * worker_bytes_per_s);
    out.limit = workers == 2 ? StarLimit::slowest_workers : StarLimit::all_ports;
  } else {
    out.server_share_bytes = model_bytes / k;
    out.time_s = model_bytes / worker_bytes_per_s;
    out.limit = StarLimit::slowest_workers;
  }
  out.worker_port_bytes = model_bytes + (n - 2) * out.worker_share_bytes;
  out.server_port_bytes = n * out.server_share_bytes;
  if (model_bytes == 0) {
    out.limit = StarLimit::nothing;
  }
  return out;
}

StarSplit solve_equal_star(const Star& star) {
  StarSplit split = solve_star_split(star);
  const std::size_t n = star.worker_bytes_per_s.size();
  const std::size_t k = star.server_bytes_per_s.size();
  const EqualSplit equal =
      solve_equal_split(n, k, star.model_bytes, star.worker_bytes_per_s.front(),
                        k == 0 ? 0 : star.server_bytes_per_s.front());
  split.time_s = equal.time_s;
  split.shares = {std::vector<double>(n, equal.worker_share_bytes),
                  std::vector<double>(k, equal.server_share_bytes)};
  split.traffic.worker_port_bytes.assign(n, equal.worker_port_bytes);
  split.traffic.server_port_bytes.assign(k, equal.server_port_bytes);
  return split;
}

double ring_allreduce_s(double model_bytes, const std::vector<double>& worker_bytes_per_s) {
  check(Star{model_bytes, worker_bytes_per_s, {}});
  const double n = static_cast<double>(worker_bytes_per_s.size());
  return 2 * (n - 1) / n * model_bytes / least(worker_bytes_per_s);
}

std::optional<StarSplit> solve_parameter_server(const Star& star) {
  check(star);
  if (star.server_bytes_per_s.empty()) {
    return std::nullopt;
  }
  const double rate = sum(star.server_bytes_per_s);
  StarShares shares;
  shares.worker_bytes.assign(star.worker_bytes_per_s.size(), 0.0);
  for (const double b : star.server_bytes_per_s) {
    shares.server_bytes.push_back(star.model_bytes * (b / rate));
  }
  StarSplit split = with_shares(star, std::move(shares));
  if (star.model_bytes == 0) {
    return split;
  }
  const double servers_s =
      static_cast<double>(star.worker_bytes_per_s.size()) * star.model_bytes / rate;
  const double workers_s = star.model_bytes / least(star.worker_bytes_per_s);
  split.time_s = std::max(servers_s, workers_s);
  if (same(servers_s, workers_s)) {
    limit_by_workers(split, star, [](double) { return 0.0; });
  } else if (servers_s > workers_s) {
    const double servers = static_cast<double>(star.server_bytes_per_s.size());
    split.limit = StarLimit::servers;
    split.server_gain = -servers_s / rate;
    split.joint_gain = servers * split.server_gain;
  } else {
    limit_by_workers(split, star,
                     [&](double) { return -workers_s / least(star.worker_bytes_per_s); });
  }
  return split;
}

StarSplit solve_colocated_parameter_server(const Star& star) {
  check(star);
  const std::size_t n = star.worker_bytes_per_s.size();
  const Star workers_only{star.model_bytes, star.worker_bytes_per_s, {}};
  const double share = star.model_bytes / static_cast<double>(n);
  StarSplit split = with_shares(workers_only, {std::vector<double>(n, share), {}});
  split.time_s = split.traffic.time_s;
  if (n > 1 && star.model_bytes > 0) {
    limit_by_workers(split, workers_only,
                     [&](double) { return -split.time_s / least(star.worker_bytes_per_s); });
  }
  return split;
}

std::optional<SlotCounts> slot_counts(std::uint64_t workers, std::uint64_t servers) {
  // With k <= n, D <= 2 n^2 - 2n: below 2^31 workers it fits.
  if (workers < 2 || servers > workers || workers > (std::uint64_t{1} << 31U)) {
    return std::nullopt;
  }
  return SlotCounts{workers * workers + servers * (workers - 2), workers - servers,
                    servers == 0 ? 0 : 2 * (workers - 1)};
}

} // namespace reckon
