// SPDX-License-Identifier: Apache-2.0
#include "topology/topology.hpp"

#include "topology/numa.hpp"

#include <gtest/gtest.h>

namespace reckon {
namespace {

TEST(NumaNode, OfADeviceAtAMachineOfSeveralIsNotKnown) {
  Topology topology;
  const auto add = [&](const char* id, ObjectKind kind, const char* parent) {
    TopologyObject& made = topology.objects.emplace_back();
    made.id = id;
    made.kind = kind;
    made.parent = parent;
  };
  const auto node_of = [&](std::string_view id) {
    const TopologyObject* const node = numa_node_of(topology, id);
    return node == nullptr ? "" : node->id;
  };
  add("m", ObjectKind::machine, "");
  add("m/numa0", ObjectKind::numa_node, "m");
  add("m/gpu0", ObjectKind::gpu, "m/numa0");
  add("m/nic0", ObjectKind::nic, "m");
  EXPECT_EQ(node_of("m/nic0"), "m/numa0");
  add("m/numa1", ObjectKind::numa_node, "m");
  EXPECT_EQ(node_of("m/nic0"), "");
  EXPECT_EQ(node_of("m/gpu0"), "m/numa0");
}

TEST(PcieLink, NamesItsGeneration) {
  EXPECT_EQ((PcieLink{2.5e9, 1}).text(), "1.0 x1");
  EXPECT_EQ((PcieLink{8e9, 16}).text(), "3.0 x16");
  EXPECT_EQ((PcieLink{64e9, 8}).text(), "6.0 x8");
  EXPECT_EQ((PcieLink{20e9, 4}).text(), "20 GT/s x4"); // no generation's rate
}

TEST(PcieLink, CountsWhatLineCodingLeaves) {
  // 5 GT/s x 8 lanes x 8/10 / 8 bits = 4 GB/s
  EXPECT_DOUBLE_EQ((PcieLink{5e9, 8}).bytes_per_second(), 4e9);
  // 8 GT/s x 16 x 128/130 / 8 = 15.7538 GB/s: the 126 Gb/s that BytePS rounds to 128
  EXPECT_NEAR((PcieLink{8e9, 16}).bytes_per_second(), 15.7538e9, 1e5);
  // 32 GT/s x 16 x 128/130 / 8 = 63.0154 GB/s
  EXPECT_NEAR((PcieLink{32e9, 16}).bytes_per_second(), 63.0154e9, 1e5);
  // 64 GT/s x 16 x 242/256 / 8 = 121 GB/s
  EXPECT_DOUBLE_EQ((PcieLink{64e9, 16}).bytes_per_second(), 121e9);
}

} // namespace
} // namespace reckon
