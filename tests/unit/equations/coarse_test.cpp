// SPDX-License-Identifier: Apache-2.0
#include "equations/coarse.hpp"

#include "support/refusals.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace reckon {
namespace {

constexpr double k_inf = std::numeric_limits<double>::infinity();
/// A few operations' rounding.
constexpr double k_rounding = 1e-12;

/// latency + bytes / rate at each size.
Curve line(double latency_s, double bytes_per_s, const std::vector<double>& sizes) {
  std::vector<CurvePoint> curve;
  for (const double bytes : sizes) {
    curve.push_back({bytes, latency_s + bytes / bytes_per_s});
  }
  return Curve(std::move(curve));
}

// ---------------------------------------------------------------- proxies

TEST(ChooseProxies, TakesTheLeastLatencyAndTheGreatestBandwidth) {
  const std::vector<double> sizes{1e3, 1e6};
  const std::vector<Curve> proxies{line(3e-6, 5e9, sizes), line(1e-6, 2e9, sizes),
                                   line(4e-6, 9e9, sizes)};
  EXPECT_EQ(choose_proxies(proxies, 0), (ProxyChoice{.latency = 1, .bandwidth = 2}));
}

TEST(ChooseProxies, KeepsTheFirstWhereOthersAreAsGood) {
  // COARSE's T4 machine: 1 % apart is no difference, and the local proxy, first in order, has all.
  const std::vector<double> sizes{1e3, 1e6};
  const std::vector<Curve> proxies{line(1e-6, 5e9, sizes), line(0.995e-6, 5.05e9, sizes)};
  EXPECT_EQ(choose_proxies(proxies, 0.02), (ProxyChoice{.latency = 0, .bandwidth = 0}));
  EXPECT_EQ(choose_proxies(proxies, 0), (ProxyChoice{.latency = 1, .bandwidth = 1}));
}

TEST(ChooseProxies, ComparesAtSizesThatAllWereTestedAt) {
  // The second was never tested below 1 MB. At 1 MB it takes 3 s, the first 2 s; at 4 MB 6 s and 7
  // s.
  const std::vector<Curve> proxies{Curve({{1, 1.0}, {1e6, 2.0}, {4e6, 7.0}}),
                                   Curve({{1e6, 3.0}, {4e6, 6.0}, {8e6, 60.0}})};
  EXPECT_EQ(choose_proxies(proxies, 0), (ProxyChoice{.latency = 0, .bandwidth = 1}));
}

// ---------------------------------------------------------------- routing

TEST(Routing, HasTheCrossingAsThreshold) {
  // COARSE's V100: 1 us + s / 9 GB/s = 5 us + s / 16 GB/s at s = 4 us / (1/9 - 1/16) ns = 4000 *
  // 144/7.
  const std::vector<double> sizes{0, 16384, 1048576};
  const Routing routing = solve_routing(line(1e-6, 9e9, sizes), line(5e-6, 16e9, sizes));
  ASSERT_TRUE(routing.threshold_bytes.has_value());
  EXPECT_NEAR(*routing.threshold_bytes, 4000.0 * 144 / 7, 1e-6);
  ASSERT_EQ(routing.crossings_bytes.size(), 1U);
  EXPECT_EQ(routing.crossings_bytes[0], *routing.threshold_bytes);
  EXPECT_FALSE(routing.several);
  EXPECT_FALSE(routing.reversed);
  ASSERT_EQ(routing.intervals.size(), 2U);
  EXPECT_EQ(routing.intervals[0], (RoutingInterval{0, *routing.threshold_bytes, false}));
  EXPECT_EQ(routing.intervals[1], (RoutingInterval{*routing.threshold_bytes, k_inf, true}));
  EXPECT_NEAR(routing.threshold_s, routing.best_s, k_rounding);
}

TEST(Routing, BetweenSamplesIsThatOfTheLinesThere) {
  // A: 1 s at 0, 5 s at 4. B: 3 s at 0, 3 s at 1, 3 s at 4. 1 + s = 3 at s = 2, no sample of
  // either.
  const Routing routing = solve_routing(Curve({{0, 1}, {4, 5}}), Curve({{0, 3}, {1, 3}, {4, 3}}));
  EXPECT_EQ(routing.crossings_bytes, std::vector<double>{2});
}

TEST(Routing, WithoutACrossingHasNoThreshold) {
  const Curve fast({{1, 1}, {10, 2}});
  const Curve slow({{1, 2}, {10, 4}});
  const Routing first = solve_routing(fast, slow);
  EXPECT_FALSE(first.threshold_bytes.has_value());
  EXPECT_TRUE(first.crossings_bytes.empty());
  EXPECT_EQ(first.intervals, (std::vector<RoutingInterval>{{0, k_inf, false}}));
  const Routing second = solve_routing(slow, fast);
  EXPECT_EQ(second.threshold_bytes, 0);
  EXPECT_TRUE(second.crossings_bytes.empty());
  EXPECT_EQ(second.intervals, (std::vector<RoutingInterval>{{0, k_inf, true}}));
  // The same proxy twice, and the same line by other samples, where rounding must make no crossing.
  EXPECT_FALSE(solve_routing(fast, fast).threshold_bytes.has_value());
  const Routing same =
      solve_routing(line(1e-7, 3e9, {7, 1e6}), line(1e-7, 3e9, {7, 13, 1711, 65537, 1e6}));
  EXPECT_FALSE(same.threshold_bytes.has_value());
  EXPECT_TRUE(same.crossings_bytes.empty());
}

TEST(Routing, FindsTheCrossingBehindTheLastSample) {
  // 1 + s/10 = 3 + s/20 at s = 40; tested up to 20.
  const Routing routing = solve_routing(line(1, 10, {0, 10, 20}), line(3, 20, {0, 10, 20}));
  ASSERT_TRUE(routing.threshold_bytes.has_value());
  EXPECT_NEAR(*routing.threshold_bytes, 40, 1e-9);
}

TEST(Routing, GivesEquallyFastSizesToTheLatencyProxy) {
  // Equal from 2 to 3; LatProxy faster below, BwProxy above: the threshold is the end of the range.
  const Curve a({{1, 1}, {2, 2}, {3, 3}, {4, 6}});
  const Curve b({{1, 1.5}, {2, 2}, {3, 3}, {4, 4}});
  EXPECT_EQ(solve_routing(a, b).threshold_bytes, 3);
  // The other way round LatProxy takes over at its beginning.
  const Routing reversed = solve_routing(b, a);
  EXPECT_EQ(reversed.crossings_bytes, std::vector<double>{2});
  // Touching is no crossing.
  const Curve above({{1, 2}, {2, 2}, {3, 4}});
  EXPECT_TRUE(solve_routing(Curve({{1, 1}, {2, 2}, {3, 3}}), above).crossings_bytes.empty());
  // Nowhere slower is faster everywhere.
  EXPECT_EQ(solve_routing(Curve({{1, 1}, {2, 3}}), Curve({{1, 1}, {2, 2}})).threshold_bytes, 0);
}

TEST(Routing, WithSeveralCrossingsHasTheLeastTotalTime) {
  // B - A: +1 at 1, -1 at 3, +1 at 5, -1 at 7: crossings at 2, 4 and 6.
  const Curve a({{1, 1}, {3, 3}, {5, 3}, {7, 5}});
  const Curve b({{1, 2}, {3, 2}, {5, 4}, {7, 4}});
  const Routing tested = solve_routing(a, b);
  EXPECT_EQ(tested.crossings_bytes, (std::vector<double>{2, 4, 6}));
  EXPECT_TRUE(tested.several);
  // Over the four sizes: 2 has 1 + 2 + 4 + 4 = 11, 6 has 1 + 3 + 3 + 4 = 11: the smaller; best 10.
  EXPECT_EQ(tested.threshold_bytes, 2);
  EXPECT_EQ(tested.threshold_s, 11);
  EXPECT_EQ(tested.best_s, 10);
  EXPECT_EQ(tested.latency_s, 1 + 3 + 3 + 5);
  EXPECT_EQ(tested.bandwidth_s, 2 + 2 + 4 + 4);
  // Two tensors of 5 bytes make 6 the best: 1 + 3 + 6 + 4 = 14 against 1 + 2 + 8 + 4 = 15.
  const std::vector<SizeCount> fives{{1, 1}, {3, 1}, {5, 2}, {7, 1}};
  EXPECT_EQ(solve_routing(a, b, fives).threshold_bytes, 6);
  // Only 3 and 7: everything to BwProxy is as good as 2, and 2 says more.
  const std::vector<SizeCount> others{{3, 1}, {7, 1}};
  EXPECT_EQ(solve_routing(a, b, others).threshold_bytes, 2);
  EXPECT_EQ(solve_routing(a, b, others).threshold_s, 6);
}

TEST(Routing, OfExchangedCurvesIsFlagged) {
  // A is faster above 2 only: sending all to it costs 3 + 3 + 4 s, all to B 1 + 3 + 7, more.
  const Curve a({{1, 3}, {2, 3}, {3, 4}});
  const Curve b({{1, 1}, {2, 3}, {3, 7}});
  const Routing routing = solve_routing(a, b);
  EXPECT_EQ(routing.crossings_bytes, std::vector<double>{2});
  EXPECT_TRUE(routing.reversed);
  EXPECT_FALSE(routing.several);
  EXPECT_FALSE(routing.threshold_bytes.has_value());
  // With mostly small tensors, all to B.
  const std::vector<SizeCount> small{{1, 5}, {3, 1}};
  EXPECT_EQ(solve_routing(a, b, small).threshold_bytes, 0);
}

// ---------------------------------------------------------------- partition

TEST(Partition, IsTheSmallestSizeWithinTheTolerance) {
  // 1, 1.5, 1.97, 2 and 1.9 bytes a second.
  const Curve curve({{10, 10}, {30, 20}, {197, 100}, {400, 200}, {1900, 1000}});
  EXPECT_EQ(partition_bytes(curve, 0), 400);
  EXPECT_EQ(partition_bytes(curve, 0.02), 197);
  EXPECT_EQ(partition_bytes(curve), 197);
  EXPECT_EQ(partition_bytes(curve, 0.25), 30);
  EXPECT_EQ(partition_bytes(curve, 0.5), 10);
  EXPECT_EQ(partition_bytes(Curve({{0, 1}, {8, 2}}), 0.9), 8); // 0 bytes have no bandwidth
  EXPECT_REFUSED(usage, "above 0", partition_bytes(Curve(std::vector<CurvePoint>{{0, 1}}), 0));
  EXPECT_ERROR(partition_bytes(curve, 1));
  EXPECT_ERROR(partition_bytes(curve, -0.1));
}

TEST(Partition, CutsEqualShardsOfAtLeastTheSize) {
  using Shards = std::vector<std::uint64_t>;
  // 2.5 S' is two of 1.25 S', not S', S' and S'/2 (section IV-B).
  EXPECT_EQ(shards_of(40, 16), (Shards{20, 20}));
  EXPECT_EQ(shards_of(9437184, 2097152), (Shards{2359296, 2359296, 2359296, 2359296}));
  EXPECT_EQ(shards_of(15, 16), (Shards{15}));
  EXPECT_EQ(shards_of(16, 16), (Shards{16}));
  // 13 elements in three shards: 5, 4 and 4.
  EXPECT_EQ(shards_of(52, 16), (Shards{20, 16, 16}));
  // S' of 10 bytes is three elements: 20 bytes are one shard of five, for two would have one below.
  EXPECT_EQ(shards_of(20, 10), (Shards{20}));
  // 22 bytes are no whole elements: cut between bytes.
  EXPECT_EQ(shards_of(22, 11), (Shards{11, 11}));
  EXPECT_EQ(shards_of(12, 2, 2), (Shards{2, 2, 2, 2, 2, 2}));
  EXPECT_EQ(shards_of(0, 16), Shards{});
  EXPECT_EQ(shards_of(100, 0), Shards{100});
  EXPECT_ERROR(shards_of(1ULL << 53U, 4));
  EXPECT_ERROR(shards_of(8, 4, 0));
}

// ---------------------------------------------------------------- dual synchronization

/// p = 2, so that a ring moves each byte once (c = 1); 12 bytes; 1 B/s everywhere.
DualSync small_sync() {
  DualSync sync;
  sync.workers = 2;
  sync.devices = 2;
  sync.bytes = 12;
  sync.proxy_bytes_per_s = 1;
  sync.gpu_bytes_per_s = 1;
  sync.forward_s = 1;
  sync.backward_s = 4;
  return sync;
}

TEST(PaperDualSync, IsWhereBothRingsEndTogether) {
  // 4 + (12 - m) = m at m = 8; 1 + 8 s.
  const DualSplit split = solve_dual_sync(small_sync(), DualSyncModel::paper);
  EXPECT_EQ(split.proxy_bytes, 8);
  EXPECT_EQ(split.most_proxy_bytes, 8);
  EXPECT_EQ(split.worker_bytes, 4);
  EXPECT_EQ(split.time_s, 9);
  EXPECT_FALSE(split.clipped);
  // The closed form with other numbers: c = 2 * 7/8, m = (T + c n/B2) / (c (1/B1 + 1/B2)).
  DualSync sync = small_sync();
  sync.workers = 8;
  sync.bytes = 1e9;
  sync.proxy_bytes_per_s = 9e9;
  sync.gpu_bytes_per_s = 16e9;
  sync.backward_s = 0.03;
  const double c = 1.75;
  const double m = (0.03 + c * 1e9 / 16e9) / (c * (1 / 9e9 + 1 / 16e9));
  const DualSplit other = solve_dual_sync(sync, DualSyncModel::paper);
  EXPECT_NEAR(other.proxy_bytes, m, k_rounding * m);
  EXPECT_NEAR(other.time_s, 1 + c * m / 9e9, k_rounding);
  EXPECT_EQ(dual_sync_s(sync, DualSyncModel::paper, other.proxy_bytes), other.time_s);
}

TEST(PaperDualSync, IsClippedAtAllWhereTheBackwardPassHidesTheProxies) {
  DualSync sync = small_sync();
  sync.backward_s = 13; // the proxies need 12 s for all
  DualSplit split = solve_dual_sync(sync, DualSyncModel::paper);
  EXPECT_EQ(split.proxy_bytes, 12);
  EXPECT_EQ(split.worker_bytes, 0);
  EXPECT_EQ(split.time_s, 14);
  EXPECT_TRUE(split.clipped);
  sync.backward_s = 12; // exactly all: the formula's own m
  split = solve_dual_sync(sync, DualSyncModel::paper);
  EXPECT_EQ(split.proxy_bytes, 12);
  EXPECT_FALSE(split.clipped);
}

TEST(DualSync, OfOneWorkerSynchronizesNothing) {
  DualSync sync = small_sync();
  sync.workers = sync.devices = 1;
  for (const DualSyncModel model : {DualSyncModel::paper, DualSyncModel::corrected}) {
    const DualSplit split = solve_dual_sync(sync, model);
    EXPECT_EQ(split.proxy_bytes, 0);
    EXPECT_EQ(split.worker_bytes, 12);
    EXPECT_EQ(split.time_s, 5); // forward and backward
  }
  EXPECT_EQ(solve_dual_sync(sync, DualSyncModel::paper).most_proxy_bytes, 12); // all the same
}

TEST(DualSync, OfNothingTakesTheTwoPasses) {
  DualSync sync = small_sync();
  sync.bytes = 0;
  for (const DualSyncModel model : {DualSyncModel::paper, DualSyncModel::corrected}) {
    EXPECT_EQ(solve_dual_sync(sync, model).time_s, 5);
    EXPECT_EQ(solve_dual_sync(sync, model).proxy_bytes, 0);
  }
}

TEST(CorrectedDualSync, CountsPushAndPullAndReadiness) {
  // A device's port carries m of its client and m of the ring (c = 1): 2 m s, the client's link m
  // s. The ring's 12 - m bytes start at 4 m / 12: 2 m = m/3 + 12 - m at m = 4.5: 9 s. The paper's m
  // = 8 takes 16 s, not 8.
  const DualSync sync = small_sync();
  const DualSplit split = solve_dual_sync(sync, DualSyncModel::corrected);
  EXPECT_NEAR(split.proxy_bytes, 4.5, k_rounding);
  EXPECT_NEAR(split.time_s, 1 + 9, k_rounding);
  EXPECT_EQ(dual_sync_s(sync, DualSyncModel::corrected, 8), 1 + 16);
}

TEST(CorrectedDualSync, SplitsWhereBothEndTogether) {
  struct Case {
    const char* what;
    void (*change)(DualSync&);
    double proxy_bytes;
  };
  for (const Case& c : {
           // 4 workers on 2 devices: a port has 2 m of its clients and m of the ring of two;
           // workers'
           // ring 1.5 (12 - m) from m/3 on: 3 m = m/3 + 18 - 1.5 m at 18 / (25/6) = 4.32.
           Case{"devices are shared between clients", [](DualSync& s) { s.workers = 4; }, 4.32},
           // One device still has two clients. c = 4/3: 3 m = m/3 + 16 - 4/3 m at 4.
           {"one device of two has two clients", [](DualSync& s) { s.workers = 3; }, 4},
           // 4 m s against 2 m at the device's port. 4 m = m/3 + 12 - m at 12 / (14/3) = 18/7.
           {"a slow client link", [](DualSync& s) { s.client_bytes_per_s = 0.25; }, 18.0 / 7},
           // 4 + 12 - m = 2 m at 16/3.
           {"the ring waits for the backward pass",
            [](DualSync& s) { s.ring = WorkerRing::after_backward; }, 16.0 / 3},
           // One device for 8 workers at 1 B/s, a ring at 1000 B/s: any byte to the device takes 8
           // s. 8 m = 1.75 (12 - m) / 1000 at 0.021 / 8.00175: still not 0, for both work at once.
           {"proxies that are too slow",
            [](DualSync& s) {
              s.workers = 8;
              s.devices = 1;
              s.gpu_bytes_per_s = 1000;
              s.backward_s = 0;
            },
            0.021 / 8.00175},
       }) {
    SCOPED_TRACE(c.what);
    DualSync sync = small_sync();
    c.change(sync);
    const DualSplit split = solve_dual_sync(sync, DualSyncModel::corrected);
    EXPECT_NEAR(split.proxy_bytes, c.proxy_bytes, k_rounding);
    EXPECT_FALSE(split.clipped);
  }
  // One device of all is DENSE: no ring of devices, p m through one port.
  DualSync dense = small_sync();
  dense.workers = 4;
  dense.devices = 1;
  EXPECT_EQ(dual_sync_s(dense, DualSyncModel::corrected, 12), 1 + 48);
}

TEST(CorrectedDualSync, OnASharedLinkPutsTheProxiesPartFirst) {
  // 4 workers and 4 devices: a port has 2.5 m, the ring 1.5 (12 - m). At m/3 s the proxies have
  // taken m/7.5, so 13/15 m are left to push before the ring's: 2.5 m = m/3 + 13/15 m + 18 - 1.5 m
  // at 18 / 2.8 = 45/7.
  DualSync sync = small_sync();
  sync.workers = sync.devices = 4;
  sync.shared_link = true;
  EXPECT_NEAR(solve_dual_sync(sync, DualSyncModel::corrected).proxy_bytes, 45.0 / 7, k_rounding);
  // 2 workers: a byte takes 1 s of the link either way, and the proxies' are not even used while
  // the backward pass has not made them: all to the ring, and no better with less than nothing.
  sync.workers = sync.devices = 2;
  DualSplit split = solve_dual_sync(sync, DualSyncModel::corrected);
  EXPECT_EQ(split.proxy_bytes, 0);
  EXPECT_EQ(split.time_s, 1 + 12);
  EXPECT_TRUE(split.clipped);
  // From the end of the backward pass on: by 4 s the proxies have taken 2 bytes. Up to those each
  // saves the link 1 s, further ones none: 4 + (m - 2) + 12 - m = 14, until 2 m is more, at 7.
  sync.ring = WorkerRing::after_backward;
  split = solve_dual_sync(sync, DualSyncModel::corrected);
  EXPECT_NEAR(split.proxy_bytes, 2, k_rounding);
  EXPECT_NEAR(split.most_proxy_bytes, 7, k_rounding);
  EXPECT_NEAR(split.time_s, 1 + 14, k_rounding);
}

TEST(CorrectedDualSync, NamesAllSplitsThatAreAsGood) {
  // A backward pass of 40 s hides everything: 2 m <= 40 and 40/12 m + 12 - m <= 40 on all of [0,
  // 12].
  DualSync sync = small_sync();
  sync.backward_s = 40;
  const DualSplit split = solve_dual_sync(sync, DualSyncModel::corrected);
  EXPECT_EQ(split.time_s, 41);
  EXPECT_EQ(split.proxy_bytes, 0);
  EXPECT_EQ(split.most_proxy_bytes, 12);
  EXPECT_FALSE(split.clipped);
}

TEST(DualSyncRounding, TakesTheBestBoundary) {
  // The exact m is 8. Boundaries 0, 5, 9, 12: max(16 - m, m) is 11, 9, 12 for 5, 9, 12.
  const std::vector<std::uint64_t> tensors{5, 4, 3};
  const DualRounding rounding = round_dual_sync(small_sync(), DualSyncModel::paper, tensors);
  EXPECT_EQ(rounding.tensors, 2U);
  EXPECT_EQ(rounding.proxy_bytes, 9);
  EXPECT_EQ(rounding.time_s, 10);
  EXPECT_EQ(rounding.cost_s, 1);
  // Below the exact m: boundaries 7 and 10: 9 and 10.
  const std::vector<std::uint64_t> others{7, 3, 2};
  EXPECT_EQ(round_dual_sync(small_sync(), DualSyncModel::paper, others).tensors, 1U);
  const std::vector<std::uint64_t> short_list{7, 3};
  EXPECT_REFUSED(usage, "10 bytes",
                 round_dual_sync(small_sync(), DualSyncModel::paper, short_list));
}

TEST(DualSync, RefusesWhatCannotBe) {
  struct Case {
    const char* words;
    void (*damage)(DualSync&);
  };
  for (const Case& c : {Case{"0 workers", [](DualSync& s) { s.workers = 0; }},
                        {"0 devices", [](DualSync& s) { s.devices = 0; }},
                        {"3 devices", [](DualSync& s) { s.devices = 3; }},
                        {"a proxy's", [](DualSync& s) { s.proxy_bytes_per_s = 0; }},
                        {"ring's", [](DualSync& s) { s.gpu_bytes_per_s = -1; }},
                        {"a client's", [](DualSync& s) { s.client_bytes_per_s = NAN; }},
                        {"bytes", [](DualSync& s) { s.bytes = -1; }},
                        {"forward", [](DualSync& s) { s.forward_s = k_inf; }},
                        {"backward", [](DualSync& s) { s.backward_s = -1; }}}) {
    DualSync sync = small_sync();
    c.damage(sync);
    EXPECT_REFUSED(usage, c.words, solve_dual_sync(sync, DualSyncModel::corrected));
  }
  EXPECT_ERROR(dual_sync_s(small_sync(), DualSyncModel::paper, 13));
  EXPECT_ERROR(dual_sync_s(small_sync(), DualSyncModel::paper, -1));
}

} // namespace
} // namespace reckon
