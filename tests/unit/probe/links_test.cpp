// SPDX-License-Identifier: Apache-2.0
#include "probe/links.hpp"

#include "core/processors.hpp"
#include "documents/cells.hpp"
#include "fakes.hpp"
#include "probe/sampling.hpp"

#include <gtest/gtest.h>

#include <set>

namespace reckon {
namespace {

/// Two packages of two nodes with one core each. This machine's processors stand for them in turn,
/// and its memory for all nodes' (there are no numbers of nodes to bind it to).
Topology four_nodes() {
  const std::vector<int> cpus = allowed_cpus();
  Topology t;
  test::add(t, "m0", ObjectKind::machine, "");
  for (std::size_t n = 0; n < 4; ++n) {
    const std::string package = "m0/package" + std::to_string(n / 2);
    if (n % 2 == 0) {
      test::add(t, package, ObjectKind::package, "m0");
    }
    const std::string node = "m0/numa" + std::to_string(n);
    const int cpu = cpus[n % cpus.size()];
    TopologyObject& numa = test::add(t, node, ObjectKind::numa_node, package);
    numa.bytes = std::uint64_t{1} << 33U;
    numa.cpus = {cpu};
    test::add(t, "m0/core" + std::to_string(n), ObjectKind::core, node).cpus = {cpu};
  }
  return t;
}

LinkFinding finding(LinkVerdict verdict, std::vector<double> together) {
  LinkFinding f;
  f.link = {"m0/package0", "m0/package1"};
  f.pairs = {{"m0/numa0", "m0/numa2"}, {"m0/numa1", "m0/numa3"}};
  f.verdict = verdict;
  f.together = std::move(together);
  f.alone = 4e9;
  return f;
}

Cell filled(const LinkFinding& finding) {
  Cell cell = empty_cell({.key = {.test = k_link_bandwidth}});
  fill_link_cell(cell, finding);
  return cell;
}

TEST(LinkCell, HasTheCapacityOfALinkThatLimitsAndSaysWhatElseIsTheCase) {
  const Cell limits = filled(finding(LinkVerdict::limits, {2e9, 2.1e9, 1.9e9}));
  EXPECT_EQ(limits.status, CellStatus::ok);
  EXPECT_DOUBLE_EQ(limits.p50, 2e9);
  EXPECT_EQ(limits.reason, "2 pairs at once 2.00 GB/s, alone 4.00 GB/s");
  const Cell carries = filled(finding(LinkVerdict::carries, {3.9e9, 4e9, 4.1e9}));
  EXPECT_EQ(carries.status, CellStatus::noisy);
  EXPECT_NE(carries.reason.find("may carry more"), std::string::npos);
  const Cell unclear = filled(finding(LinkVerdict::unclear, {2e9}));
  EXPECT_EQ(unclear.status, CellStatus::skipped);
  EXPECT_TRUE(unclear.samples.empty());
  EXPECT_EQ(filled(finding(LinkVerdict::limits, {0, 0})).status, CellStatus::failed);
}

TEST(NumaLinks, CopiesOverEveryLinkThatSeveralNodesShare) {
  const RunClock clock;
  const Topology topology = four_nodes();
  Workbench bench(topology, "m0", clock, 5, {});
  bench.limit_memory(32U << 20U);
  const Campaign campaign = numa_links_campaign(bench, topology, Seconds(10));
  const std::vector<CellPlan> plans = campaign.plans;
  // Between the packages at least, each way, for four pairs of nodes pass there.
  std::set<std::pair<std::string, std::string>> links;
  for (const CellPlan& plan : plans) {
    EXPECT_NE(topology.find(plan.key.from), nullptr) << plan.key.from;
    EXPECT_NE(topology.find(plan.key.to), nullptr) << plan.key.to;
    links.emplace(plan.key.from, plan.key.to);
  }
  EXPECT_TRUE(links.contains({"m0/package0", "m0/package1"}));
  EXPECT_TRUE(links.contains({"m0/package1", "m0/package0"}));
  campaign.begin();
  for (const CellPlan& plan : plans) {
    const Cell cell = test::measured(plan, Seconds(0));
    EXPECT_TRUE(cell.has_value() || cell.status == CellStatus::skipped) << cell.reason;
    EXPECT_FALSE(cell.reason.empty());
  }
}

TEST(NumaLinks, OneNodeOrTwoShareNothing) {
  const RunClock clock;
  Topology topology = four_nodes();
  std::erase_if(topology.objects, [](const TopologyObject& o) {
    return o.id.ends_with('2') || o.id.ends_with('3') || o.id == "m0/package1";
  });
  Workbench bench(topology, "m0", clock, 5, {});
  EXPECT_TRUE(numa_links_campaign(bench, topology, Seconds(1)).plans.empty());
}

} // namespace
} // namespace reckon
