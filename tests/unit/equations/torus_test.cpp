// SPDX-License-Identifier: Apache-2.0
#include "equations/torus.hpp"

#include "support/random_cases.hpp"
#include "support/refusals.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace reckon {
namespace {

/// Table V of ACE: 2 links of 200 GB/s in a package, 2 of 25 GB/s in each other dimension.
Torus table_v(std::uint64_t local, std::uint64_t vertical, std::uint64_t horizontal) {
  return {{local, vertical, horizontal}, {400e9, 50e9, 50e9}};
}

/// One node of a ring, step by step as in ACE figure 8.b, one message for each node.
struct PlayedRing {
  double read = 0, last_sum = 0, written = 0, sent = 0;
};
PlayedRing play_ring_all_reduce(std::uint64_t nodes) {
  PlayedRing played;
  for (std::uint64_t step = 1; step < nodes; ++step) { // reduce-scatter
    played.read += step == 1 ? 1 : 2;                  // as it is; else what came and what is here
    played.sent += 1;
    played.written += 1; // what comes
  }
  played.last_sum += 2;
  played.written += 1;
  for (std::uint64_t step = 1; step < nodes; ++step) { // all-gather
    played.read += 1;
    played.sent += 1;
    played.written += 1;
  }
  return played;
}

TEST(RingMemory, IsThatOfThePlayedSteps) {
  for (std::uint64_t n = 2; n <= 64; ++n) {
    const double bytes = static_cast<double>(n); // messages of one byte
    MemoryTraffic traffic = reduce_scatter_traffic(n, bytes);
    traffic += all_gather_traffic(n, bytes);
    const PlayedRing played = play_ring_all_reduce(n);
    EXPECT_DOUBLE_EQ(traffic.read_bytes, played.read) << n;
    EXPECT_DOUBLE_EQ(traffic.last_sum_bytes, played.last_sum) << n;
    EXPECT_DOUBLE_EQ(traffic.written_bytes, played.written) << n;
    EXPECT_DOUBLE_EQ(2 * ring_sent_bytes(n, bytes), played.sent) << n;
  }
}

// (3n - 4) / (2n - 2) without the last sums, (3n - 2) / (2n - 2) with them; both go to 1.5.
TEST(RingMemory, ReadsForEachByteSentOfShortRings) {
  const auto reads = [](std::uint64_t n, bool last) {
    MemoryTraffic traffic = reduce_scatter_traffic(n, 1);
    traffic += all_gather_traffic(n, 1);
    return (traffic.read_bytes + (last ? traffic.last_sum_bytes : 0)) / (2 * ring_sent_bytes(n, 1));
  };
  EXPECT_DOUBLE_EQ(reads(2, false), 1.0);
  EXPECT_DOUBLE_EQ(reads(3, false), 1.25);
  EXPECT_DOUBLE_EQ(reads(4, false), 4.0 / 3);
  EXPECT_NEAR(reads(8, false), 1.42857, 1e-5);
  EXPECT_DOUBLE_EQ(reads(2, true), 2.0);
  EXPECT_DOUBLE_EQ(reads(4, true), 5.0 / 3);
  EXPECT_NEAR(reads(1'000'000, false), k_reads_per_byte_sent, 1e-6);
  EXPECT_NEAR(reads(1'000'000, true), k_reads_per_byte_sent, 1e-6);
}

TEST(TorusAllReduce, OfAcesMachine) {
  const Torus torus = table_v(4, 4, 4);
  const TorusTraffic traffic = torus_all_reduce(torus);
  ASSERT_EQ(traffic.phases.size(), 4U);
  EXPECT_DOUBLE_EQ(traffic.phases[0].sent_bytes, 0.75); // ACE VI-A: 3/4, 3/8, 3/8, 3/4
  EXPECT_DOUBLE_EQ(traffic.phases[1].sent_bytes, 0.375);
  EXPECT_DOUBLE_EQ(traffic.phases[2].sent_bytes, 0.375);
  EXPECT_DOUBLE_EQ(traffic.phases[3].sent_bytes, 0.75);
  EXPECT_DOUBLE_EQ(traffic.sent_bytes, 2.25);
  // Local 5/4 + 3/4, and twice (2 * 4 - 3 + 3) / 4 of a quarter: 3 read for 2.25 sent.
  EXPECT_DOUBLE_EQ(traffic.memory.read_bytes, 3.0);
  const TorusLimit limit = torus_limit(torus, traffic);
  EXPECT_DOUBLE_EQ(limit.bytes_per_s, 300e9); // the ideal of ACE's figure 5
  EXPECT_EQ(limit.busiest, TorusDimension::vertical);
  EXPECT_NEAR(limit.bytes_per_s / traffic.sent_bytes, 133.33e9, 0.01e9);
}

// Hand-derived in the paper's terms: R = 2 (L-1)/L + 2/L ((V-1)/V + (H-1)/H).
TEST(TorusAllReduce, OfOtherShapes) {
  const auto ideal = [](const Torus& torus) {
    return torus_limit(torus, torus_all_reduce(torus)).bytes_per_s;
  };
  EXPECT_DOUBLE_EQ(ideal(table_v(4, 2, 2)), 400e9);
  EXPECT_DOUBLE_EQ(ideal(table_v(4, 4, 1)), 250e9);
  EXPECT_NEAR(ideal(table_v(2, 4, 4)), 166.667e9, 0.001e9);
  EXPECT_DOUBLE_EQ(torus_all_reduce(table_v(4, 8, 4)).sent_bytes, 2.3125);
  EXPECT_DOUBLE_EQ(torus_all_reduce(table_v(4, 4, 8)).sent_bytes, 2.3125);
  EXPECT_DOUBLE_EQ(torus_all_reduce(table_v(8, 4, 4)).sent_bytes, 2.125);
  EXPECT_DOUBLE_EQ(torus_all_reduce(table_v(2, 8, 8)).sent_bytes, 2.75);
  // One dimension: a ring.
  EXPECT_DOUBLE_EQ(torus_all_reduce(table_v(1, 8, 1)).sent_bytes, 2 * 7.0 / 8);
  EXPECT_EQ(torus_all_reduce(table_v(1, 8, 1)).phases.size(), 1U);
  // Both local phases take the same links: 2 * 3/4 over 400 GB/s is all there is.
  const Torus slow_local{{4, 2, 1}, {10e9, 50e9, 50e9}};
  EXPECT_DOUBLE_EQ(ideal(slow_local), 1.75 / 1.5 * 10e9);
}

/// Bytes a node sends in each dimension, by walking the way from node 0 to every other.
TEST(TorusAllToAll, IsWhatEveryPacketTakesRoundTheRings) {
  test::for_cases(20261122, 200, [](test::Random& random) {
    const Torus torus = table_v(1 + random() % 6, 1 + random() % 6, 1 + random() % 6);
    std::array<double, k_torus_dimensions> walked{};
    for (std::uint64_t to = 0; to < torus.size(); ++to) {
      std::uint64_t rest = to;
      for (std::size_t d = 0; d < k_torus_dimensions; ++d) {
        const std::uint64_t n = torus.nodes[d], far = rest % n;
        rest /= n;
        walked[d] +=
            static_cast<double>(std::min(far, n - far)) / static_cast<double>(torus.size());
      }
    }
    const TorusTraffic traffic = torus_all_to_all(torus);
    for (std::size_t d = 0; d < k_torus_dimensions; ++d) {
      EXPECT_NEAR(traffic.dimension_bytes[d], walked[d], 1e-12);
    }
    EXPECT_NEAR(traffic.sent_bytes, walked[0] + walked[1] + walked[2], 1e-12);
    EXPECT_DOUBLE_EQ(traffic.memory.read_bytes, traffic.sent_bytes);
  });
}

TEST(BusiestDimensions, AreAllThatTakeAsLong) {
  using enum TorusDimension;
  // 0.75 N twice over 400 GB/s is less than 0.375 N over 50 GB/s, vertical and horizontal.
  Torus torus = table_v(4, 4, 4);
  EXPECT_EQ(busiest_dimensions(torus, torus_all_reduce(torus)),
            (std::vector{vertical, horizontal}));
  torus.bytes_per_s[2] = 51e9;
  EXPECT_EQ(busiest_dimensions(torus, torus_all_reduce(torus)), std::vector{vertical});
}

TEST(MemoryRates, OfAcesMachine) {
  // 300 GB/s of 2.25 N sent: an engine loads N, the endpoint 3 N, with the last sums 3.75 N.
  const TorusMemoryRates rates = memory_rates(torus_all_reduce(table_v(4, 4, 4)), 300e9);
  EXPECT_DOUBLE_EQ(rates.offload, 300e9 / 2.25);
  EXPECT_DOUBLE_EQ(rates.read, 400e9);
  EXPECT_DOUBLE_EQ(rates.read_with_last_sums, 500e9);
  // What arrives, 2.25 N, and a sum of N/4, of N/16 and of N/16, which are kept.
  EXPECT_DOUBLE_EQ(rates.written, 300e9 * (2.25 + 0.375) / 2.25);
}

TEST(Movers, AreWholeOnes) {
  constexpr double k_each = 1245e6 * 64; // ACE III: 64 bytes a cycle
  EXPECT_EQ(movers_needed(450e9, k_each), 6U);
  EXPECT_EQ(movers_needed(128e9, k_each), 2U);
  EXPECT_EQ(movers_needed(3 * k_each, k_each), 3U);
  EXPECT_EQ(movers_needed(0, k_each), 0U);
}

TEST(Messages, AreAMultipleOfTheRing) {
  EXPECT_EQ(messages_of_chunk(65536, 8192, 4), 8U); // ACE IV-C's example, with Table V's 8 KB
  EXPECT_EQ(messages_of_chunk(65536, 4096, 4), 16U);
  EXPECT_EQ(messages_of_chunk(65536, 8192, 3), 9U);
  EXPECT_EQ(messages_of_chunk(1, 8192, 5), 5U);
}

TEST(Sram, FollowsBandwidthAndChunk) {
  const Torus torus = table_v(4, 4, 4);
  const TorusTraffic traffic = torus_all_reduce(torus);
  // 400 x 1, 50 x 1/4, 50 x 1/4, 400 x 1/4 and the last one again: 400 + 25 + 200 = 625 parts.
  const std::vector<double> parts = sram_partitions(625, torus, traffic.phases);
  ASSERT_EQ(parts.size(), 5U);
  EXPECT_DOUBLE_EQ(parts[0], 400);
  EXPECT_DOUBLE_EQ(parts[1], 12.5);
  EXPECT_DOUBLE_EQ(parts[2], 12.5);
  EXPECT_DOUBLE_EQ(parts[3], 100);
  EXPECT_DOUBLE_EQ(parts[4], 100);
}

TEST(TorusInput, IsChecked) {
  Torus torus = table_v(4, 4, 4);
  torus.bytes_per_s[1] = 0;
  EXPECT_ERROR(torus_all_reduce(torus));
  torus.nodes[1] = 1; // then nothing is asked of it
  EXPECT_NO_THROW(static_cast<void>(torus_all_reduce(torus)));
  torus.nodes[0] = 0;
  EXPECT_ERROR(torus_all_reduce(torus));
  const Torus alone = table_v(1, 1, 1);
  EXPECT_ERROR(torus_limit(alone, torus_all_reduce(alone)));
  EXPECT_ERROR(movers_needed(1, 0));
  EXPECT_ERROR(messages_of_chunk(1, 1, 0));
}

} // namespace
} // namespace reckon
