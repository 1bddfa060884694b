// SPDX-License-Identifier: Apache-2.0
#include "documents/cells.hpp"
#include "present/document_text.hpp"
#include "support/messages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reckon {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

Cell cell(const CellKey& key, double value, CellStatus status = CellStatus::ok) {
  Cell c;
  c.key = key;
  c.unit = cell_case(key.test).unit;
  c.status = status;
  if (c.has_value()) {
    c.samples = {value, value, value};
    summarize_cell(c);
  } else {
    c.reason = "no time";
  }
  return c;
}

Profile two_nodes() {
  Profile p;
  p.name = "box";
  p.context = {{"cpu", "Some CPU"}, {"took", "12 s"}};
  MachineGroup& machine = p.machines.emplace_back();
  machine.id = "m0";
  machine.cores = 4;
  for (const char* const id : {"m0", "m0/numa0", "m0/numa1"}) {
    TopologyObject& o = p.topology.objects.emplace_back();
    o.id = id;
    o.kind = p.topology.objects.size() == 1 ? ObjectKind::machine : ObjectKind::numa_node;
    o.parent = p.topology.objects.size() == 1 ? "" : "m0";
  }
  return p;
}

std::string summary_of(const Profile& p) {
  return render_summary(p, Style());
}

TEST(Summary, MatricesHaveRowsForSourcesAndSayWhatIsMissing) {
  Profile p = two_nodes();
  const auto copy = [](const char* from, const char* to) {
    return CellKey{
        .test = k_numa_copy, .from = from, .to = to, .threads = 2, .direction = k_one_way};
  };
  p.cells = {cell(copy("m0/numa0", "m0/numa0"), 40e9),
             cell(copy("m0/numa0", "m0/numa1"), 20.5e9, CellStatus::noisy),
             cell(copy("m0/numa1", "m0/numa0"), 0, CellStatus::skipped),
             cell(copy("m0/numa1", "m0/numa1"), 39e9)};
  const std::string text = summary_of(p);
  EXPECT_THAT(text, test::Says("4 cores"));
  EXPECT_THAT(text, test::Says("4 cells"));
  EXPECT_THAT(text, test::Says("40.00"));
  EXPECT_THAT(text, HasSubstr("~ noisy"));
  EXPECT_THAT(text, ContainsRegex("skipped +1 +numa_to_numa_copy_cpu +no time\n"));
}

TEST(Summary, NothingMeasuredNothingShown) {
  Profile p = two_nodes();
  EXPECT_EQ(summary_of(p), "box: Some CPU, 4 cores, 2 NUMA nodes\n0 cells; took 12 s\n");
  p.context["gpus_left_out"] = "no driver";
  EXPECT_THAT(summary_of(p), test::Says("measured"));
}

TEST(Summary, TransportsShowLatencyRatesAndTheSum) {
  Profile p = two_nodes();
  CellKey k{.test = k_fabric_latency,
            .from = "m0",
            .to = "m0",
            .bytes = 8,
            .transport = "tcp;ofi_rxm",
            .direction = k_one_way};
  p.cells.push_back(cell(k, 11.5e-6));
  k.test = k_fabric_write;
  k.in_flight = 4;
  for (const auto& [bytes, seconds] :
       {std::pair{64U, 2e-6}, {4096U, 2e-6}, {8192U, 3e-6}, {1U << 20U, 250e-6}}) {
    k.bytes = bytes;
    p.cells.push_back(cell(k, seconds));
  }
  k.test = k_fabric_aggregate;
  k.direction = k_two_way;
  for (const char* const state : {"cold", "warm"}) {
    for (const int pairs : {1, 2}) {
      k.state = state;
      k.pairs = pairs;
      p.cells.push_back(cell(k, (k.state == "cold" ? 5e9 : 7e9) * pairs));
    }
  }
  const std::string text = summary_of(p);
  EXPECT_THAT(text, ContainsRegex("fabric_write_latency.*\n.*\n.*11.50 us"));
  EXPECT_THAT(text, ContainsRegex("  1 MiB +4.19\n")); // in 250 us
  EXPECT_THAT(text, Not(HasSubstr("8 KiB")));          // a few sizes are enough
  EXPECT_THAT(text, ContainsRegex(" 5.00 +10.00\n"));
  EXPECT_THAT(text, Not(HasSubstr("7.00")));
}

TEST(Summary, TheReasonsOfFailuresComeFirstAndOnceEach) {
  Profile p = two_nodes();
  for (const char* const transport : {"shm", "tcp"}) {
    for (const std::uint64_t bytes : {64U, 256U, 1024U}) {
      p.cells.push_back(
          cell({.test = k_fabric_write, .bytes = bytes, .transport = transport}, 0,
               std::string_view(transport) == "shm" ? CellStatus::failed : CellStatus::skipped));
      p.cells.back().reason = p.cells.back().status == CellStatus::failed
                                  ? "fi_enable(shm): Read-only file system"
                                  : "no time left";
    }
  }
  p.cells.push_back(cell({.test = k_host_memcpy, .bytes = 8}, 1e-9, CellStatus::noisy));
  p.cells.back().reason = "the machine was busy";
  EXPECT_THAT(summary_of(p),
              ContainsRegex("not measured\n.*reason\n"
                            "  failed +3 +fabric_write +fi_enable.shm.: Read-only file system\n"
                            "  skipped +3 +fabric_write +no time left\n"));
  EXPECT_THAT(summary_of(p), Not(HasSubstr("the machine was busy")));
  EXPECT_THAT(render_cluster(p, Style()), test::Says("fi_enable(shm)"));
}

TEST(Summary, RailsHaveARowForEachPairAndAllAtOnceBesideTheSum) {
  Profile p;
  p.machines = {{.id = "m0", .count = 2, .members = {"w0", "w1"}}};
  const auto rail = [&](const char* from, const char* to, const char* name, double rate) {
    p.cells.push_back(
        cell({.test = k_rail_bandwidth, .from = from, .to = to, .operation = name}, rate));
  };
  rail("w0/mlx5_0", "w1/mlx5_0", "rail0", 40e9);
  rail("w0/mlx5_1", "w1/ib1", "rail10", 20e9);
  rail("w0/mlx5_2", "w1/mlx5_2", "rail2", 40e9);
  rail("w0", "w1", k_rails_at_once, 75e9);
  rail("w1/mlx5_0", "w0/mlx5_0", "rail0", 41e9);
  rail("w1/ib1", "w0/mlx5_1", "rail10", 20e9);
  for (const std::string& text : {render_cluster(p, Style()), render(p, Style())}) {
    EXPECT_THAT(text, ContainsRegex("from +to +mlx5_0 +mlx5_2 +rail10 +at once +sum"));
    EXPECT_THAT(text, ContainsRegex("  w0 +w1 +40.00 GB/s +40.00 GB/s +20.00 GB/s +75.00 GB/s "
                                    "+100.00 GB/s +75 %\n"));
    EXPECT_THAT(text, ContainsRegex("  w1 +w0 +41.00 GB/s +N/A +20.00 GB/s +N/A *\n"));
  }
}

} // namespace
} // namespace reckon
