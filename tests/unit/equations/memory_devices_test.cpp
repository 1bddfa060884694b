// SPDX-License-Identifier: Apache-2.0
#include "equations/memory_devices.hpp"

#include "support/refusals.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace reckon {
namespace {

/// 16 units; 1.3 of parameters and gradients each, 2.6 of Adam's state, 2 fixed, 3 a sample.
TrainingMemory bert() {
  return {.gpu_bytes = 16,
          .parameters_bytes = 1.3,
          .gradients_bytes = 1.3,
          .optimizer_bytes = 2.6,
          .fixed_bytes = 2,
          .sample_bytes = 3};
}

TEST(Capacity, GrowsByWhatDevicesHold) {
  // 16 - 7.2 = 8.8: two samples; without the optimizer's state 11.4: three; without all three 14:
  // four.
  EXPECT_EQ(greatest_batch(bert()), 2U);
  EXPECT_DOUBLE_EQ(resident_bytes(bert()), 7.2);
  EXPECT_EQ(greatest_batch(bert(), {.optimizer = true}), 3U);
  EXPECT_DOUBLE_EQ(resident_bytes(bert(), {.optimizer = true}), 4.6);
  EXPECT_EQ(greatest_batch(bert(), {.parameters = true, .gradients = true, .optimizer = true}), 4U);
}

TEST(Capacity, IsExactAtTheEdge) {
  TrainingMemory memory = bert();
  memory = {.gpu_bytes = 10, .parameters_bytes = 4, .sample_bytes = 3};
  EXPECT_EQ(greatest_batch(memory), 2U); // 4 + 2 * 3 = 10 fits
  memory.gpu_bytes = 9;
  EXPECT_EQ(greatest_batch(memory), 1U);
  memory.gpu_bytes = 4;
  EXPECT_EQ(greatest_batch(memory), 0U);
  memory.gpu_bytes = 3;
  EXPECT_EQ(greatest_batch(memory), 0U);
  memory.sample_bytes = 0;
  EXPECT_ERROR(greatest_batch(memory));
  memory.parameters_bytes = -1;
  EXPECT_ERROR(resident_bytes(memory));
}

TEST(Dense, SendsAllThroughOnePort) {
  EXPECT_EQ(dense_s(8, 3e9, 12e9), 2);
  // Two tensors of 2 bytes and one of 4 at 1 s + bytes: 3 + 3 + 5 for each of 4 workers.
  const Curve curve({{0, 1}, {4, 5}});
  const std::vector<SizeCount> tensors{{2, 2}, {4, 1}};
  EXPECT_EQ(dense_s(4, curve, tensors), 44);
  EXPECT_ERROR(dense_s(8, 1, 0));
}

TEST(CciCurve, DividesTheBandwidthByTheSpeedup) {
  // The bus takes 1 s for 10 bytes and 3 s for 30; its lead over CCI is 9 at 10 and 17 at 20 and
  // above.
  const Curve cci = cci_curve(Curve({{10, 1}, {30, 3}}), Curve({{10, 9}, {20, 17}}));
  const std::vector<CurvePoint> expected{{10, 9}, {20, 34}, {30, 51}};
  EXPECT_TRUE(std::ranges::equal(cci.points(), expected));
}

TEST(Coherence, TakesItsShareForEachFurtherDevice) {
  EXPECT_EQ(coherence_left_bytes_per_s(10, 2, 1), 10);
  EXPECT_EQ(coherence_left_bytes_per_s(10, 2, 4), 4);
  EXPECT_EQ(coherence_left_bytes_per_s(10, 2, 7), 0);
  EXPECT_ERROR(coherence_left_bytes_per_s(10, 2, 0));
}

} // namespace
} // namespace reckon
