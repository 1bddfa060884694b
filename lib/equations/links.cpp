// SPDX-License-Identifier: Apache-2.0
#include "equations/links.hpp"

#include "core/error.hpp"
#include "stats/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace reckon {
namespace {

void check(const LinkMatrix& matrix) {
  if (matrix.size() < 2) {
    fail(ErrorKind::usage,
         fmt::format("a matrix of {} endpoints: at least two are needed", matrix.size()));
  }
  for (std::size_t from = 0; from < matrix.size(); ++from) {
    if (matrix[from].size() != matrix.size()) {
      fail(ErrorKind::usage, fmt::format("row {} of the matrix has {} entries for {} endpoints",
                                         from, matrix[from].size(), matrix.size()));
    }
    for (std::size_t to = 0; to < matrix.size(); ++to) {
      const std::optional<double>& link = matrix[from][to];
      if (from != to && link && !(std::isfinite(*link) && *link > 0)) {
        fail(ErrorKind::usage, fmt::format("the link from {} to {} has {} B/s: must be finite and "
                                           "greater than 0",
                                           from, to, *link));
      }
    }
  }
}

/// Sums of what the matrix offers, for equation 35.
struct Offered {
  double links = 0, ports = 0;
};

Offered offered_by(const LinkMatrix& matrix) {
  Offered offered;
  for (std::size_t from = 0; from < matrix.size(); ++from) {
    double port = 0;
    for (std::size_t to = 0; to < matrix.size(); ++to) {
      if (from != to && matrix[from][to]) {
        offered.links += *matrix[from][to];
        port = std::max(port, *matrix[from][to]);
      }
    }
    offered.ports += port;
  }
  return offered;
}

std::optional<double> slowest_of(const LinkMatrix& matrix, std::span<const std::size_t> order) {
  double slowest = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::optional<double>& link = matrix[order[i]][order[(i + 1) % order.size()]];
    if (!link) {
      return std::nullopt;
    }
    slowest = std::min(slowest, *link);
  }
  return slowest;
}

RingUse use_of(std::span<const std::size_t> order, double slowest, const Offered& offered) {
  RingUse use;
  use.order.assign(order.begin(), order.end());
  use.bytes_per_s = slowest;
  use.link_utilisation = static_cast<double>(order.size()) * slowest / offered.links;
  use.port_utilisation = static_cast<double>(order.size()) * slowest / offered.ports;
  return use;
}

Locality compared(double local, double remote, double tolerance) {
  if (local > remote * (1 + tolerance)) {
    return Locality::local;
  }
  return remote > local * (1 + tolerance) ? Locality::anti_local : Locality::none;
}

} // namespace

double oversubscription(std::uint64_t gpus, std::uint64_t lanes_per_gpu,
                        std::uint64_t processor_lanes) {
  if (gpus == 0 || lanes_per_gpu == 0 || processor_lanes == 0) {
    fail(ErrorKind::usage, fmt::format("oversubscription: {} GPUs of {} lanes at {} of the "
                                       "processors: all must be at least 1",
                                       gpus, lanes_per_gpu, processor_lanes));
  }
  return static_cast<double>(gpus) * static_cast<double>(lanes_per_gpu) /
         static_cast<double>(processor_lanes);
}

std::optional<RingUse> ring_use(const LinkMatrix& matrix, std::span<const std::size_t> order) {
  check(matrix);
  std::vector<std::size_t> sorted(order.begin(), order.end());
  std::ranges::sort(sorted);
  std::vector<std::size_t> all(matrix.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  if (sorted != all) {
    fail(ErrorKind::usage, "ring: the order must have every endpoint once");
  }
  const auto slowest = slowest_of(matrix, order);
  if (!slowest) {
    return std::nullopt;
  }
  return use_of(order, *slowest, offered_by(matrix));
}

RingExtremes all_rings(const LinkMatrix& matrix) {
  check(matrix);
  if (matrix.size() > k_most_ring_endpoints) {
    fail(ErrorKind::usage, fmt::format("ring: {} endpoints have too many orders to try; at most {}",
                                       matrix.size(), k_most_ring_endpoints));
  }
  const Offered offered = offered_by(matrix);
  std::vector<std::size_t> order(matrix.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  RingExtremes extremes;
  do { // the first stays where it is: a ring turned is the same
    ++extremes.orders;
    const auto slowest = slowest_of(matrix, order);
    if (!slowest) {
      continue;
    }
    ++extremes.rings;
    if (!extremes.best || *slowest > extremes.best->bytes_per_s) {
      extremes.best = use_of(order, *slowest, offered);
    }
    if (!extremes.worst || *slowest < extremes.worst->bytes_per_s) {
      extremes.worst = use_of(order, *slowest, offered);
    }
  } while (std::next_permutation(order.begin() + 1, order.end()));
  return extremes;
}

LocalityReport classify_locality(const LinkMatrix& matrix, std::span<const std::size_t> group_of,
                                 double tolerance) {
  check(matrix);
  if (group_of.size() != matrix.size()) {
    fail(ErrorKind::usage,
         fmt::format("locality: {} groups for {} endpoints", group_of.size(), matrix.size()));
  }
  if (!(tolerance >= 0 && std::isfinite(tolerance))) {
    fail(ErrorKind::usage,
         fmt::format("locality: tolerance of {}: must be finite and not negative", tolerance));
  }
  std::vector<double> local;
  std::vector<double> remote;
  LocalityReport report;
  for (std::size_t from = 0; from < matrix.size(); ++from) {
    double best_local = 0;
    double best_remote = 0;
    for (std::size_t to = 0; to < matrix.size(); ++to) {
      if (from == to || !matrix[from][to]) {
        continue;
      }
      const double rate = *matrix[from][to];
      const bool same = group_of[from] == group_of[to];
      (same ? local : remote).push_back(rate);
      double& best = same ? best_local : best_remote;
      best = std::max(best, rate);
    }
    report.endpoints.push_back(best_local > 0 && best_remote > 0
                                   ? std::optional(compared(best_local, best_remote, tolerance))
                                   : std::nullopt);
  }
  if (local.empty() || remote.empty()) {
    fail(ErrorKind::usage, fmt::format("locality: no link {}; nothing can be compared",
                                       local.empty() ? "within a group" : "between groups"));
  }
  report.local_bytes_per_s = median(std::move(local));
  report.remote_bytes_per_s = median(std::move(remote));
  report.machine = compared(report.local_bytes_per_s, report.remote_bytes_per_s, tolerance);
  return report;
}

} // namespace reckon
