// SPDX-License-Identifier: Apache-2.0
#include "equations/links.hpp"

#include "support/refusals.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace reckon {
namespace {

constexpr std::nullopt_t k_no = std::nullopt;
/// A few operations' rounding.
constexpr double k_rounding = 1e-12;

TEST(Oversubscription, IsLanesOverLanes) {
  EXPECT_EQ(oversubscription(8, 16, 80), 1.6);
  EXPECT_EQ(oversubscription(1, 16, 64), 0.25);
  EXPECT_ERROR(oversubscription(8, 16, 0));
}

/// A square with fast sides (10) and slow diagonals (2), the link from 3 to 0 only 5.
LinkMatrix square() {
  return {{k_no, 10, 2, 10}, {10, k_no, 10, 2}, {2, 10, k_no, 10}, {5, 2, 10, k_no}};
}

TEST(Ring, UsesItsSlowestLinkEverywhere) {
  const std::vector<std::size_t> order{0, 1, 2, 3};
  const auto use = ring_use(square(), order);
  ASSERT_TRUE(use.has_value());
  EXPECT_EQ(use->bytes_per_s, 5);
  // 4 * 5 of 22 + 22 + 22 + 17 = 83 in all links, of 4 * 10 in the ports.
  EXPECT_NEAR(use->link_utilisation, 20.0 / 83, k_rounding);
  EXPECT_NEAR(use->port_utilisation, 0.5, k_rounding);
}

TEST(Ring, AllOrdersAreTriedOnce) {
  const RingExtremes extremes = all_rings(square());
  EXPECT_EQ(extremes.orders, 6U); // 3!
  EXPECT_EQ(extremes.rings, 6U);
  ASSERT_TRUE(extremes.best && extremes.worst);
  // Backwards the slow link from 3 to 0 is not needed.
  EXPECT_EQ(extremes.best->order, (std::vector<std::size_t>{0, 3, 2, 1}));
  EXPECT_EQ(extremes.best->bytes_per_s, 10);
  EXPECT_EQ(extremes.best->port_utilisation, 1);
  EXPECT_EQ(extremes.worst->bytes_per_s, 2);
  EXPECT_EQ(extremes.worst->order, (std::vector<std::size_t>{0, 1, 3, 2}));
}

TEST(Ring, NeedsAllItsLinks) {
  // A chain 0 - 1 - 2 has no ring.
  const LinkMatrix chain{{k_no, 1, k_no}, {1, k_no, 1}, {k_no, 1, k_no}};
  const std::vector<std::size_t> order{0, 1, 2};
  EXPECT_FALSE(ring_use(chain, order).has_value());
  const RingExtremes extremes = all_rings(chain);
  EXPECT_FALSE(extremes.best || extremes.worst);
  EXPECT_EQ(extremes.rings, 0U);
  EXPECT_EQ(extremes.orders, 2U);
  // Two endpoints: both directions of one link, all there is.
  const LinkMatrix pair{{k_no, 3}, {4, k_no}};
  ASSERT_TRUE(all_rings(pair).best.has_value());
  EXPECT_NEAR(all_rings(pair).best->link_utilisation, 6.0 / 7, k_rounding);
}

TEST(Ring, OfEqualPairsUsesOneInNMinusOne) {
  // What a matrix of measured pairs behind one switch looks like: k s of k (k-1) s.
  LinkMatrix equal(8, std::vector<std::optional<double>>(8, 12e9));
  const RingExtremes extremes = all_rings(equal);
  EXPECT_EQ(extremes.orders, 5040U);
  EXPECT_NEAR(extremes.best->link_utilisation, 1.0 / 7, k_rounding);
  EXPECT_NEAR(extremes.best->port_utilisation, 1, k_rounding);
}

TEST(Ring, RefusesWhatIsNone) {
  const std::vector<std::size_t> twice{0, 1, 1, 3};
  EXPECT_ERROR(ring_use(square(), twice));
  const std::vector<std::size_t> few{0, 1, 2};
  EXPECT_ERROR(ring_use(square(), few));
  EXPECT_ERROR(all_rings({}));
  EXPECT_ERROR(all_rings({{k_no, 1}, {0.0, k_no}}));
  EXPECT_ERROR(all_rings({{k_no, 1}, {1}}));
  EXPECT_ERROR(all_rings(LinkMatrix(10, std::vector<std::optional<double>>(10, 1.0))));
}

/// Two pairs under a switch each.
LinkMatrix pairs(double local, double remote) {
  LinkMatrix matrix(4, std::vector<std::optional<double>>(4, remote));
  matrix[0][1] = matrix[1][0] = matrix[2][3] = matrix[3][2] = local;
  return matrix;
}
const std::vector<std::size_t> k_groups{0, 0, 1, 1};

TEST(Locality, IsToldByTheFasterKindOfLink) {
  // COARSE's P100, V100 and T4 machines in kind.
  EXPECT_EQ(classify_locality(pairs(25, 18), k_groups, 0.05).machine, Locality::local);
  EXPECT_EQ(classify_locality(pairs(9, 16), k_groups, 0.05).machine, Locality::anti_local);
  EXPECT_EQ(classify_locality(pairs(10, 10.4), k_groups, 0.05).machine, Locality::none);
  EXPECT_EQ(classify_locality(pairs(10.4, 10), k_groups, 0.05).machine, Locality::none);
  EXPECT_EQ(classify_locality(pairs(10, 10.4), k_groups, 0).machine, Locality::anti_local);
}

TEST(Locality, IsOfMediansForTheMachineAndOfTheBestLinkForEach) {
  LinkMatrix matrix = pairs(9, 16);
  matrix[3][2] = 40; // one fast local link: 3 is local, the median of 9, 9, 9, 40 is 9
  matrix[1][2] = k_no;
  matrix[1][3] = k_no; // nothing leaves 1's group
  const LocalityReport report = classify_locality(matrix, k_groups, 0.05);
  EXPECT_EQ(report.machine, Locality::anti_local);
  EXPECT_EQ(report.local_bytes_per_s, 9);
  EXPECT_EQ(report.remote_bytes_per_s, 16);
  using Each = std::vector<std::optional<Locality>>;
  EXPECT_EQ(report.endpoints,
            (Each{Locality::anti_local, k_no, Locality::anti_local, Locality::local}));
}

TEST(Locality, TakesTheMeanOfTheTwoMiddleLinks) {
  // As if 0 and 2 shared a switch: remote links are four of 9 and four of 16.
  const std::vector<std::size_t> crossed{0, 1, 0, 1};
  const LocalityReport report = classify_locality(pairs(9, 16), crossed, 0.05);
  EXPECT_EQ(report.remote_bytes_per_s, 12.5);
  EXPECT_EQ(report.local_bytes_per_s, 16);
  EXPECT_EQ(report.machine, Locality::local);
  EXPECT_EQ(report.endpoints[0], Locality::none); // a link of 16 to either kind
}

TEST(Locality, NeedsBothKinds) {
  const std::vector<std::size_t> one{0, 0, 0, 0};
  const std::vector<std::size_t> alone{0, 1, 2, 3};
  const std::vector<std::size_t> few{0, 1};
  EXPECT_ERROR(classify_locality(pairs(1, 1), one, 0));
  EXPECT_ERROR(classify_locality(pairs(1, 1), alone, 0));
  EXPECT_ERROR(classify_locality(pairs(1, 1), few, 0));
  EXPECT_ERROR(classify_locality(pairs(1, 1), k_groups, -1));
}

} // namespace
} // namespace reckon
