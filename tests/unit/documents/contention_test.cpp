// SPDX-License-Identifier: Apache-2.0
#include "documents/contention.hpp"

#include <gtest/gtest.h>

namespace reckon {
namespace {

Cell cell(const CellKey& key, double from, double step, int samples = 10) {
  Cell c;
  c.key = key;
  c.unit = "seconds";
  for (int i = 0; i < samples; ++i) {
    c.samples.push_back(from + step * i);
  }
  summarize_cell(c);
  return c;
}

CellKey communication(const std::string& operation, std::uint64_t bytes) {
  CellKey k;
  k.test = k_contention_communication;
  k.from = k.to = "m0/numa0";
  k.bytes = bytes;
  k.threads = 1;
  k.direction = "one_way";
  k.state = "cold";
  k.operation = operation;
  return k;
}

CellKey computation(std::uint64_t bytes) {
  CellKey k = communication("gemm_256", bytes);
  k.test = k_contention_compute;
  return k;
}

TEST(Contention, TheTwinOfACommunicationComputesNothing) {
  EXPECT_EQ(alone(communication("gemm_256", 8)), communication("", 8));
  EXPECT_EQ(alone(communication("", 8)), std::nullopt);
}

TEST(Contention, TheTwinOfAComputationMovesNothing) {
  CellKey twin;
  twin.test = k_contention_compute;
  twin.from = "m0/numa0";
  twin.threads = 1;
  twin.operation = "gemm_256";
  EXPECT_EQ(alone(computation(8)), twin);
  EXPECT_EQ(alone(twin), std::nullopt);
  CellKey other = computation(8);
  other.test = "numa_to_numa_copy_cpu";
  EXPECT_EQ(alone(other), std::nullopt);
  EXPECT_FALSE(is_contention(other));
}

TEST(Contention, FactorsAreOfMediansAndSayWhetherTheSamplesShowThem) {
  Profile p;
  // Medians 1.045 and 1.545: every sample of the second is above all of the first. A twin that is
  // as spread as itself, 1.005 higher in all, tells nothing.
  p.cells = {cell(communication("", 8), 1, 0.01),
             cell(communication("gemm_256", 8), 1.5, 0.01),
             cell(communication("embedding_1000", 8), 1.0005, 0.01),
             cell(communication("gemm_256", 16), 1, 0.01), // its twin is not there
             cell(communication("", 32), 1, 0.01, 2),
             cell(communication("gemm_256", 32), 3, 0.01, 2)};
  const std::vector<Contention> found = contention_of(p, k_contention_communication);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].together, &p.cells[1]);
  EXPECT_EQ(found[0].alone, &p.cells[0]);
  EXPECT_DOUBLE_EQ(found[0].factor, 1.545 / 1.045);
  EXPECT_EQ(found[0].shown, true);
  EXPECT_EQ(found[1].together, &p.cells[2]);
  EXPECT_EQ(found[1].shown, false);
  EXPECT_DOUBLE_EQ(found[2].factor, 3.005 / 1.005);
  EXPECT_EQ(found[2].shown, std::nullopt); // 2 + 2 samples can show nothing
  EXPECT_TRUE(contention_of(p, k_contention_compute).empty());
}

TEST(Contention, WhatHasNoValueHasNoFactor) {
  Profile p;
  p.cells = {cell(communication("", 8), 1, 0.01), cell(communication("gemm_256", 8), 2, 0.01)};
  for (const std::size_t broken : {0U, 1U}) {
    Profile q = p;
    q.cells[broken].status = CellStatus::failed;
    EXPECT_TRUE(contention_of(q, k_contention_communication).empty());
  }
}

} // namespace
} // namespace reckon
