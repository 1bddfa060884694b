// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/stations.hpp"
#include "schedule/schedule.hpp"

#include <cstdint>
#include <vector>

namespace reckon::test {

/// Ranks with a port each way: station 2 r is rank r's egress, 2 r + 1 its ingress.
inline void add_ports(StationNetwork& network, std::size_t ranks, double bytes_per_s) {
  network.station_bytes_per_s.assign(2 * ranks, bytes_per_s);
  network.paths.assign(ranks, std::vector<std::vector<std::uint32_t>>(ranks));
  for (std::uint32_t from = 0; from < ranks; ++from) {
    for (std::uint32_t to = 0; to < ranks; ++to) {
      if (from != to) {
        network.paths[from][to] = {2 * from, 2 * to + 1};
      }
    }
  }
}

inline double no_cost(std::size_t /*rank*/, const Op& /*op*/) {
  return 0;
}

/// Workers of one lane each, nothing to do.
inline Schedule idle(std::size_t ranks) {
  Schedule s;
  s.worker.assign(ranks, true);
  s.ranks.resize(ranks);
  for (RankProgram& r : s.ranks) {
    r.lanes.resize(1);
  }
  return s;
}

inline std::uint32_t write(Schedule& s, std::uint32_t from, std::uint32_t to, std::uint64_t bytes,
                           std::uint32_t tag, const std::vector<std::uint32_t>& after = {}) {
  return s.ranks[from].lanes[0].append(
      {.kind = OpKind::write, .peer = to, .tag = tag, .bytes = bytes}, after);
}

inline std::uint32_t await(Schedule& s, std::uint32_t at, std::uint32_t from, std::uint32_t tag) {
  return s.ranks[at].lanes[0].append({.kind = OpKind::await, .peer = from, .tag = tag}, {});
}

/// A write and its await.
inline void send(Schedule& s, std::uint32_t from, std::uint32_t to, std::uint64_t bytes,
                 std::uint32_t tag) {
  write(s, from, to, bytes, tag);
  await(s, to, from, tag);
}

} // namespace reckon::test
