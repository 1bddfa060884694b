// SPDX-License-Identifier: Apache-2.0
#include "../strategies/fixtures.hpp"

#include "export/export.hpp"
#include "support/refusals.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace reckon::test {
namespace {

/// The rows as the example plugin reads them: comments and empty lines are none, fields are between
/// commas.
std::vector<std::vector<std::string>> rows(const std::string& csv) {
  std::vector<std::vector<std::string>> out;
  std::istringstream lines(csv);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LT(line.size(), 255U) << "the plugin reads lines of at most 255 characters";
    if (line.empty() || line.front() == '#') {
      continue;
    }
    std::istringstream fields(line);
    out.emplace_back();
    for (std::string field; std::getline(fields, field, ',');) {
      out.back().push_back(field);
    }
  }
  return out;
}

Plan ring() {
  PlanOptions options{.strategy = "ring", .part_bytes = 4096};
  return plan_for(cluster(1e9, 1e9), workload({{"a", 4096}}), 4, 0, options);
}

// The plugin passes on whatever stands there but -1, with which it leaves its own default of 1;
// NCCL takes 0 as no wish.
TEST(NcclTuner, ARingOfMachinesIsARowForThatManyNodesAndAnyNumberOfGpus) {
  EXPECT_EQ(rows(nccl_tuner_csv(ring())),
            (std::vector<std::vector<std::string>>{
                {"allreduce", "4096", "16384", "ring", "simple", "0", "4", "-1", "-1", "-1"}}));
}

TEST(NcclTuner, ARingOfGpusIsARowForTheirNodes) {
  Plan plan = ring();
  for (PlanRank& rank : plan.ranks) {
    rank.endpoint_kind = "gpu";
    rank.machine = "m0";
  }
  std::vector<std::string> row = rows(nccl_tuner_csv(plan)).at(0);
  EXPECT_EQ(row.at(6), "1");
  EXPECT_EQ(row.at(7), "4");
  EXPECT_THAT(nccl_tuner_csv(plan), testing::Not(testing::HasSubstr("one NIC")));
  // Of two machines: two nodes, and NCCL has more rings than the plan.
  for (std::size_t i = 0; i < plan.ranks.size(); ++i) {
    plan.ranks[i].machine_number = i / 2;
  }
  row = rows(nccl_tuner_csv(plan)).at(0);
  EXPECT_EQ(row.at(6), "2");
  EXPECT_EQ(row.at(7), "4");
  EXPECT_THAT(nccl_tuner_csv(plan), testing::HasSubstr("one NIC"));
}

// Devices that a profile calls machines, as those of COARSE: NCCL sees one node.
TEST(NcclTuner, ARingThroughOneMachinesMemoryIsARowForOneNode) {
  for (const char* transport : {"host", "shm"}) {
    Plan plan = ring();
    plan.transport = transport;
    const std::vector<std::string> row = rows(nccl_tuner_csv(plan)).at(0);
    EXPECT_EQ(row.at(6), "1") << transport;
    EXPECT_EQ(row.at(7), "-1") << transport;
  }
}

TEST(NcclTuner, WhatNcclDoesNotHaveIsRefusedWithTheRingsTime) {
  PlanOptions options{.strategy = "ps_colocated"};
  const Plan plan = plan_for(cluster(1e9, 1e9), workload({{"a", 1 << 20}}), 4, 0, options);
  EXPECT_REFUSED(input, "ps_colocated", nccl_tuner_csv(plan));
}

TEST(NcclTuner, ARingThatTakesAsLongIsNotSaidToTakeLessOrMore) {
  Plan plan = ring();
  plan.strategy = "ps_colocated";
  plan.prediction.mid_seconds = 4.1951e-3;
  plan.candidates = {{"ring", {}, {}}};
  plan.candidates.front().prediction.emplace().mid_seconds = 4.1953e-3;
  EXPECT_REFUSED(input, "4.195", nccl_tuner_csv(plan));
}

} // namespace
} // namespace reckon::test
