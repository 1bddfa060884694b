// SPDX-License-Identifier: Apache-2.0
#include "present/topology_text.hpp"

#include "support/machines.hpp"
#include "support/messages.hpp"

#include <gmock/gmock.h>

namespace reckon {
namespace {

using namespace testing;

TEST(TopologyText, OfThePcieMachineOfBytePs) {
  const std::string text = topology_text(test::byteps_pcie_machine(), {});
  EXPECT_THAT(text, test::Says("PCIe 3.0"));
  EXPECT_THAT(text, test::Says("gpu0"));
  EXPECT_THAT(text, test::Says("4.2.3: S_n"));
  EXPECT_THAT(text, HasSubstr("CPU-assisted aggregation"));
  // The switch's link with its rate stands for the host bridge's, which the same endpoints share.
  EXPECT_THAT(text, test::Says("15.75 GB/s"));
  EXPECT_THAT(text, Not(HasSubstr("hb0 - numa0")));
  EXPECT_THAT(text, test::Says("numa0"));
  EXPECT_THAT(text, Not(HasSubstr("below what they could do")));
}

TEST(TopologyText, SharedLinksHaveTheirMeasuredRate) {
  const auto measured = [](const LinkEnd& link) {
    return link == LinkEnd{"m0/numa0", "m0/numa1"}   ? 20e9
           : link == LinkEnd{"m0/numa1", "m0/numa0"} ? 18e9 // the slower holds each way
           : link == LinkEnd{"m0/hb0", "m0/numa0"}   ? 12e9 // before its switch's described rate
                                                     : 0.0;
  };
  const std::string text = topology_text(test::byteps_pcie_machine(), {}, measured);
  EXPECT_THAT(text, test::Says("18 GB/s"));
  EXPECT_THAT(text, test::Says("12 GB/s"));
  EXPECT_THAT(text, test::Says("15.75 GB/s"));
}

TEST(TopologyText, OfTheNvlinkMachineOfBytePs) {
  const std::string text = topology_text(test::byteps_nvlink_machine(), {});
  EXPECT_THAT(text, test::Says("(sw0), S_g"));
  EXPECT_THAT(text, test::Says("gpu0"));
}

TEST(TopologyText, LinksBelowWhatTheyCouldDoAreWarnedOf) {
  Topology t = test::byteps_pcie_machine();
  for (TopologyObject& o : t.objects) {
    if (o.id == "m0/gpu3") {
      o.pcie = PcieLink{8e9, 8};
      o.pcie_possible = PcieLink{16e9, 16};
    } else if (o.id == "m0/gpu4") {
      o.pcie_possible = o.pcie; // as fast as can be
    }
  }
  const std::string text = topology_text(t, {});
  EXPECT_THAT(text, test::Says("PCIe 3.0"));
  EXPECT_THAT(text, test::Says("gpu3 runs"));
  EXPECT_THAT(text, Not(HasSubstr("gpu4 runs at")));
  EXPECT_THAT(text, test::Says("again"));
}

TEST(TopologyText, NicsOfOnePlaceAreOneRowOfALargeMachine) {
  Topology t = test::byteps_nvlink_machine();
  const TopologyObject nic = t.objects.back();
  for (int i = 1; i < 12; ++i) {
    t.objects.push_back(nic);
    t.objects.back().id = "m0/nic" + std::to_string(i);
    t.objects.back().parent = i < 8 ? "m0/sw0" : "m0/sw3";
  }
  const std::string text = topology_text(t, {}); // 8 + 12 + 2 endpoints
  EXPECT_THAT(text, test::Says("numa0"));
  EXPECT_THAT(text, HasSubstr("\n  nic0-7   PIX"));
}

TEST(TopologyText, AMachineWithoutDevicesIsItsTreeAlone) {
  Topology t;
  t.objects.resize(2);
  t.objects[0].id = "m0";
  t.objects[1].id = "m0/numa0";
  t.objects[1].kind = ObjectKind::numa_node;
  t.objects[1].parent = "m0";
  t.objects[1].bytes = 1U << 30U;
  EXPECT_EQ(topology_text(t, {}), "topology of m0\n  └─ numa0  1 GiB\n");
  EXPECT_EQ(topology_text({}, {}), "");
}

} // namespace
} // namespace reckon
