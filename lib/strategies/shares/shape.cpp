// SPDX-License-Identifier: Apache-2.0
#include "strategies/shares/shape.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

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
/// back. On one machine: of each service a part under way, one being summed, one coming back, one
/// to spare, and in a ring all. In a ring with unequal ports what keeps them busy, and no less
/// than k_ring_bytes.
double window_for(const SharesJob& job, double part_bytes, bool ring) {
  const CostModel& model = job.model();
  if (model.one_machine() && ring) {
    return std::ceil(job.bytes() / part_bytes); // nothing gathers anywhere: all at once
  }
  if (model.one_machine()) {
    const double rate = model.shared_rate(2, part_bytes, CostModel::Target::slots).mid;
    const double round_trip_parts = 2 * model.latency_s() * rate / part_bytes;
    return static_cast<double>(model.ranks().size()) *
           std::clamp(4 + std::ceil(round_trip_parts), 4.0, 64.0);
  }
  const double rate = model.ranks().front().port_bytes_per_s;
  const double round_trip_parts = 2 * model.latency_s() * rate / part_bytes;
  if (ring && unequal_ports(model)) {
    // A part is sent on n times before its sum is back, and each port sends 2 (n - 1) / n of the
    // gradient: by Little's law n / (2 (n - 1)) equal parts keep it busy.
    const double hops = static_cast<double>(job.workers.size()), others = std::max(1.0, hops - 1);
    const double busy = std::ceil(hops / (2 * others) * (1 + round_trip_parts / 2));
    return std::max(busy, std::floor(k_ring_bytes / (hops * part_bytes)));
  }
  return std::max(4 * static_cast<double>(job.workers.size()) + std::ceil(round_trip_parts), 8.0);
}

} // namespace

PartShape shape_for(const SharesJob& job, double part_bytes, bool ring) {
  PartShape shape;
  shape.dtype = job.dtype;
  shape.part_count = std::max(1.0, std::ceil(job.bytes() / part_bytes));
  shape.part_bytes = std::min(part_bytes, std::ceil(job.bytes() / shape.part_count));
  shape.window_parts = job.options.window_parts ? static_cast<double>(*job.options.window_parts)
                                                : window_for(job, part_bytes, ring);
  return shape;
}

double tolerance(const SharesJob& job) {
  return job.model().one_machine() ? 0.01 : 0.002;
}

} // namespace reckon
