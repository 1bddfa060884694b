// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/digest.hpp"
#include "documents/document.hpp"
#include "strategies/default_roles.hpp"
#include "strategies/forest/racks.hpp"
#include "strategies/planner.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
inline void add_rate(Profile& profile, const CellKey& key, double bytes_per_s) {
  profile.cells.push_back(published(key, "bytes_per_second", bytes_per_s));
}
inline void add_time(Profile& profile, const CellKey& key, double seconds) {
  profile.cells.push_back(published(key, "seconds", seconds));
}
inline void add_port(Profile& profile, const std::string& machine, double bytes_per_s) {
  add_rate(profile, {.test = "port_bandwidth", .from = machine, .transport = "verbs"}, bytes_per_s);
}
/// One of several ports of a machine.
inline void add_single_port(Profile& profile, const std::string& port, double bytes_per_s) {
  add_rate(profile, {.test = "single_port_bandwidth", .from = port, .transport = "verbs"},
           bytes_per_s);
}
/// Of two operands in fp32, by so many threads.
inline Cell sum_rate(const std::string& from, int threads, double bytes_per_s) {
  return published(
      {.test = "reduce_sum", .from = from, .threads = threads, .sources = 2, .dtype = "fp32"},
      "bytes_per_second", bytes_per_s);
}

inline Profile empty_profile(const std::string& name) {
  Profile p;
  p.name = name;
  p.source = "made for a test";
  return p;
}

/// `count` machines "gpu" and as many "cpu" behind ports of these rates.
inline Profile cluster(double gpu_bytes_per_s, double cpu_bytes_per_s, std::uint64_t count = 4096) {
  Profile p = empty_profile("cluster");
  p.machines = {{"gpu", "gpu", count, 8, 0}, {"cpu", "cpu", count, 8, 0}};
  add_port(p, "gpu", gpu_bytes_per_s);
  add_port(p, "cpu", cpu_bytes_per_s);
  return p;
}

/// One machine whose processes write 8 GB/s to each other in total, over "host", and add up 5 GB/s
/// a thread.
inline Profile one_machine() {
  Profile p = empty_profile("box");
  p.machines = {{"m0", "box", 1, 2, 0}};
  for (const int pairs : {1, 2}) {
    for (const std::uint64_t bytes : {65536U, 1048576U}) {
      add_rate(p,
               {.test = "fabric_aggregate",
                .from = "m0",
                .to = "m0",
                .bytes = bytes,
                .pairs = pairs,
                .transport = "host",
                .direction = "two_way"},
               8e9);
    }
  }
  p.cells.push_back(sum_rate("m0", 2, 10e9));
  return p;
}

/// The same with 40 GB/s of memory traffic for sums in place, by one thread and by two together.
inline Profile machine_that_shares() {
  Profile p = one_machine();
  for (const int threads : {1, 2}) {
    add_rate(p,
             {.test = "sum_in_place",
              .from = "m0",
              .bytes = 1048576,
              .threads = threads,
              .sources = 2,
              .dtype = "fp32",
              .state = "cold"},
             40e9);
  }
  add_rate(p, {.test = "stream_copy", .from = "m0", .threads = 2}, 50e9);
  return p;
}

inline Profile shipped_profile(const std::string& name) {
  return read_profile(RECKON_SOURCE_DIR "/profiles/" + name + ".json");
}

inline Workload workload(std::vector<Tensor> tensors) {
  Workload w;
  w.name = "test";
  w.tensors = std::move(tensors);
  return w;
}
inline Workload one_tensor(std::uint64_t elements) {
  return workload({{"t", elements, DType::fp32}});
}
/// Tensors t0, t1, ... of fp32.
inline Workload equal_tensors(std::size_t count, std::uint64_t elements) {
  Workload w = workload({});
  for (std::size_t t = 0; t < count; ++t) {
    w.tensors.push_back({"t" + std::to_string(t), elements, DType::fp32});
  }
  return w;
}

inline PlanInputs inputs_of(const Profile& profile, const Workload& w, const Roles& roles) {
  return {profile, w, roles, {"p", digest_of("p")}, {"w", digest_of("w")}, std::nullopt};
}

inline Plan plan_for(const Profile& profile, const Workload& w, std::uint64_t workers,
                     std::uint64_t servers, const PlanOptions& options, int lanes = 1) {
  const Roles roles = default_roles(profile, workers, servers, lanes);
  return make_plan(inputs_of(profile, w, roles), options);
}

/// The machines of a cluster, ports and uplinks of 1 GB/s, dealt to so many racks: its first ranks
/// work, the others serve.
inline Plan plan_in_racks(const Workload& w, std::uint64_t workers, std::uint64_t servers,
                          std::uint64_t racks, PlanOptions options, int lanes = 1) {
  Profile p = empty_profile("racks");
  Roles roles;
  roles.name = "racks";
  for (std::uint64_t r = 0; r < workers + servers; ++r) {
    const std::string id = "m" + std::to_string(r);
    const std::uint64_t rack = (r < workers ? r : r - workers) % racks;
    p.machines.push_back({id, id, 1, 8, 0, "rack" + std::to_string(rack)});
    add_port(p, id, 1e9);
    roles.groups.push_back({id, 1, r < workers, true, lanes});
  }
  for (std::uint64_t rack = 0; rack < racks; ++rack) {
    add_rate(p, {.test = "uplink_bandwidth", .from = "rack" + std::to_string(rack)}, 1e9);
  }
  options.strategy = k_rack_hierarchical;
  return make_plan(inputs_of(p, w, roles), options);
}

/// Null where the plan has none of this name.
inline const Quantity* quantity_of(const Plan& plan, std::string_view name) {
  const auto found = std::find_if(plan.quantities.begin(), plan.quantities.end(),
                                  [&](const Quantity& q) { return q.name == name; });
  return found != plan.quantities.end() ? &*found : nullptr;
}

} // namespace reckon::test
