// SPDX-License-Identifier: Apache-2.0
#include "fixtures.hpp"

#include "strategies/ring_order.hpp"
#include "support/random_cases.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>

namespace reckon {
namespace {

using testing::ElementsAre;

/// Ranks each behind a port, a station for each directed pair, and uplinks of racks of two.
StationNetwork network_of(std::size_t ranks, test::Random& random, bool racks) {
  StationNetwork n;
  n.paths.assign(ranks, std::vector<std::vector<std::uint32_t>>(ranks));
  const auto station = [&](double rate) {
    n.station_bytes_per_s.push_back(rate);
    return static_cast<std::uint32_t>(n.station_bytes_per_s.size() - 1);
  };
  std::vector<std::uint32_t> out, in, up, down;
  for (std::size_t r = 0; r < ranks; ++r) {
    out.push_back(station(1000));
    in.push_back(station(1000));
    up.push_back(station(random.uniform(50, 1000)));
    down.push_back(station(random.uniform(50, 1000)));
  }
  for (std::size_t a = 0; a < ranks; ++a) {
    for (std::size_t b = 0; b < ranks; ++b) {
      if (a != b) {
        n.paths[a][b] = {out[a], station(random.uniform(100, 1000)), in[b]};
        if (racks && a % 3 != b % 3) {
          n.paths[a][b].push_back(up[a % 3]);
          n.paths[a][b].push_back(down[b % 3]);
        }
      }
    }
  }
  return n;
}

TEST(RingOrders, BestIsWhatTryingAllGives) {
  test::for_cases(20261123, 300, [](test::Random& random) {
    const std::size_t ranks = random.whole(2, 7);
    const StationNetwork network = network_of(ranks + 2, random, random.coin());
    std::vector<std::size_t> workers(ranks); // not all ranks are
    std::iota(workers.begin(), workers.end(), std::size_t{random.whole(0, 2)});
    const RingOrder best = best_ring_order(network, workers);
    double least = std::numeric_limits<double>::infinity();
    std::vector<std::size_t> order = workers;
    do {
      least = std::min(least, ring_seconds_per_byte(network, order));
    } while (std::next_permutation(order.begin() + 1, order.end()));
    EXPECT_NEAR(best.seconds_per_byte / least, 1, 1e-9);
    EXPECT_NEAR(ring_seconds_per_byte(network, best.ranks) / least, 1, 1e-9);
    EXPECT_TRUE(best.exact);
    std::vector<std::size_t> sorted = best.ranks;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(sorted, workers);
  });
}

TEST(RingOrders, CountsEveryHopThatPassesAStation) {
  StationNetwork n;
  n.station_bytes_per_s = {100, 1000};
  n.paths = {{{}, {0, 1}, {1}}, {{1}, {}, {0}}, {{1}, {1}, {}}};
  // 0 -> 1 -> 2 -> 0 passes station 0 twice; 0 -> 2 -> 1 -> 0 never, and station 1 three times.
  EXPECT_DOUBLE_EQ(ring_seconds_per_byte(n, std::vector<std::size_t>{0, 1, 2}), 0.02);
  EXPECT_DOUBLE_EQ(ring_seconds_per_byte(n, std::vector<std::size_t>{0, 2, 1}), 0.003);
  EXPECT_THAT(best_ring_order(n, std::vector<std::size_t>{0, 1, 2}).ranks, ElementsAre(0, 2, 1));
}

TEST(RingOrders, KeepTheGivenOneWhereNoneIsBetter) {
  StationNetwork n;
  n.paths.assign(20, std::vector<std::vector<std::uint32_t>>(20));
  for (std::uint32_t r = 0; r < 20; ++r) {
    n.station_bytes_per_s.push_back(100);
    for (std::size_t b = 0; b < 20; ++b) {
      n.paths[r][b] = {r};
    }
  }
  std::vector<std::size_t> workers(20);
  std::iota(workers.begin(), workers.end(), std::size_t{0});
  EXPECT_EQ(best_ring_order(n, workers).ranks, workers);
  workers.resize(5);
  EXPECT_EQ(best_ring_order(n, workers).ranks, workers);
}

/// Machines that are fast one after another in a hidden order, and slow otherwise.
TEST(RingOrders, FindTheHiddenOneOfManyMachines) {
  test::for_cases(7, 10, [](test::Random& random) {
    const std::size_t ranks = 16;
    std::vector<std::size_t> hidden(ranks);
    std::iota(hidden.begin(), hidden.end(), std::size_t{0});
    std::shuffle(hidden.begin(), hidden.end(), random);
    // Racks of four: what stays inside is fast.
    StationNetwork n;
    n.station_bytes_per_s.assign(8, 100); // in and out of each rack
    n.paths.assign(ranks, std::vector<std::vector<std::uint32_t>>(ranks));
    for (std::uint32_t a = 0; a < ranks; ++a) {
      for (std::uint32_t b = 0; b < ranks; ++b) {
        if (a / 4 != b / 4) {
          n.paths[hidden[a]][hidden[b]] = {a / 4, 4 + b / 4};
        }
      }
    }
    std::vector<std::size_t> workers(ranks);
    std::iota(workers.begin(), workers.end(), std::size_t{0});
    EXPECT_DOUBLE_EQ(best_ring_order(n, workers).seconds_per_byte, 0.01);
  });
}

} // namespace
} // namespace reckon
