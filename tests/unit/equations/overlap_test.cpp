// SPDX-License-Identifier: Apache-2.0
#include "equations/overlap.hpp"

#include "support/refusals.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace reckon {
namespace {

TEST(Computation, TakesTheLongerOfArithmeticAndMemory) {
  const ComputeShare share{.flops_per_s = 100, .memory_bytes_per_s = 10};
  EXPECT_EQ(computation_seconds(400, 30, share), 4); // 400/100 against 30/10
  EXPECT_EQ(computation_seconds(400, 50, share), 5);
  EXPECT_EQ(computation_seconds(0, 0, share), 0);
  // What is not asked for takes no time, however little there is of it.
  EXPECT_EQ(computation_seconds(0, 50, {0, 10}), 5);
  EXPECT_ERROR(computation_seconds(-1, 0, share));
  EXPECT_ERROR(computation_seconds(std::numeric_limits<double>::infinity(), 0, share));
}

TEST(Computation, OfWhichOnlyTheTimeIsKnownStretchesBetweenTwoExtremes) {
  // ACE's communication-first baseline leaves 450 of 900 GB/s and 74 of 80 SMs, its compute-first
  // one 772 and 78.
  const ComputeShare all{80, 900}, comm_opt{74, 450}, comp_opt{78, 772};
  const auto ms = [&](ComputationBound bound, const ComputeShare& share) {
    return stretched_seconds(37, bound, all, share);
  };
  EXPECT_DOUBLE_EQ(ms(ComputationBound::memory, comm_opt), 74);
  EXPECT_DOUBLE_EQ(ms(ComputationBound::memory, comp_opt), 37 * 900 / 772.0);
  EXPECT_DOUBLE_EQ(ms(ComputationBound::arithmetic, comm_opt), 40);
  EXPECT_DOUBLE_EQ(ms(ComputationBound::arithmetic, comp_opt), 37 * 80 / 78.0);
  EXPECT_EQ(ms(ComputationBound::memory, all), 37);
  // Whatever it does in 1 s on all, it takes no less and no more: here 1 s of memory and half a
  // second of arithmetic.
  EXPECT_DOUBLE_EQ(computation_seconds(40, 900, all), 1);
  EXPECT_DOUBLE_EQ(computation_seconds(40, 900, comm_opt), 2);
  // What takes no time takes none with nothing, either.
  EXPECT_EQ(stretched_seconds(0, ComputationBound::memory, all, {0, 0}), 0);
  EXPECT_ERROR(stretched_seconds(-1, ComputationBound::memory, all, all));
}

TEST(CollectiveRates, AreThatOfTheNarrowestOfFour) {
  // ACE's communication-first baseline on 4x4x4: 450 GB/s of memory at 1.5 read for each byte sent
  // are 300, 6 SMs of 79.68 are 318.72; links at 94 % are 282.
  CommunicationShare share{.memory_bytes_per_s = 450,
                           .cores_bytes_per_s = 6 * 79.68,
                           .bus_bytes_per_s = 500,
                           .reads_per_byte_sent = 1.5};
  EXPECT_EQ(collective_rate(282, share).bytes_per_s, 282);
  EXPECT_EQ(collective_rate(282, share).limit, CollectiveLimit::network);
  EXPECT_EQ(collective_rate(310, share).bytes_per_s, 300);
  EXPECT_EQ(collective_rate(310, share).limit, CollectiveLimit::memory);
  share.memory_bytes_per_s = 900;
  EXPECT_DOUBLE_EQ(collective_rate(400, share).bytes_per_s, 318.72);
  EXPECT_EQ(collective_rate(400, share).limit, CollectiveLimit::cores);
  share.cores_bytes_per_s = 80 * 79.68;
  EXPECT_EQ(collective_rate(600, share).bytes_per_s, 500);
  EXPECT_EQ(collective_rate(600, share).limit, CollectiveLimit::bus);
  // Nothing of the endpoint: the ideal.
  EXPECT_EQ(collective_rate(600, {}).bytes_per_s, 600);
  // Its compute-first baseline: 128 / 1.5 of memory, before the 106 of 2 SMs.
  const CollectiveRate slow = collective_rate(282, {128, 2 * 79.68, 500, 1.5});
  EXPECT_DOUBLE_EQ(slow.bytes_per_s, 128 / 1.5);
  EXPECT_EQ(slow.limit, CollectiveLimit::memory);
}

TEST(FirstChunks, PassOneDimensionAfterAnother) {
  // ACE's 4x4x4: of a byte 1.5 are sent round the local rings and 0.375 round each of the others.
  // Alone 1.5/400 + 2 * 0.375/50, behind others 2.25/300.
  const Torus torus{{4, 4, 4}, {400, 50, 50}};
  const TorusTraffic traffic = torus_all_reduce(torus);
  EXPECT_DOUBLE_EQ(first_chunk_s(torus, traffic, {}), 0.01875 - 0.0075);
  // Of 85.33 that the compute-first baseline's memory lets through, all local links take no more.
  CommunicationShare share{.memory_bytes_per_s = 128, .reads_per_byte_sent = 1.5};
  EXPECT_NEAR(first_chunk_s(torus, traffic, share), 1.5 * 1.5 / 128 + 0.015 - 2.25 * 1.5 / 128,
              1e-15);
  // Where the endpoint is slower than all links it is always busy, and so is the only dimension.
  share.memory_bytes_per_s = 60;
  EXPECT_NEAR(first_chunk_s(torus, traffic, share), 0, 1e-15);
  const Torus ring{{4, 1, 1}, {400, 0, 0}};
  EXPECT_NEAR(first_chunk_s(ring, torus_all_reduce(ring), {}), 0, 1e-15);
  // All-to-all: 1 of a byte over each ring of 4, (4 * 4 / 4) / 4.
  EXPECT_NEAR(first_chunk_s(torus, torus_all_to_all(torus), {}), 1 / 400.0 + 1 / 50.0, 1e-15);
  // A memory that carries nothing carries nothing later, either.
  share.memory_bytes_per_s = 0;
  EXPECT_EQ(first_chunk_s(torus, traffic, share), 0);
}

TEST(Fills, CountTheStepsOfTheRings) {
  // 4x8x2, links of 1, 10 and 100 s. All-reduce: 2*3 + 2*7*10 + 2*100. All-to-all: the farthest is
  // 2, 4 and 1 links away.
  const Torus torus{{4, 8, 2}, {1, 1, 1}};
  EXPECT_EQ(all_reduce_fill_s(torus, {1, 10, 100}), 6 + 140 + 200);
  EXPECT_EQ(all_to_all_fill_s(torus, {1, 10, 100}), 2 + 40 + 100);
  EXPECT_EQ(all_reduce_fill_s(Torus{}, {1, 10, 100}), 0);
  EXPECT_ERROR(all_reduce_fill_s(torus, {1, -1, 1}));
}

} // namespace
} // namespace reckon
