// SPDX-License-Identifier: Apache-2.0
#include "fixtures.hpp"

#include "equations/split.hpp"
#include "strategies/parts.hpp"
#include "support/random_cases.hpp"
#include "support/refusals.hpp"

#include <gmock/gmock.h>

#include <numeric>
#include <random>

namespace reckon {
namespace {

using namespace testing;
using test::equal_tensors;

void expect_cover(const Parts& parts, const GradientLayout& layout, std::uint64_t part_bytes) {
  std::uint64_t total = 0, expected = 0;
  for (const DTypeRun& run : layout.runs) {
    expected += run.bytes;
  }
  for (std::size_t p = 0; p < parts.size(); ++p) {
    EXPECT_GT(parts.bytes[p], 0U);
    EXPECT_LE(parts.bytes[p], part_bytes);
    total += parts.bytes[p];
    if (p > 0) {
      EXPECT_GE(parts.offset_bytes[p], parts.offset_bytes[p - 1] + parts.bytes[p - 1]);
    }
    const bool inside = std::any_of(layout.runs.begin(), layout.runs.end(), [&](const DTypeRun& r) {
      return parts.offset_bytes[p] >= r.offset_bytes &&
             parts.offset_bytes[p] + parts.bytes[p] <= r.offset_bytes + r.bytes;
    });
    EXPECT_TRUE(inside) << "part " << p << " spans two element types";
  }
  EXPECT_EQ(total, expected);
}

TEST(Cut, CoversEveryByteOnceWhateverTheSizes) {
  test::for_cases(20261121, 300, [](test::Random& random) {
    std::vector<Tensor> tensors(1 + random() % 20);
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      tensors[t] = {"t" + std::to_string(t), random() % 3 == 0 ? random() % 10 : random() % 50000,
                    static_cast<DType>(random() % 3)};
    }
    tensors.front().elements += 1;
    const Workload w = test::workload(tensors);
    const GradientLayout layout = layout_of(w);
    const std::uint64_t part = 64 + random() % 40000;
    for (const Cutting cutting : {Cutting::fused, Cutting::tensors}) {
      expect_cover(cut(layout, w, part, cutting, 1 + random() % 30), layout, part);
    }
  });
}

TEST(Cut, FusedPartsAreEqualAndOnPages) {
  const Workload w = test::workload({{"a", 1 << 20, DType::fp32}, {"b", 12345, DType::fp32}});
  const Parts parts = cut(layout_of(w), w, 256 * 1024, Cutting::fused, 1);
  for (std::size_t p = 0; p + 1 < parts.size(); ++p) {
    EXPECT_EQ(parts.bytes[p], parts.bytes[0]);
    EXPECT_EQ(parts.offset_bytes[p] % 4096, 0U);
  }
}

TEST(Cut, TensorsAreCutOneByOne) {
  // 9,000 B in pieces of at most 4,096: 3 pieces of 3,008 (3,000 rounded up to 64), 3,008 and
  // 2,984.
  const Workload w = test::workload({{"a", 2250, DType::fp32}, {"b", 1, DType::fp32}});
  const Parts parts = cut(layout_of(w), w, 4096, Cutting::tensors, 1);
  EXPECT_THAT(parts.bytes, testing::ElementsAre(3008, 3008, 2984, 4));
}

TEST(Cut, RefusesTinyParts) {
  const Workload w = test::workload({{"a", 100, DType::fp32}});
  EXPECT_ERROR(cut(layout_of(w), w, 63, Cutting::fused, 1));
}

/// Cost on a star: worker M + (n-2) g, server n c, all ports of rate 1 (BytePS 4.1.1).
RankCost star_cost(std::size_t n, double total) {
  return [=](std::size_t r, double load) {
    return r < n ? total + (static_cast<double>(n) - 2) * load : static_cast<double>(n) * load;
  };
}

double latest(const RankCost& cost, const std::vector<double>& loads) {
  double t = 0;
  for (std::size_t r = 0; r < loads.size(); ++r) {
    t = std::max(t, cost(r, loads[r]));
  }
  return t;
}

TEST(Assign, NeverWorseThanHashingAndBoundedByOnePart) {
  test::for_cases(7, 300, [](test::Random& random) {
    const std::size_t n = 2 + random() % 10, k = random() % 10;
    Parts parts;
    const std::size_t count = 1 + random() % 400;
    const bool equal = random() % 2 == 0;
    for (std::size_t p = 0; p < count; ++p) {
      parts.bytes.push_back(equal ? 4096 : 64 + random() % 4033);
      parts.offset_bytes.push_back(p * 4096);
    }
    const double total = std::accumulate(parts.bytes.begin(), parts.bytes.end(), 0.0);
    const StarSplit split =
        solve_star_split({total, std::vector<double>(n, 1), std::vector<double>(k, 1)});
    std::vector<double> shares = split.shares.worker_bytes;
    shares.insert(shares.end(), split.shares.server_bytes.begin(), split.shares.server_bytes.end());
    const RankCost cost = star_cost(n, total);
    const double time = assign_servers(parts, shares, cost);
    EXPECT_NEAR(time, latest(cost, loads_of(parts, n + k)), 1e-6);
    EXPECT_GE(time, split.time_s * (1 - 1e-12));
    // The rank that is done last would be below the bound without its last part, which costs it at
    // most n parts' time.
    EXPECT_LE(time, split.time_s + static_cast<double>(n) * 4096 + 1e-6);
    Parts hashed = parts;
    assign_by_hash(hashed, shares);
    EXPECT_LE(time, latest(cost, loads_of(hashed, n + k)));
    for (std::size_t p = 0; p < count; ++p) {
      EXPECT_GT(shares[parts.server[p]], 0) << "a rank without a share got a part";
    }
  });
}

TEST(Assign, IsTheBestThereIsForEqualParts) {
  // Brute force: every way to give 9 equal parts to 2 workers + 2 servers (n = 2) or 3 + 1 (n = 3).
  for (const auto& [n, k] : {std::pair<std::size_t, std::size_t>{2, 2}, {3, 1}, {4, 0}}) {
    const std::size_t count = 9, ranks = n + k;
    const double total = count;
    const RankCost cost = star_cost(n, total);
    double best = 1e9;
    for (std::size_t code = 0; code < 262144; ++code) { // 4^9
      std::vector<double> loads(ranks, 0);
      for (std::size_t p = 0, c = code; p < count; ++p, c /= 4) {
        loads[c % 4] += 1;
      }
      best = std::min(best, latest(cost, loads));
    }
    Parts parts;
    parts.bytes.assign(count, 1);
    parts.offset_bytes.assign(count, 0);
    EXPECT_DOUBLE_EQ(assign_servers(parts, std::vector<double>(ranks, 1), cost), best)
        << "n " << n << " k " << k;
  }
}

TEST(Assign, TwoWorkersShareEquallyThoughNoShareCostsThemMore) {
  Parts parts;
  parts.bytes.assign(400, 4096);
  parts.offset_bytes.assign(400, 0);
  assign_servers(parts, std::vector<double>{1, 1}, star_cost(2, 400 * 4096.0));
  EXPECT_THAT(loads_of(parts, 2), testing::ElementsAre(200 * 4096.0, 200 * 4096.0));
}

TEST(Assign, SpreadsServersEvenlyInTime) {
  // Shares 1 : 1 : 2: in any 8 neighbouring parts they get 2, 2 and 4, give or take one.
  Parts parts;
  parts.bytes.assign(400, 4096);
  parts.offset_bytes.assign(400, 0);
  const std::vector<double> shares{1, 1, 2};
  assign_servers(parts, shares,
                 [](std::size_t r, double bytes) { return r == 2 ? bytes / 2 : bytes; });
  for (std::size_t begin = 0; begin + 8 <= 400; ++begin) {
    std::array<int, 3> seen{};
    for (std::size_t p = begin; p < begin + 8; ++p) {
      ++seen[parts.server[p]];
    }
    EXPECT_NEAR(seen[2], 4, 1);
    EXPECT_NEAR(seen[0], 2, 1);
  }
}

TEST(Lanes, GetEqualBytesOfEveryServer) {
  Parts parts;
  std::mt19937_64 random(3);
  for (std::size_t p = 0; p < 600; ++p) {
    parts.bytes.push_back(64 * (1 + random() % 64));
    parts.offset_bytes.push_back(0);
    parts.server.push_back(p % 3);
  }
  assign_lanes(parts, 3, 4);
  for (std::uint64_t s = 0; s < 3; ++s) {
    std::array<double, 4> lane{};
    for (std::size_t p = 0; p < parts.size(); ++p) {
      if (parts.server[p] == s) {
        lane[parts.lane[p]] += static_cast<double>(parts.bytes[p]);
      }
    }
    const auto [least, most] = std::minmax_element(lane.begin(), lane.end());
    EXPECT_LE(*most - *least, 4096); // longest first: never more than one part apart
  }
}

/// The input layer has no tensors: its backward pass comes last and its forward pass first.
Workload layered() {
  Workload w = equal_tensors(3, 100); // in gradient order: 0 and 1 of the last layer, 2 before them
  const auto took = [](double seconds) { return Computation{.seconds = seconds}; };
  const auto names = [&](std::size_t from, std::size_t to) {
    std::vector<std::string> out;
    for (std::size_t t = from; t < to; ++t) {
      out.push_back(w.tensors[t].name);
    }
    return out;
  };
  w.layers = {{"input", {}, took(1), {}, took(2), {}},
              {"first", names(2, 3), took(4), {}, took(8), {}},
              {"pool", {}, took(16), took(32), {}, {}},
              {"last", names(0, 2), took(64), took(128), took(256), {}}};
  return w;
}

TEST(PassesOf, FollowTheLayers) {
  const Workload w = layered();
  // Forward 85 s in all: last 64 over two tensors; first 4, with the pool behind it and the input.
  const Passes p = passes_of(layout_of(w), w, 85, 426);
  EXPECT_THAT(p.forward_seconds, ElementsAre(DoubleEq(32), DoubleEq(32), DoubleEq(21)));
  EXPECT_THAT(p.backward_seconds, ElementsAre(DoubleEq(192), DoubleEq(192), DoubleEq(42)));
  EXPECT_EQ(pass_seconds(w, {}).forward, 85);
  EXPECT_EQ(pass_seconds(w, {}).backward, 426);
  // Other totals keep the proportions.
  EXPECT_THAT(passes_of(layout_of(w), w, 8.5, 0).forward_seconds,
              ElementsAre(DoubleNear(3.2, 1e-12), DoubleNear(3.2, 1e-12), DoubleNear(2.1, 1e-12)));
}

TEST(PassesOf, FollowOperationsWhereNoTimesAreKnownAndAreEvenWithoutLayers) {
  Workload w = layered();
  for (Layer& l : w.layers) {
    l.forward = {.flops_per_sample = static_cast<std::uint64_t>(*l.forward.seconds)};
    l.input_gradient = l.weight_gradient = {};
  }
  const Passes p = passes_of(layout_of(w), w, 85, 3);
  EXPECT_THAT(p.forward_seconds, ElementsAre(DoubleEq(32), DoubleEq(32), DoubleEq(21)));
  EXPECT_THAT(p.backward_seconds, Each(DoubleEq(1)));
  w.layers.clear();
  EXPECT_THAT(passes_of(layout_of(w), w, 3, 6).forward_seconds, Each(DoubleEq(1)));
  EXPECT_THAT(passes_of(layout_of(w), w, 3, 6).backward_seconds, Each(DoubleEq(2)));
}

TEST(Parts, PriorityTakesWhatTheForwardPassNeedsFirstAmongWhatIsThere) {
  // Four layers of 10 bytes, a backward pass of 1 s each, 10 bytes a second on the link: part i is
  // there at i + 1. At 1 only 0 is; at 2 part 1; and so on: nothing to choose. At 2.5 bytes a
  // second part 0 takes until 5, when all are there, and then the last layer's goes first.
  Passes passes;
  passes.end_bytes = {10, 20, 30, 40};
  passes.backward_seconds.assign(4, 1);
  passes.forward_seconds.assign(4, 1);
  for (const double rate : {10.0, 2.5}) {
    Parts parts;
    parts.offset_bytes = {0, 10, 20, 30};
    parts.bytes.assign(4, 10);
    order_by_priority(parts, passes, rate);
    EXPECT_THAT(parts.offset_bytes, rate == 10.0 ? testing::ElementsAre(0U, 10U, 20U, 30U)
                                                 : testing::ElementsAre(0U, 30U, 20U, 10U));
  }
  // A part over two layers is there when the second is.
  Parts parts;
  parts.offset_bytes = {0, 15, 25};
  parts.bytes = {15, 10, 15};
  order_by_priority(parts, passes, 1000);
  EXPECT_THAT(parts.offset_bytes, testing::ElementsAre(0U, 15U, 25U));
}

} // namespace
} // namespace reckon
