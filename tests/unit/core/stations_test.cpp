// SPDX-License-Identifier: Apache-2.0
#include "core/stations.hpp"

#include "core/error.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace reckon {
namespace {

TEST(BusyCurve, IsLinearBetweenItsPointsAndGoesOnAsBetweenTheLastTwo) {
  const BusyCurve curve({{1000, 2.0}, {3000, 3.0}});
  EXPECT_DOUBLE_EQ(curve.seconds(0), 0);
  EXPECT_DOUBLE_EQ(curve.seconds(500), 1.0);
  EXPECT_DOUBLE_EQ(curve.seconds(2000), 2.5);
  EXPECT_DOUBLE_EQ(curve.seconds(5000), 4.0); // 2000 bytes a second
  EXPECT_DOUBLE_EQ(curve.bytes_per_s(), 2000);
  EXPECT_DOUBLE_EQ(BusyCurve({{1000, 2.0}}).seconds(2000), 4.0);
  EXPECT_DOUBLE_EQ(BusyCurve().seconds(2000), 0);
}

TEST(BusyCurve, MoreBytesAreNeverQuicker) {
  const BusyCurve curve({{1000, 2.0}, {2000, 1.0}});
  EXPECT_DOUBLE_EQ(curve.seconds(2000), 2.0);
  EXPECT_DOUBLE_EQ(curve.seconds(9000), 2.0);
  EXPECT_TRUE(std::isinf(curve.bytes_per_s()));
}

TEST(BusyCurve, RefusesSizesThatDoNotGrow) {
  EXPECT_THROW(BusyCurve({{1000, 1}, {1000, 2}}), Error);
  EXPECT_THROW(BusyCurve({{0, 1}}), Error);
  EXPECT_THROW(BusyCurve({{1, -1}}), Error);
  EXPECT_THROW(BusyCurve({{1, NAN}}), Error);
}

TEST(StationNetwork, APieceTakesItsShareOfTheWholeWrite) {
  StationNetwork n;
  n.station_bytes_per_s = {100, 1};
  n.station_busy = {BusyCurve(), BusyCurve({{10, 1.0}, {100, 2.0}})};
  EXPECT_DOUBLE_EQ(n.busy_seconds(0, 50, 100), 0.5);
  EXPECT_DOUBLE_EQ(n.busy_seconds(1, 50, 100), 1.0); // half of the 2 s of 100 bytes
  EXPECT_DOUBLE_EQ(n.busy_seconds(1, 0, 0), 0);
  n.paths = {{{}, {0, 1}}, {{}, {}}};
  n.latency_s = 7;
  EXPECT_DOUBLE_EQ(n.write_seconds(0, 1, 100), 9);
  n.path_latency_s = {{0, 3}, {5, 0}};
  EXPECT_DOUBLE_EQ(n.write_seconds(0, 1, 100), 5);
  EXPECT_DOUBLE_EQ(n.write_seconds(1, 0, 100), 5); // shared memory
}

} // namespace
} // namespace reckon
