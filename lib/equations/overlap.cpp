// SPDX-License-Identifier: Apache-2.0
#include "equations/overlap.hpp"

#include "equations/checks.hpp"

#include <algorithm>
#include <limits>

namespace reckon {

using equations::check_amount;

namespace {

/// What cannot be had at all takes for ever; what is not asked for takes no time.
double seconds_of(double amount, double rate) {
  return amount > 0 ? amount / rate : 0;
}

/// Steps of `steps(nodes)` links in each dimension.
template <class Steps>
double fill_s(const Torus& torus, const std::array<double, k_torus_dimensions>& latency_s,
              Steps steps) {
  double total = 0;
  for (std::size_t d = 0; d < k_torus_dimensions; ++d) {
    check_amount(latency_s[d], "a link's latency");
    total += static_cast<double>(steps(torus.nodes[d])) * latency_s[d];
  }
  return total;
}

} // namespace

double computation_seconds(double flops, double bytes, const ComputeShare& share) {
  check_amount(flops, "the operations of a computation");
  check_amount(bytes, "the bytes of a computation");
  check_amount(share.flops_per_s, "the operations a second");
  check_amount(share.memory_bytes_per_s, "the memory's bandwidth");
  return std::max(seconds_of(flops, share.flops_per_s),
                  seconds_of(bytes, share.memory_bytes_per_s));
}

double stretched_seconds(double seconds, ComputationBound bound, const ComputeShare& all,
                         const ComputeShare& share) {
  check_amount(seconds, "the time of a computation");
  return bound == ComputationBound::memory
             ? computation_seconds(0, seconds * all.memory_bytes_per_s, share)
             : computation_seconds(seconds * all.flops_per_s, 0, share);
}

CollectiveRate collective_rate(double network_bytes_per_s, const CommunicationShare& share) {
  check_amount(network_bytes_per_s, "the network's bandwidth");
  check_amount(share.reads_per_byte_sent, "what is read for each byte sent");
  CollectiveRate rate{network_bytes_per_s, CollectiveLimit::network};
  const auto lower = [&rate](double bytes_per_s, CollectiveLimit limit) {
    if (bytes_per_s < rate.bytes_per_s) {
      rate = {bytes_per_s, limit};
    }
  };
  if (share.reads_per_byte_sent > 0) {
    lower(share.memory_bytes_per_s / share.reads_per_byte_sent, CollectiveLimit::memory);
    lower(share.cores_bytes_per_s / share.reads_per_byte_sent, CollectiveLimit::cores);
  }
  lower(share.bus_bytes_per_s, CollectiveLimit::bus);
  return rate;
}

double first_chunk_s(const Torus& torus, const TorusTraffic& traffic,
                     const CommunicationShare& share) {
  const double network = torus_limit(torus, traffic).bytes_per_s;
  const double endpoint =
      collective_rate(std::numeric_limits<double>::max(), share).bytes_per_s; // without the network
  if (endpoint == 0) { // nothing is ever sent
    return 0;
  }
  double alone_s = 0;
  for (std::size_t d = 0; d < k_torus_dimensions; ++d) {
    alone_s += seconds_of(traffic.dimension_bytes[d], std::min(torus.bytes_per_s[d], endpoint));
  }
  const double behind_s = traffic.sent_bytes / collective_rate(network, share).bytes_per_s;
  return std::max(0.0, alone_s - behind_s); // below 0 by rounding only
}

double all_reduce_fill_s(const Torus& torus,
                         const std::array<double, k_torus_dimensions>& latency_s) {
  // A ring of n: n - 1 steps until a part is summed, n - 1 until all have it.
  return fill_s(torus, latency_s, [](std::uint64_t nodes) { return 2 * (nodes - 1); });
}

double all_to_all_fill_s(const Torus& torus,
                         const std::array<double, k_torus_dimensions>& latency_s) {
  return fill_s(torus, latency_s, [](std::uint64_t nodes) { return nodes / 2; });
}

} // namespace reckon
