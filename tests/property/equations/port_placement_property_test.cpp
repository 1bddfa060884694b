// SPDX-License-Identifier: Apache-2.0
#include "equations/port_placement.hpp"

#include "support/random_cases.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

namespace reckon {
namespace {

constexpr std::uint64_t k_seed = 20180216;
constexpr int k_cases = 300;

using Loads = std::vector<std::uint64_t>;

/// Chunks and a server drawn at random, placed.
template <class Check>
void for_placements(Check check) {
  test::for_cases(k_seed, k_cases, [&](test::Random& random) {
    const std::size_t nodes = 1 + random() % 4;
    ServerLayout layout = equal_layout(nodes + random() % 12, nodes + random() % 30, nodes);
    for (ServerLayout::Interface& interface : layout.interfaces) {
      interface.bytes_per_s = static_cast<double>(1 + random() % 4);
    }
    Loads chunks(1 + random() % 400);
    const std::uint64_t range = std::uint64_t{1} << (1 + random() % 30);
    std::generate(chunks.begin(), chunks.end(), [&] { return 1 + random() % range; });
    check(chunks, layout, place_on_ports(chunks, layout));
  });
}

TEST(PortPlacementProperty, EveryChunkIsInOneLaneAndStaysOnTheNodeOfItsInterface) {
  for_placements([](const Loads& chunks, const ServerLayout& layout, const PortPlacement& placed) {
    ASSERT_EQ(placed.lane_of.size(), chunks.size());
    Loads of_interface(layout.interfaces.size(), 0), of_core(layout.core_node.size(), 0);
    Loads of_lane(placed.lanes.size(), 0);
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      ASSERT_LT(placed.lane_of[i], placed.lanes.size());
      const PortLane& lane = placed.lanes[placed.lane_of[i]];
      of_interface[lane.interface] += chunks[i];
      of_core[lane.core] += chunks[i];
      of_lane[placed.lane_of[i]] += chunks[i];
    }
    EXPECT_EQ(of_interface, placed.interface_bytes);
    EXPECT_EQ(of_core, placed.core_bytes);
    Loads of_node(placed.node_bytes.size(), 0);
    for (std::size_t l = 0; l < placed.lanes.size(); ++l) {
      const PortLane& lane = placed.lanes[l];
      EXPECT_EQ(lane.bytes, of_lane[l]);
      EXPECT_EQ(lane.node, layout.interfaces[lane.interface].node);
      EXPECT_EQ(lane.node, layout.core_node[lane.core]);
      of_node[lane.node] += lane.bytes;
    }
    EXPECT_EQ(of_node, placed.node_bytes);
  });
}

TEST(PortPlacementProperty, NoTwoLanesShareAQueue) {
  for_placements([](const Loads&, const ServerLayout&, const PortPlacement& placed) {
    std::set<std::tuple<std::size_t, std::size_t>> queues;
    for (const PortLane& lane : placed.lanes) {
      EXPECT_TRUE(queues.emplace(lane.interface, lane.core).second);
    }
  });
}

TEST(PortPlacementProperty, IsAsEvenAsPromised) {
  constexpr double k_rounding = 1 + 1e-12;
  for_placements([&](const Loads& chunks, const ServerLayout& layout, const PortPlacement& placed) {
    const PlacementEvenness even = evenness_of(placed, layout, chunks);
    for (const Evenness& level : {even.interfaces, even.nodes, even.cores}) {
      EXPECT_GE(level.over_mean * k_rounding, 1);
      EXPECT_LE(level.over_mean, level.at_most * k_rounding);
    }
  });
}

} // namespace
} // namespace reckon
