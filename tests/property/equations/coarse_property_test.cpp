// SPDX-License-Identifier: Apache-2.0
#include "equations/coarse.hpp"
#include "support/random_cases.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace reckon {
namespace {

using test::Random;

constexpr std::uint64_t k_seed = 571;
constexpr int k_cases = 400;
constexpr double k_rounding = 1e-9;

template <class Check>
void for_cases(const Check& check) {
  test::for_cases(k_seed, k_cases, check);
}

/// Sizes are whole, so that a test can try all of them, and curves noisy, so that they cross often.
Curve random_curve(Random& random) {
  std::vector<CurvePoint> curve;
  double bytes = static_cast<double>(random.below(20));
  const std::uint64_t samples = 1 + random.below(8);
  for (std::uint64_t i = 0; i < samples; ++i) {
    curve.push_back({bytes, (10 + bytes / 10) * random.uniform(0.7, 1.4)});
    bytes += static_cast<double>(1 + random.below(60));
  }
  return Curve(std::move(curve));
}

TEST(RoutingProperty, SendsEachSizeToItsFasterProxy) {
  int several = 0;
  for_cases([&](Random& random) {
    const Curve a = random_curve(random);
    const Curve b = random_curve(random);
    const Routing routing = solve_routing(a, b);
    several += routing.several ? 1 : 0;
    ASSERT_TRUE(std::ranges::is_sorted(routing.crossings_bytes));
    ASSERT_EQ(routing.intervals.size(), routing.crossings_bytes.size() + 1);
    for (const double crossing : routing.crossings_bytes) {
      ASSERT_NEAR(a.seconds_at(crossing), b.seconds_at(crossing),
                  k_rounding * a.seconds_at(crossing));
    }
    for (const RoutingInterval& interval : routing.intervals) {
      for (double bytes = std::ceil(interval.from_bytes);
           bytes < std::min(interval.to_bytes, 5000.0); ++bytes) {
        const double lead = a.seconds_at(bytes) - b.seconds_at(bytes); // of BwProxy
        ASSERT_GE(interval.bandwidth_proxy ? lead : -lead, -k_rounding * a.seconds_at(bytes))
            << bytes << " bytes";
      }
    }
    // No crossing at all: 0 or none, and it is right everywhere.
    if (routing.crossings_bytes.empty()) {
      ASSERT_EQ(routing.threshold_bytes.has_value(), routing.intervals[0].bandwidth_proxy);
    }
  });
  EXPECT_GE(several, k_cases / 10); // else the cases say little
}

TEST(RoutingProperty, HasTheThresholdThatNoOtherBeats) {
  for_cases([](Random& random) {
    const Curve a = random_curve(random);
    const Curve b = random_curve(random);
    std::vector<SizeCount> sizes;
    for (std::uint64_t i = 0; i < 12; ++i) {
      sizes.push_back(
          {static_cast<double>(random.below(500)), static_cast<double>(1 + random.below(4))});
    }
    const auto total = [&](double threshold) {
      double sum = 0;
      for (const SizeCount& size : sizes) {
        sum += size.count * (size.bytes > threshold ? b : a).seconds_at(size.bytes);
      }
      return sum;
    };
    const Routing routing = solve_routing(a, b, sizes);
    double least = total(0);
    for (double threshold = 0; threshold <= 500; ++threshold) {
      least = std::min(least, total(threshold));
    }
    // A size of 0 is never above a threshold; all others are tried by every whole number.
    ASSERT_NEAR(routing.threshold_s, least, k_rounding * least);
    ASSERT_NEAR(total(routing.threshold_bytes.value_or(std::numeric_limits<double>::infinity())),
                least, k_rounding * least);
    ASSERT_LE(routing.best_s, routing.threshold_s * (1 + k_rounding));
    if (!routing.several && !routing.reversed) { // exact
      ASSERT_NEAR(routing.best_s, routing.threshold_s, k_rounding * routing.best_s);
    }
  });
}

TEST(PartitionProperty, ShardsAreEqualAndLargeEnough) {
  for_cases([](Random& random) {
    const std::uint64_t element = std::uint64_t{1} << random.below(4);
    const std::uint64_t tensor =
        (1 + random.below(5000)) * (random.below(8) == 0 ? 1 : element); // seldom ragged
    const std::uint64_t part = 1 + random.below(900);
    SCOPED_TRACE(testing::Message()
                 << tensor << " bytes in parts of " << part << ", elements of " << element);
    const std::vector<std::uint64_t> shards = shards_of(tensor, part, element);
    ASSERT_FALSE(shards.empty());
    std::uint64_t sum = 0;
    const std::uint64_t unit = tensor % element == 0 ? element : 1;
    for (const std::uint64_t shard : shards) {
      ASSERT_EQ(shard % unit, 0U);
      sum += shard;
    }
    ASSERT_EQ(sum, tensor);
    ASSERT_LE(shards.front() - shards.back(), unit);
    if (shards.size() > 1) {
      ASSERT_GE(shards.back(), part);
    }
    // One more could not all have `part` bytes in whole elements.
    const std::uint64_t smallest = tensor / unit / (shards.size() + 1) * unit;
    ASSERT_LT(smallest, part);
  });
}

DualSync random_sync(Random& random) {
  DualSync sync;
  sync.workers = 1 + random.below(16);
  sync.devices = 1 + random.below(sync.workers);
  sync.bytes = std::floor(std::exp2(random.uniform(10, 33)));
  sync.proxy_bytes_per_s = std::exp2(random.uniform(30, 36));
  sync.gpu_bytes_per_s = sync.proxy_bytes_per_s * std::exp2(random.uniform(-4, 4));
  if (random.coin()) {
    sync.client_bytes_per_s = sync.proxy_bytes_per_s * std::exp2(random.uniform(-4, 2));
  }
  sync.forward_s = random.uniform(0, 1);
  // From nothing to a few times what the exchange takes.
  sync.backward_s = random.below(8) == 0
                        ? 0
                        : sync.bytes / sync.proxy_bytes_per_s * std::exp2(random.uniform(-4, 4));
  sync.ring = random.coin() ? WorkerRing::when_ready : WorkerRing::after_backward;
  sync.shared_link = random.coin();
  return sync;
}

std::string text_of(const DualSync& s) {
  return testing::PrintToString(std::vector<double>{
      static_cast<double>(s.workers), static_cast<double>(s.devices), s.bytes, s.proxy_bytes_per_s,
      s.gpu_bytes_per_s, s.client_bytes_per_s.value_or(0), s.forward_s, s.backward_s,
      static_cast<double>(s.ring), s.shared_link ? 1.0 : 0.0});
}

TEST(DualSyncProperty, NoSplitBeatsTheSolution) {
  int inside = 0;
  for_cases([&](Random& random) {
    const DualSync sync = random_sync(random);
    SCOPED_TRACE(text_of(sync));
    for (const DualSyncModel model : {DualSyncModel::paper, DualSyncModel::corrected}) {
      const DualSplit split = solve_dual_sync(sync, model);
      ASSERT_GE(split.proxy_bytes, 0);
      ASSERT_LE(split.most_proxy_bytes, sync.bytes);
      ASSERT_LE(split.proxy_bytes, split.most_proxy_bytes);
      ASSERT_NEAR(split.proxy_bytes + split.worker_bytes, sync.bytes, k_rounding * sync.bytes);
      ASSERT_NEAR(dual_sync_s(sync, model, split.proxy_bytes), split.time_s,
                  k_rounding * split.time_s);
      ASSERT_NEAR(dual_sync_s(sync, model, split.most_proxy_bytes), split.time_s,
                  k_rounding * split.time_s);
      inside += split.proxy_bytes > 0 && split.proxy_bytes < sync.bytes ? 1 : 0;
      for (int i = 0; i <= 1000; ++i) {
        const double m = std::min(sync.bytes, sync.bytes * i / 1000);
        const double time_s = dual_sync_s(sync, model, m);
        ASSERT_GE(time_s, split.time_s * (1 - k_rounding)) << "m " << m;
        if (m < split.proxy_bytes * (1 - 1e-6) || m > split.most_proxy_bytes * (1 + 1e-6)) {
          ASSERT_GT(time_s, split.time_s * (1 - 1e-12)) << "m " << m;
        }
      }
    }
  });
  EXPECT_GE(inside, k_cases / 2);
}

TEST(DualSyncProperty, ThePapersFormulaIsItsClosedForm) {
  for_cases([](Random& random) {
    const DualSync sync = random_sync(random);
    SCOPED_TRACE(text_of(sync));
    if (sync.workers == 1) {
      return;
    }
    const double p = static_cast<double>(sync.workers);
    const double c = 2 * (p - 1) / p;
    const double m = (sync.backward_s + c * sync.bytes / sync.gpu_bytes_per_s) /
                     (c / sync.proxy_bytes_per_s + c / sync.gpu_bytes_per_s);
    const DualSplit split = solve_dual_sync(sync, DualSyncModel::paper);
    ASSERT_NEAR(split.proxy_bytes, std::min(m, sync.bytes), k_rounding * sync.bytes);
    ASSERT_EQ(split.clipped, m > sync.bytes);
  });
}

/// The corrected model played in small steps of time: what is ready moves as fast as the slower of
/// its two resources lets it, and on a shared link the ring has what push and pull leave.
double played_s(const DualSync& sync, double m, double step_s) {
  const double clients =
      std::ceil(static_cast<double>(sync.workers) / static_cast<double>(sync.devices));
  const double q = static_cast<double>(sync.devices);
  const double p = static_cast<double>(sync.workers);
  const double link = sync.client_bytes_per_s.value_or(sync.proxy_bytes_per_s);
  const double device = sync.proxy_bytes_per_s / (clients + 2 * (q - 1) / q); // bytes of m a second
  const double ring_s = 2 * (p - 1) / p / sync.gpu_bytes_per_s;               // for a byte
  double pushed = 0;
  double ringed = 0;
  double now = 0;
  const double end = sync.bytes * (1 - 1e-12);
  while (pushed + ringed < end || now < sync.backward_s) {
    now += step_s;
    const double made = now >= sync.backward_s ? sync.bytes : sync.bytes * (now / sync.backward_s);
    const bool ring_may = sync.ring == WorkerRing::when_ready || now >= sync.backward_s;
    const double push = std::min(std::min(m, made) - pushed, step_s * std::min(link, device));
    pushed += push;
    const double left_s = sync.shared_link ? step_s - push / link : step_s;
    const double ready = ring_may ? std::max(0.0, made - m) - ringed : 0;
    ringed += ring_s > 0 ? std::min(ready, left_s / ring_s) : ready;
  }
  return sync.forward_s + now;
}

TEST(DualSyncProperty, TheCorrectedTimeIsThatOfThePlay) {
  for_cases([](Random& random) {
    const DualSync sync = random_sync(random);
    const double m = random.below(6) == 0 ? 0 : sync.bytes * random.uniform(0, 1);
    SCOPED_TRACE(testing::Message() << text_of(sync) << " m " << m);
    const double formula_s = dual_sync_s(sync, DualSyncModel::corrected, m);
    const double step_s = (formula_s - sync.forward_s) / 4000;
    // Each of the two kinds of traffic may lose a step at its beginning and one at its end.
    ASSERT_NEAR(played_s(sync, m, step_s), formula_s, 5 * step_s);
  });
}

TEST(DualSyncProperty, TheCorrectedTimeIsNeverBelowThePapersWhereDevicesHaveOneWorker) {
  // The paper counts the ring alone and from the end of the forward pass on; and after the backward
  // pass, as the corrected one does when asked to.
  for_cases([](Random& random) {
    DualSync sync = random_sync(random);
    sync.devices = sync.workers;
    sync.ring = WorkerRing::after_backward;
    const double m = sync.bytes * random.uniform(0, 1);
    SCOPED_TRACE(testing::Message() << text_of(sync) << " m " << m);
    ASSERT_GE(dual_sync_s(sync, DualSyncModel::corrected, m),
              dual_sync_s(sync, DualSyncModel::paper, m) * (1 - k_rounding));
  });
}

TEST(DualSyncProperty, RoundingTakesTheBestBoundary) {
  for_cases([](Random& random) {
    DualSync sync = random_sync(random);
    std::vector<std::uint64_t> tensors;
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < 30; ++i) {
      tensors.push_back(1 + random.below(static_cast<std::uint64_t>(sync.bytes)));
      sum += tensors.back();
    }
    sync.bytes = static_cast<double>(sum);
    SCOPED_TRACE(text_of(sync));
    for (const DualSyncModel model : {DualSyncModel::paper, DualSyncModel::corrected}) {
      const DualRounding rounding = round_dual_sync(sync, model, tensors);
      double boundary = 0;
      double least = dual_sync_s(sync, model, 0);
      for (std::size_t i = 0; i < tensors.size(); ++i) {
        if (i == rounding.tensors) {
          ASSERT_EQ(boundary, rounding.proxy_bytes);
        }
        boundary += static_cast<double>(tensors[i]);
        least = std::min(least, dual_sync_s(sync, model, boundary));
      }
      ASSERT_NEAR(rounding.time_s, least, k_rounding * least);
      ASSERT_NEAR(dual_sync_s(sync, model, rounding.proxy_bytes), least, k_rounding * least);
      ASSERT_NEAR(rounding.cost_s, least - solve_dual_sync(sync, model).time_s, k_rounding * least);
      ASSERT_GE(rounding.cost_s, 0);
    }
  });
}

} // namespace
} // namespace reckon
