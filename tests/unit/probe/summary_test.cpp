// SPDX-License-Identifier: Apache-2.0
#include "probe/probe.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reckon {
namespace {

using testing::HasSubstr;
using testing::Not;

Cell cell(const CellKey& key, const std::string& unit, double value,
          CellStatus status = CellStatus::ok) {
  Cell c;
  c.key = key;
  c.unit = unit;
  c.status = status;
  if (c.has_value()) {
    c.samples = {value, value, value};
    summarize_cell(c);
  } else {
    c.reason = "no time";
  }
  return c;
}

CellKey key(const std::string& test, const std::string& from, const std::string& to = "") {
  CellKey k;
  k.test = test;
  k.from = from;
  k.to = to;
  return k;
}

Profile two_nodes() {
  Profile p;
  p.name = "box";
  p.context = {{"cpu", "Some CPU"}, {"took", "12 s"}};
  p.machines.emplace_back();
  p.machines[0].id = "m0";
  p.machines[0].cores = 4;
  for (const char* const id : {"m0", "m0/numa0", "m0/numa1"}) {
    TopologyObject o;
    o.id = id;
    o.kind = p.topology.objects.empty() ? ObjectKind::machine : ObjectKind::numa_node;
    o.parent = p.topology.objects.empty() ? "" : "m0";
    p.topology.objects.push_back(o);
  }
  return p;
}

TEST(Summary, MatricesHaveRowsForSourcesAndNAForHoles) {
  Profile p = two_nodes();
  const auto copy = [](const std::string& from, const std::string& to) {
    CellKey k = key("numa_to_numa_copy_cpu", "m0/" + from, "m0/" + to);
    k.direction = "one_way";
    k.threads = 2;
    return k;
  };
  p.cells = {cell(copy("numa0", "numa0"), "bytes_per_second", 40e9),
             cell(copy("numa0", "numa1"), "bytes_per_second", 20.5e9, CellStatus::noisy),
             cell(copy("numa1", "numa0"), "bytes_per_second", 0, CellStatus::skipped),
             cell(copy("numa1", "numa1"), "bytes_per_second", 39e9)};
  const std::string text = summary_of(p);
  EXPECT_THAT(text, HasSubstr("box: Some CPU, 4 cores, 2 NUMA nodes"));
  EXPECT_THAT(text, HasSubstr("4 cells: 2 ok, 1 noisy, 1 skipped; took 12 s"));
  EXPECT_THAT(text, HasSubstr("  from\\to  numa0   numa1\n"
                              "  numa0    40.00  20.50~\n"
                              "  numa1      N/A   39.00\n"));
  EXPECT_THAT(text, HasSubstr("~ noisy"));
}

TEST(Summary, NothingMeasuredNothingShown) {
  Profile p = two_nodes();
  const std::string text = summary_of(p);
  EXPECT_THAT(text, Not(HasSubstr("\n\n")));
  EXPECT_THAT(text, Not(HasSubstr("N/A")));
  EXPECT_THAT(text, HasSubstr("0 cells"));
}

TEST(Summary, TransportsShowLatencyBestRatesAndTheSum) {
  Profile p = two_nodes();
  CellKey k = key("fabric_write_latency", "m0", "m0");
  k.transport = "tcp;ofi_rxm";
  k.bytes = 8;
  k.direction = "one_way";
  p.cells.push_back(cell(k, "seconds", 11.5e-6));
  k.test = "fabric_write";
  k.in_flight = 4;
  for (const auto& [bytes, seconds] : {std::pair{1024, 2e-6}, std::pair{1 << 20, 250e-6}}) {
    k.bytes = static_cast<std::uint64_t>(bytes);
    p.cells.push_back(cell(k, "seconds", seconds));
  }
  k.test = "fabric_aggregate";
  k.direction = "two_way";
  k.state = "cold";
  k.bytes = 1 << 20;
  for (const int pairs : {1, 2}) {
    k.pairs = pairs;
    p.cells.push_back(cell(k, "bytes_per_second", 5e9 * pairs));
  }
  const std::string text = summary_of(p);
  // 1 MiB in 250 us are 4.19 GB/s.
  EXPECT_THAT(text, testing::ContainsRegex("tcp;ofi_rxm +11.5 us +4 +4.19 at 1 MiB +N/A"));
  EXPECT_THAT(text, testing::ContainsRegex("tcp;ofi_rxm +5.00 +10.00"));
}

} // namespace
} // namespace reckon
