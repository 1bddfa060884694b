// SPDX-License-Identifier: Apache-2.0
#include "equations/torus.hpp"

#include "core/error.hpp"
#include "equations/checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace reckon {

using equations::check_positive;

namespace {

double of(std::uint64_t value) {
  return static_cast<double>(value);
}

std::size_t index_of(TorusDimension dimension) {
  return static_cast<std::size_t>(dimension);
}

void check(const Torus& torus) {
  for (std::size_t d = 0; d < k_torus_dimensions; ++d) {
    const double rate = torus.bytes_per_s[d];
    if (torus.nodes[d] < 1) {
      fail(ErrorKind::usage, "a torus has at least one node in each dimension");
    }
    if (torus.nodes[d] > 1 && !(rate > 0 && std::isfinite(rate))) {
      fail(ErrorKind::usage,
           fmt::format("dimension {} of the torus has {} nodes and a bandwidth of {} B/s; it must "
                       "be greater than 0",
                       d + 1, torus.nodes[d], rate));
    }
  }
}

TorusPhase ring_phase(CollectivePhase kind, TorusDimension dimension, std::uint64_t nodes,
                      double bytes) {
  TorusPhase phase{kind, dimension, bytes, bytes, 0, 0, {}};
  if (kind != CollectivePhase::all_gather) {
    phase.sent_bytes += ring_sent_bytes(nodes, bytes);
    phase.summed_bytes += ring_sent_bytes(nodes, bytes);
    phase.memory += reduce_scatter_traffic(nodes, bytes);
  } else {
    phase.held_bytes = bytes / of(nodes);
  }
  if (kind != CollectivePhase::reduce_scatter) {
    phase.sent_bytes += ring_sent_bytes(nodes, bytes);
    phase.memory += all_gather_traffic(nodes, bytes);
  }
  return phase;
}

void add(TorusTraffic& traffic, const TorusPhase& phase) {
  traffic.sent_bytes += phase.sent_bytes;
  traffic.memory += phase.memory;
  traffic.dimension_bytes[index_of(phase.dimension)] += phase.sent_bytes;
  traffic.phases.push_back(phase);
}

} // namespace

MemoryTraffic& MemoryTraffic::operator+=(const MemoryTraffic& other) {
  read_bytes += other.read_bytes;
  last_sum_bytes += other.last_sum_bytes;
  written_bytes += other.written_bytes;
  return *this;
}

double ring_sent_bytes(std::uint64_t nodes, double bytes) {
  return bytes * of(nodes - 1) / of(nodes);
}

MemoryTraffic reduce_scatter_traffic(std::uint64_t nodes, double bytes) {
  if (nodes < 2) {
    return {};
  }
  const double part = bytes / of(nodes);
  // The first part is sent as it is; each later one is the sum of what came and what is there.
  // The last to come is summed, and stays.
  return {part * (1 + 2 * of(nodes - 2)), 2 * part, part * of(nodes - 1) + part};
}

MemoryTraffic all_gather_traffic(std::uint64_t nodes, double bytes) {
  if (nodes < 2) {
    return {};
  }
  const double moved = ring_sent_bytes(nodes, bytes);
  return {moved, 0, moved};
}

TorusTraffic torus_all_reduce(const Torus& torus) {
  check(torus);
  const auto [local, vertical, horizontal] = torus.nodes;
  const double part = 1 / of(local);
  TorusTraffic traffic;
  if (local > 1) {
    add(traffic, ring_phase(CollectivePhase::reduce_scatter, TorusDimension::local, local, 1));
  }
  if (vertical > 1) {
    add(traffic, ring_phase(CollectivePhase::all_reduce, TorusDimension::vertical, vertical, part));
  }
  if (horizontal > 1) {
    add(traffic,
        ring_phase(CollectivePhase::all_reduce, TorusDimension::horizontal, horizontal, part));
  }
  if (local > 1) {
    add(traffic, ring_phase(CollectivePhase::all_gather, TorusDimension::local, local, 1));
  }
  return traffic;
}

TorusTraffic torus_all_to_all(const Torus& torus) {
  check(torus);
  TorusTraffic traffic;
  traffic.loaded_bytes = 1 - 1 / of(torus.size()); // its own part stays where it is
  for (std::size_t d = 0; d < k_torus_dimensions; ++d) {
    const std::uint64_t n = torus.nodes[d];
    if (n < 2) {
      continue;
    }
    // The distances round a ring of n add up to floor(n^2 / 4), one of them 0.
    const double hops = of(n * n / 4) / of(n);
    traffic.dimension_bytes[d] = hops;
    traffic.sent_bytes += hops;
    // Without an engine each node on the way writes what it forwards, and reads it again.
    traffic.memory += {hops, 0, hops};
  }
  return traffic;
}

TorusLimit torus_limit(const Torus& torus, const TorusTraffic& traffic) {
  check(torus);
  TorusLimit limit;
  double longest = 0; // seconds for each byte loaded
  for (std::size_t d = 0; d < k_torus_dimensions; ++d) {
    const double seconds =
        traffic.dimension_bytes[d] > 0 ? traffic.dimension_bytes[d] / torus.bytes_per_s[d] : 0;
    if (seconds > longest) {
      longest = seconds;
      limit.busiest = static_cast<TorusDimension>(d);
    }
  }
  if (longest == 0) {
    fail(ErrorKind::usage, "a torus of one node sends nothing");
  }
  limit.bytes_per_s = traffic.sent_bytes / longest;
  return limit;
}

std::vector<TorusDimension> busiest_dimensions(const Torus& torus, const TorusTraffic& traffic) {
  constexpr double k_rounding = 1e-9;
  const auto seconds = [&](std::size_t d) {
    return torus.nodes[d] > 1 ? traffic.dimension_bytes[d] / torus.bytes_per_s[d] : 0;
  };
  const double longest_s = seconds(static_cast<std::size_t>(torus_limit(torus, traffic).busiest));
  std::vector<TorusDimension> busiest;
  for (std::size_t d = 0; d < k_torus_dimensions; ++d) {
    if (seconds(d) >= longest_s * (1 - k_rounding)) {
      busiest.push_back(static_cast<TorusDimension>(d));
    }
  }
  return busiest;
}

TorusMemoryRates memory_rates(const TorusTraffic& traffic, double sent_bytes_per_s) {
  const auto rate = [&](double bytes) { return sent_bytes_per_s * bytes / traffic.sent_bytes; };
  const double read = rate(traffic.memory.read_bytes);
  return {rate(traffic.loaded_bytes), read, read + rate(traffic.memory.last_sum_bytes),
          rate(traffic.memory.written_bytes)};
}

std::uint64_t movers_needed(double bytes_per_s, double each_bytes_per_s) {
  check_positive(each_bytes_per_s, "what each mover moves");
  constexpr double k_rounding = 1e-9;
  const double movers = std::ceil(bytes_per_s / each_bytes_per_s - k_rounding);
  constexpr double k_most = 1e15; // all integers up to there are doubles
  if (!(movers <= k_most)) {
    fail(ErrorKind::usage,
         fmt::format("{:g} B/s by movers of {:g} B/s each: more than {:g} of them", bytes_per_s,
                     each_bytes_per_s, k_most));
  }
  return static_cast<std::uint64_t>(std::max(0.0, movers));
}

std::uint64_t messages_of_chunk(double chunk_bytes, double message_bytes, std::uint64_t nodes) {
  check_positive(chunk_bytes, "a chunk's size");
  check_positive(message_bytes, "a message's size");
  if (nodes < 1) {
    fail(ErrorKind::usage, "a ring has at least one node");
  }
  const auto least = static_cast<std::uint64_t>(std::ceil(chunk_bytes / message_bytes));
  return (least + nodes - 1) / nodes * nodes;
}

std::vector<double> sram_partitions(double sram_bytes, const Torus& torus,
                                    std::span<const TorusPhase> phases) {
  check_positive(sram_bytes, "the engine's memory");
  if (phases.empty()) {
    fail(ErrorKind::usage, "a collective without phases needs no buffer");
  }
  std::vector<double> weights;
  for (const TorusPhase& phase : phases) {
    weights.push_back(torus.bytes_per_s[index_of(phase.dimension)] * phase.held_bytes);
  }
  weights.push_back(weights.back());
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) {
    weight *= sram_bytes / sum;
  }
  return weights;
}

} // namespace reckon
