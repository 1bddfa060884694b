// SPDX-License-Identifier: Apache-2.0
#include "support/machine_documents.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string>

namespace reckon::test {
namespace {

constexpr int k_cores = 8;

std::string core(int i) {
  return "m0/core" + std::to_string(i);
}
std::string node(int i) {
  return "m0/numa" + std::to_string(i);
}

/// Twelve samples within 2 % of `value`, the slowest last.
void measure(Cell& cell, double value) {
  for (int i = 0; i < 12; ++i) {
    const double off = 0.02 * (i - 5.5) / 5.5;
    cell.samples.push_back(value * (1 + (cell.unit == "seconds" ? off : -off)));
  }
  summarize_cell(cell);
}

Cell cell(CellKey key, std::string unit, double value) {
  Cell c;
  c.key = std::move(key);
  c.unit = std::move(unit);
  if (c.unit == "bytes_per_second") {
    c.bytes_convention = "payload";
  }
  measure(c, value);
  return c;
}

Cell without_value(CellKey key, CellStatus status, std::string reason) {
  Cell c;
  c.key = std::move(key);
  c.status = status;
  c.unit = "bytes_per_second";
  c.reason = std::move(reason);
  return c;
}

CellKey key(std::string test, std::string from, std::string to = "") {
  CellKey k{.test = std::move(test), .from = std::move(from), .to = std::move(to)};
  return k;
}

void add_topology(Profile& p) {
  auto add = [&](std::string id, ObjectKind kind, std::string parent) -> TopologyObject& {
    return p.topology.objects.emplace_back(
        TopologyObject{.id = std::move(id), .kind = kind, .parent = std::move(parent)});
  };
  add("m0", ObjectKind::machine, "").name = "alpha";
  for (int n = 0; n < 2; ++n) {
    const std::string package = "m0/package" + std::to_string(n);
    add(package, ObjectKind::package, "m0").name = "Example 9000";
    TopologyObject& numa = add(node(n), ObjectKind::numa_node, package);
    numa.bytes = 68719476736;
    numa.os_index = n;
    TopologyObject& l3 = add("m0/l3_" + std::to_string(n), ObjectKind::cache, node(n));
    l3.cache_level = 3;
    l3.bytes = 33554432;
    for (int c = 4 * n; c < 4 * n + 4; ++c) {
      add(core(c), ObjectKind::core, node(n)).cpus = {c};
    }
  }
  TopologyObject& nic = add("m0/nic0", ObjectKind::nic, "m0/package0");
  nic.name = "mlx5_0";
  nic.pci_address = "0000:17:00.0";
  nic.link_bytes_per_second = 12.5e9;
}

void add_matrices(Profile& p) {
  for (int i = 0; i < k_cores; ++i) {
    for (int j = 0; j < k_cores; ++j) {
      if (i != j) {
        const double ns = i / 4 == j / 4 ? 24 + ((i * 3 + j * 5) % 7) : 96 + ((i * 5 + j * 3) % 11);
        p.cells.push_back(
            cell(key("core_to_core_latency_cas", core(i), core(j)), "seconds", ns * 1e-9));
      }
    }
  }
  for (const char* operation : {"copy", "read", "write"}) {
    for (int threads : {1, 4}) {
      for (int i = 0; i < 2; ++i) {
        for (int j = 0; j < 2; ++j) {
          CellKey k = key(std::string("numa_to_numa_") + operation + "_cpu", node(i), node(j));
          k.bytes = 268435456;
          k.threads = threads;
          k.direction = "one_way";
          Cell c =
              cell(k, "bytes_per_second", (i == j ? 12.5e9 : 7.25e9) * (threads == 1 ? 1 : 2.6));
          c.ceiling = Ceiling{"DDR4-3200, 2 channels", 51.2e9};
          p.cells.push_back(std::move(c));
        }
      }
    }
  }
}

void add_curves(Profile& p) {
  struct Link {
    const char* transport;
    double alpha, beta;
    double large_alpha, large_beta;
  };
  for (const Link& link :
       {Link{"shm", 0.9e-6, 4e9, 5e-6, 8e9}, Link{"tcp;ofi_rxm", 14e-6, 1.2e9, 40e-6, 3e9}}) {
    for (const char* direction : {"one_way", "two_way"}) {
      CellKey k = key("fabric_write", "m0", "m0");
      k.transport = link.transport;
      k.direction = direction;
      k.pairs = 1;
      k.in_flight = 4;
      const double share = direction[0] == 't' ? 0.6 : 1;
      for (std::uint64_t bytes = 8; bytes <= 268435456; bytes *= 2) {
        const bool large = bytes >= 65536;
        const double seconds =
            (large ? link.large_alpha : link.alpha) +
            static_cast<double>(bytes) / ((large ? link.large_beta : link.beta) * share);
        k.bytes = bytes;
        p.cells.push_back(cell(k, "seconds", seconds));
      }
      Fit fit;
      fit.key = k;
      fit.key.bytes = 0;
      fit.segments = {{8, 32768, link.alpha, link.beta * share, 0.012},
                      {65536, 268435456, link.large_alpha, link.large_beta * share, 0.004}};
      fit.knee_bytes = 524288;
      p.fits.push_back(fit);
    }
    CellKey many = key("fabric_aggregate", "m0", "m0");
    many.transport = link.transport;
    many.direction = "one_way";
    many.bytes = 4194304;
    many.in_flight = 4;
    for (int pairs : {1, 2, 4}) {
      many.pairs = pairs;
      p.cells.push_back(
          cell(many, "bytes_per_second", link.large_beta * std::min(1.6, 1 + 0.3 * (pairs - 1))));
    }
  }
}

void add_kernels(Profile& p) {
  for (const char* dtype : {"fp32", "fp16", "bf16"}) {
    for (int threads : {1, 2, 4, 8}) {
      CellKey k = key("reduce_sum", node(0));
      k.bytes = 16777216;
      k.sources = 2;
      k.dtype = dtype;
      k.threads = threads;
      const double one = std::string(dtype) == "fp32" ? 9.1e9 : 6.4e9;
      Cell c = cell(k, "bytes_per_second", std::min(one * threads, 31e9));
      c.bytes_convention = "stream";
      c.ceiling = Ceiling{"STREAM-like add, " + std::to_string(threads) + " threads",
                          std::min(10e9 * threads, 34e9)};
      p.cells.push_back(std::move(c));
    }
  }
  for (const char* operation : {"sgd", "momentum", "rmsprop", "adam"}) {
    for (int threads : {1, 2, 4, 8}) {
      CellKey k = key("optimizer_step", node(0));
      k.bytes = 16777216;
      k.dtype = "fp32";
      k.operation = operation;
      k.threads = threads;
      const double one = operation[0] == 'a' ? 3.1e9 : 7.7e9;
      p.cells.push_back(cell(k, "bytes_per_second", std::min(one * threads, 28e9)));
    }
  }
  p.cells.back().status = CellStatus::noisy;
  p.cells.back().reason = "other processes took 31 % of a core";
}

} // namespace

Profile machine_profile() {
  Profile p;
  p.name = "alpha";
  p.source = "measured by reckon 0.1.0";
  p.context = {
      {"cpu", "Example 9000"}, {"host", "alpha"}, {"kernel", "Linux 6.1.0"}, {"seed", "7"}};
  p.fingerprint = "sha256:5ad1c0de5ad1c0de5ad1c0de5ad1c0de5ad1c0de5ad1c0de5ad1c0de5ad1c0de";
  p.machines = {
      {.id = "m0", .name = "alpha", .count = 8, .cores = k_cores, .memory_bytes = 137438953472}};
  add_topology(p);
  add_matrices(p);
  add_curves(p);
  add_kernels(p);
  CellKey verbs = key("fabric_write", "m0", "m0");
  verbs.transport = "verbs;ofi_rxm";
  for (std::uint64_t bytes : {8U, 4096U, 1048576U}) {
    verbs.bytes = bytes;
    p.cells.push_back(without_value(verbs, CellStatus::unsupported,
                                    "fi_getinfo(verbs;ofi_rxm): No data available"));
  }
  CellKey late = key("memory_latency_chase", node(1));
  late.bytes = 1073741824;
  p.cells.push_back(without_value(late, CellStatus::skipped, "no time left of 30 s"));
  late.bytes = 8388608;
  p.cells.push_back(cell(late, "seconds", 14.2e-9));
  std::sort(p.cells.begin(), p.cells.end(),
            [](const Cell& a, const Cell& b) { return a.key < b.key; });
  return p;
}

Plan machine_plan() {
  constexpr std::uint64_t k_part = 4194304;
  constexpr std::size_t k_parts = 240;
  constexpr std::size_t k_workers = 8;
  constexpr std::size_t k_ranks = 10;
  Plan p;
  p.profile = link_to("alpha", canonical_text(machine_profile()));
  p.workload = {"bert_large", "sha256:" + std::string(64, '1')};
  p.options = {{"servers", "2"}, {"strategy", "auto"}, {"workers", "8"}};
  p.strategy = "byteps_split";
  p.transport = "tcp;ofi_rxm";
  p.gradient_bytes = k_part * k_parts;
  p.runs = {{0, p.gradient_bytes, DType::fp32}};
  p.part_bytes = k_part;
  p.window_parts = 4;
  // n = 8, k = 2: a worker sums 2 (n-k) / (n^2 + kn - 2k) = 12/76 of the mean, a server the rest.
  p.ranks.resize(k_ranks);
  for (std::size_t r = 0; r < k_ranks; ++r) {
    const bool worker = r < k_workers;
    p.ranks[r] = {.machine = "m0",
                  .worker = worker,
                  .server = true,
                  .lanes = worker ? 2 : 4,
                  .share_bytes =
                      static_cast<double>(p.gradient_bytes) * (worker ? 12.0 : 14.0) / 124,
                  .assigned_bytes = 0,
                  .port_bytes_per_second = 12.5e9,
                  .egress_bytes = 1761607680,
                  .ingress_bytes = 1761607680};
  }
  for (std::size_t i = 0; i < k_parts; ++i) {
    const std::size_t slot = i % 124;
    const std::size_t server = slot < 96 ? slot % k_workers : k_workers + slot % 2;
    p.parts.offset_bytes.push_back(i * k_part);
    p.parts.bytes.push_back(k_part);
    p.parts.server.push_back(server);
    p.parts.lane.push_back(i % static_cast<std::size_t>(p.ranks[server].lanes));
    p.ranks[server].assigned_bytes += k_part;
  }
  const auto predict = [](double bound, double transport, double reduction, double fill,
                          std::string by) {
    const double mid = transport + reduction + fill;
    return Prediction{.bound_seconds = bound,
                      .bound_by = std::move(by),
                      .lo_seconds = 0.97 * mid,
                      .mid_seconds = mid,
                      .hi_seconds = 1.06 * mid,
                      .terms = {{"transport", transport}, {"reduction", reduction}, {"fill", fill}},
                      .relief = "a third server: 8 % less"};
  };
  p.prediction = predict(0.1322, 0.1351, 0.0042, 0.0031, "ports of all ranks (BytePS eq. 4)");
  p.assignment_gap = 0.0123;
  p.runner_up = "ring";
  p.margin = 0.19;
  p.margin_text = "the ports of ranks 8 and 9 may lose 38 % before ring is as fast";
  p.candidates = {
      {"byteps_split", p.prediction, ""},
      {"ring", predict(0.1409, 0.1612, 0.0066, 0.0017, "ports of workers (ring, 2 (n-1)/n)"), ""},
      {"ps_colocated", predict(0.1409, 0.1633, 0.0071, 0.0034, "ports of workers"), ""},
      {"ps_noncolocated", predict(0.6443, 0.6612, 0.0066, 0.0017, "ports of 2 servers"), ""},
      {"hierarchical", std::nullopt, "there is only one machine in each group"}};
  p.quantities = {{"worker_share_bytes",
                   p.ranks[0].share_bytes,
                   "BytePS eq. 2",
                   {{"k", 2}, {"n", 8}, {"M", 1006632960}}},
                  {"server_share_bytes",
                   p.ranks[9].share_bytes,
                   "BytePS eq. 1",
                   {{"k", 2}, {"n", 8}, {"M", 1006632960}}},
                  {"time_seconds",
                   0.1322,
                   "BytePS eq. 4",
                   {{"bandwidth_bytes_per_second", 12.5e9}, {"k", 2}, {"n", 8}}},
                  {"speedup_over_allreduce", 1.0658, "BytePS eq. 5", {{"k", 2}, {"n", 8}}}};
  return p;
}

Report machine_report() {
  const Plan plan = machine_plan();
  Report r;
  r.plan = link_to("plan", canonical_text(plan));
  r.profile = plan.profile;
  r.workload = plan.workload;
  r.context = {{"host", "alpha"}, {"version", "0.1.0"}};
  r.strategy = plan.strategy;
  r.transport = plan.transport;
  for (int i = 0; i < 12; ++i) {
    r.iteration_seconds.push_back(0.1551 + 0.0003 * ((i * 5) % 12));
  }
  // 0.1551 + 0.0003 * {0 .. 11}: median at 5.5, median deviation 3 steps.
  r.warm_up_iterations = 3;
  r.min_seconds = 0.1551;
  r.p50_seconds = 0.15675;
  r.p99_seconds = 0.158367;
  r.spread = 0.0009 / 0.15675;
  r.prediction = plan.prediction;
  r.error = r.p50_seconds / r.prediction.mid_seconds - 1;
  r.goodput_over_bound = r.prediction.bound_seconds / r.p50_seconds;
  r.tolerance = 0.15;
  r.within_tolerance = true;
  r.cause = "reduction: took 14.6 ms where 4.2 ms were predicted, the lanes of ranks 8 and 9 share "
            "two cores";
  r.stages = {{"transport", 0.1351, 0.1388, "time with writes under way"},
              {"reduction", 0.0042, 0.0146, "summing, not hidden behind transport"},
              {"fill", 0.0031, std::nullopt, "not told apart from transport"},
              {"total", r.prediction.mid_seconds, r.p50_seconds,
               "from when all can know that all are ready to the last completion"}};
  for (int i = 0; i < 10; ++i) {
    r.ranks.push_back({.host = "alpha",
                       .egress_bytes = 1761607680,
                       .ingress_bytes = 1761607680,
                       .busy_seconds = 0.061 + 0.001 * i,
                       .reduce_seconds = 0.012,
                       .wait_seconds = 0.093 - 0.001 * i,
                       .total_seconds = 0.1561,
                       .peer_wait_seconds = 0.0002 * i,
                       .cpu_seconds = 0.07});
  }
  r.verification = {
      .ok = true, .checked_bytes = 8 * plan.gradient_bytes, .wrong_elements = 0, .first_error = ""};
  return r;
}

} // namespace reckon::test
