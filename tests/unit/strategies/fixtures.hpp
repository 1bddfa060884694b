// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/digest.hpp"
#include "documents/document.hpp"
#include "strategies/planner.hpp"

namespace reckon::test {

inline Cell published(const CellKey& key, const std::string& unit, double value) {
  Cell cell;
  cell.key = key;
  cell.status = CellStatus::published;
  cell.unit = unit;
  cell.min = cell.p50 = cell.p99 = cell.max = value;
  cell.bytes_convention = unit == "bytes_per_second" ? "payload" : "";
  return cell;
}

/// `count` machines "gpu" and as many "cpu" behind ports of these rates.
inline Profile cluster(double gpu_bytes_per_s, double cpu_bytes_per_s, std::uint64_t count = 4096) {
  Profile p;
  p.name = "cluster";
  p.source = "made for a test";
  p.machines = {{"gpu", "gpu", count, 8, 0}, {"cpu", "cpu", count, 8, 0}};
  CellKey key;
  key.test = "port_bandwidth";
  key.transport = "verbs";
  key.from = "gpu";
  p.cells.push_back(published(key, "bytes_per_second", gpu_bytes_per_s));
  key.from = "cpu";
  p.cells.push_back(published(key, "bytes_per_second", cpu_bytes_per_s));
  return p;
}

/// Of two operands in fp32, by so many threads.
inline Cell sum_rate(const std::string& from, int threads, double bytes_per_s) {
  CellKey sum;
  sum.test = "reduce_sum";
  sum.from = from;
  sum.dtype = "fp32";
  sum.sources = 2;
  sum.threads = threads;
  return published(sum, "bytes_per_second", bytes_per_s);
}

/// One machine whose processes write 8 GB/s to each other in total, over "host", and add up 5 GB/s
/// a thread.
inline Profile one_machine() {
  Profile p;
  p.name = "box";
  p.source = "made for a test";
  p.machines = {{"m0", "box", 1, 2, 0}};
  CellKey key;
  key.test = "fabric_aggregate";
  key.from = key.to = "m0";
  key.direction = "two_way";
  key.transport = "host";
  for (const int pairs : {1, 2}) {
    for (const std::uint64_t bytes : {65536U, 1048576U}) {
      key.pairs = pairs;
      key.bytes = bytes;
      p.cells.push_back(published(key, "bytes_per_second", 8e9));
    }
  }
  p.cells.push_back(sum_rate("m0", 2, 10e9));
  return p;
}

inline Workload workload(std::vector<Tensor> tensors) {
  Workload w;
  w.name = "test";
  w.tensors = std::move(tensors);
  return w;
}

inline Plan plan_for(const Profile& profile, const Workload& w, std::uint64_t workers,
                     std::uint64_t servers, const PlanOptions& options, int lanes = 1) {
  const Roles roles = default_roles(profile, workers, servers, lanes);
  return make_plan({profile, w, roles, {"p", digest_of("p")}, {"w", digest_of("w")}, std::nullopt},
                   options);
}

} // namespace reckon::test
