// SPDX-License-Identifier: Apache-2.0
#include "discover/topology_file.hpp"

#include "support/refusals.hpp"
#include "topology/paths.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <string>

namespace reckon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string refusal(const std::string& text) {
  return test::refusal([&] { return topology_from_text(text, "f.xml"); });
}

// GPU 0 and 1 at four NVSwitches each; the NIC's switch link runs below the GPU's. dev is not in
// the order of the file, and NUMA node 1 stands first.
constexpr const char* k_nccl = R"(<system version="1">
  <cpu numaid="1" affinity="1,ff00" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85">
    <pci busid="0000:81:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">
      <pci busid="0000:83:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
        <gpu dev="1" sm="90" rank="1" gdr="1">
          <nvlink target="0000:c1:00.0" count="4" tclass="0x068000"/>
          <nvlink target="0000:c2:00.0" count="5" tclass="0x068000"/>
        </gpu>
      </pci>
    </pci>
    <nic>
      <net name="eth0" dev="0" speed="10000" port="0" guid="0x0" maxconn="65536" gdr="0"/>
    </nic>
  </cpu>
  <cpu numaid="0" affinity="ff" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85">
    <pci busid="0000:16:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">
      <pci busid="0000:18:00.0" class="0x030200" link_speed="Unknown" link_width="16">
        <gpu dev="0" sm="90" rank="0" gdr="1">
          <nvlink target="0000:C1:00.0" count="4" tclass="0x068000"/>
          <nvlink target="0000:c2:00.0" count="5" tclass="0x068000"/>
          <c2c bw="20000" count="2"/>
        </gpu>
      </pci>
      <pci busid="0000:19:00.0" class="0x020700" link_speed="16 GT/s" link_width="8">
        <nic>
          <net name="mlx5_0" dev="0" speed="200000" port="1"/>
          <net name="mlx5_1" dev="1" speed="200000" port="2"/>
        </nic>
      </pci>
    </pci>
    <nic>
      <net name="eth0" dev="0" speed="10000" port="0" guid="0x0" maxconn="65536" gdr="0"/>
    </nic>
  </cpu>
</system>
)";

TEST(NcclTopology, GpusAreNumberedByDeviceAndNvSwitchesAreOne) {
  const RecordedTopology recorded = topology_from_text(k_nccl, "f.xml");
  const Topology& t = recorded.topology;
  EXPECT_TRUE(recorded.remarks.empty());
  EXPECT_EQ(t.find("m0/gpu0")->pci_address, "0000:18:00.0");
  EXPECT_EQ(t.find("m0/gpu1")->pci_address, "0000:83:00.0");
  EXPECT_EQ(t.find("m0/numa0")->os_index, 0);
  EXPECT_EQ(t.find("m0/numa1")->cpus.front(), 8);
  EXPECT_EQ(t.find("m0/numa1")->cpus.back(), 32);
  EXPECT_EQ(t.find("m0/gpu0")->pcie, std::nullopt); // "Unknown"
  // 4 + 5 links of NVLink 4, 25 GB/s each.
  EXPECT_EQ(path_between(t, "m0/gpu0", "m0/gpu1").text(), "NV9");
  EXPECT_EQ(described_bytes_per_second(t, {"m0/gpu0", "m0/nvswitch0"}), 225e9);
  EXPECT_EQ(t.of_kind(ObjectKind::link_switch).size(), 1U);
  // NVLink-C2C: 2 links of 20000 MB/s to the memory next to it.
  EXPECT_EQ(described_bytes_per_second(t, {"m0/gpu0", "m0/numa0"}), 40e9);
  // Two ports of one card, 200 Gb/s each.
  EXPECT_EQ(t.find("m0/nic0")->name, "mlx5_0 mlx5_1");
  EXPECT_EQ(t.find("m0/nic0")->link_bytes_per_second, 50e9);
  // NCCL lists eth0 at both processors.
  EXPECT_EQ(t.of_kind(ObjectKind::nic).size(), 2U);
}

TEST(NcclTopology, OfTwoEndsThatTellOfTheSameLinksTheOneThatSeesMoreIsRight) {
  // The first GPU sees four links to the second, which sees two of them.
  const std::string text = R"(<system version="1">
  <cpu numaid="0" affinity="ff" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85">
    <pci busid="0000:18:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
      <gpu dev="0" sm="90" rank="0" gdr="1">
        <nvlink target="0000:19:00.0" count="4" tclass="0x030200"/>
      </gpu>
    </pci>
    <pci busid="0000:19:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
      <gpu dev="1" sm="90" rank="1" gdr="1">
        <nvlink target="0000:18:00.0" count="2" tclass="0x030200"/>
      </gpu>
    </pci>
  </cpu>
</system>
)";
  const Topology t = topology_from_text(text, "f.xml").topology;
  EXPECT_EQ(path_between(t, "m0/gpu0", "m0/gpu1").text(), "NV4");
}

TEST(TopologyFile, MistakesNameTheLineAndARemedy) {
  EXPECT_THAT(refusal("{\"schema\": 1}"), test::Says("--profile"));
  EXPECT_THAT(refusal("<a>\n<b></a>"), test::Says("line 2"));
  EXPECT_THAT(refusal("<?xml version=\"1.0\"?>\n<plan/>"), test::Says("line 2"));
  EXPECT_THAT(refusal("<system version=\"7\"><cpu/></system>"), HasSubstr("has version \"7\""));
  EXPECT_THAT(refusal("<system version=\"1\"></system>"), HasSubstr("has no <cpu>"));
  EXPECT_THAT(refusal("<system version=\"1\"><cpu numaid=\"0\"/></system>"), test::Says("holds"));
  EXPECT_THAT(refusal("<system version=\"1\">\n<cpu numaid=\"0\">\n<pci class=\"0x030200\"/>\n"
                      "</cpu></system>"),
              test::Says("line 3"));
  EXPECT_THAT(refusal("<system version=\"1\">\n<cpu><pci busid=\"17\" class=\"0x030200\"/></cpu>"
                      "</system>"),
              test::Says("busid=\"17\""));
  EXPECT_THAT(refusal("<system version=\"1\"><cpu><pci busid=\"0000:17:00.0\" class=\"gpu\"/></cpu>"
                      "</system>"),
              test::Says("class=\"gpu\""));
  EXPECT_THAT(refusal("<system version=\"1\"><cpu affinity=\"xyz\"/></system>"),
              test::Says("affinity=\"xyz\""));
  EXPECT_THAT(refusal("<system version=\"1\"><cpu host_hash=\"0x1\"/><cpu host_hash=\"0x2\"/>"
                      "</system>"),
              HasSubstr("holds 2 machines"));
  EXPECT_THAT(refusal("<topology version=\"99.0\"></topology>"), testing::HasSubstr("XML 99.0"));
  EXPECT_THAT(refusal("<topology version=\"2.0\"></topology>"), testing::HasSubstr("hwloc"));
}

/// Without some of these hwloc 2.9 crashes, without others it does not mind.
TEST(TopologyFile, AnObjectThatLacksASetOfProcessorsIsReadOrRefused) {
  const std::string sets =
      R"( cpuset="0x3" complete_cpuset="0x3" nodeset="0x1" complete_nodeset="0x1")";
  const auto machine = [](const std::string& of_node, const std::string& of_all) {
    return fmt::format(R"(<?xml version="1.0"?><topology version="2.0">
<object type="Machine"{1} allowed_cpuset="0x3" allowed_nodeset="0x1" gp_index="1">
<object type="NUMANode" os_index="0"{0} gp_index="2"/>
<object type="PU" os_index="0" cpuset="0x1" complete_cpuset="0x1" gp_index="3"/>
<object type="PU" os_index="1" cpuset="0x2" complete_cpuset="0x2" gp_index="4"/>
</object></topology>)",
                       of_node, of_all);
  };
  EXPECT_NO_THROW(topology_from_text(machine(sets, sets), "f.xml"));
  int crashes = 0;
  for (std::size_t begin = 0; begin != std::string::npos; begin = sets.find(' ', begin + 1)) {
    std::string others = sets;
    others.erase(begin, sets.find(' ', begin + 1) - begin);
    try {
      static_cast<void>(topology_from_text(machine(others, sets), "f.xml"));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
      EXPECT_THAT(error.what(), HasSubstr("hwloc XML 2.0")) << others;
      crashes += std::string_view(error.what()).find("signal 11") != std::string_view::npos ? 1 : 0;
    }
  }
  EXPECT_GT(crashes, 0);
}

TEST(TopologyFile, LinksThatLeadNowhereAreRemarked) {
  const RecordedTopology recorded = topology_from_text(
      "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"0000:17:00.0\" class=\"0x030200\">"
      "<gpu dev=\"0\" sm=\"70\"><nvlink target=\"0000:18:00.0\" count=\"1\" tclass=\"0x030200\"/>"
      "</gpu></pci></cpu></system>",
      "f.xml");
  ASSERT_EQ(recorded.remarks.size(), 1U);
  EXPECT_THAT(recorded.remarks[0], test::Says("0000:18:00.0"));
  EXPECT_TRUE(recorded.topology.links.empty());
}

TEST(NcclTopology, WhatContainersAndVirtualMachinesHangOnIsNoNic) {
  const auto nics = [](const std::string& nets) {
    const RecordedTopology recorded = topology_from_text(
        "<system version=\"1\"><cpu numaid=\"0\"><nic>" + nets + "</nic></cpu></system>", "f.xml");
    std::vector<std::string> names;
    for (const TopologyObject* nic : recorded.topology.of_kind(ObjectKind::nic)) {
      names.push_back(fmt::format("{} {}", nic->name, nic->link_bytes_per_second.value_or(0)));
    }
    return names;
  };
  const std::string virtual_ones = R"(<net name="veth1a2b" dev="0" speed="10000"/>
    <net name="br-5c1d" dev="1" speed="10000"/><net name="docker0" dev="2" speed="10000"/>)";
  EXPECT_THAT(refusal("<system version=\"1\"><cpu numaid=\"0\"><nic>" + virtual_ones +
                      "</nic></cpu></system>"),
              test::Says("holds"));
  EXPECT_THAT(nics(virtual_ones + R"(<net name="eth0" dev="3" speed="25000"/>)"),
              ElementsAre("eth0 3125000000"));
}

TEST(NcclTopology, APortFasterThanAnyIsInAnotherUnitAndNotBelieved) {
  std::string text =
      k_nccl; // RCCL's topo_4p_940.xml says 200000000 of a Slingshot port of 200 Gb/s
  const std::string speed = R"("mlx5_1" dev="1" speed="200000")";
  text.replace(text.find(speed), speed.size(), R"("mlx5_1" dev="1" speed="200000000")");
  const RecordedTopology recorded = topology_from_text(text, "f.xml");
  ASSERT_EQ(recorded.remarks.size(), 1U);
  EXPECT_THAT(recorded.remarks[0], test::Says("speed=\"200000000\""));
  const auto nics = recorded.topology.of_kind(ObjectKind::nic);
  const auto mlx5 = std::find_if(nics.begin(), nics.end(), [](const TopologyObject* nic) {
    return nic->name.starts_with("mlx5");
  });
  ASSERT_NE(mlx5, nics.end());
  EXPECT_EQ((*mlx5)->link_bytes_per_second, 25e9); // of the other port alone
}

TEST(NcclTopology, RatesAndNumbersThatAreNoneAreRemarkedOnceAndNotUsed) {
  const auto file = [](const char* numaid, const char* speed, const char* width) {
    return fmt::format("<system version=\"1\">\n<cpu numaid=\"{0}\">\n"
                       "<pci busid=\"0000:17:00.0\" class=\"0x030200\" link_speed=\"{1}\" "
                       "link_width=\"{2}\"/>\n"
                       "<pci busid=\"0000:18:00.0\" class=\"0x030200\" link_speed=\"{1}\" "
                       "link_width=\"{2}\"/>\n</cpu></system>",
                       numaid, speed, width);
  };
  const auto remarks = [&](const char* numaid, const char* speed, const char* width) {
    return topology_from_text(file(numaid, speed, width), "f.xml").remarks;
  };
  // What NCCL and /sys write where they do not know is no mistake.
  for (const auto& [speed, width] : {std::pair("16.0 GT/s PCIe", "16"),
                                     {"Unknown", "16"},
                                     {"Unknown speed", "255"},
                                     {"", ""},
                                     {"8 GT/s", "0"}}) {
    EXPECT_TRUE(remarks("0", speed, width).empty()) << speed << " x" << width;
  }
  EXPECT_TRUE(remarks("-1", "", "").empty());
  EXPECT_THAT(remarks("0", "fast", "16"),
              ElementsAre("f.xml: line 3: <pci> has link_speed=\"fast\", which is no rate such as "
                          "16.0 GT/s PCIe; taken as not known (and 1 more like it)"));
  EXPECT_THAT(remarks("0", "-8 GT/s", "16"), ElementsAre(HasSubstr("link_speed=\"-8 GT/s\"")));
  EXPECT_THAT(remarks("0", "8 GT/s", "wide"), ElementsAre(HasSubstr("link_width=\"wide\"")));
  EXPECT_THAT(remarks("0", "8 GT/s", "999"), ElementsAre(HasSubstr("link_width=\"999\"")));
  EXPECT_THAT(remarks("zero", "", ""), ElementsAre(test::Says("numaid=\"zero\"")));
  const Topology t = topology_from_text(file("zero", "fast", "16"), "f.xml").topology;
  EXPECT_EQ(t.find("m0/gpu0")->pcie, std::nullopt);
  EXPECT_EQ(t.find("m0/numa0")->os_index, std::nullopt);
  EXPECT_THAT(refusal("<system version=\"1\"><cpu numaid=\"0\"/>\n<cpu numaid=\"0\"/></system>"),
              test::Says("numaid=\"0\""));
}

TEST(TopologyFile, AnyBeginningOfAFileIsRefusedOrRead) {
  const std::string whole = k_nccl;
  for (std::size_t n = 0; n + 1 < whole.size(); n += 7) { // the last is a line end
    EXPECT_NE(refusal(whole.substr(0, n)), "") << n;      // its end tag is missing
  }
}

} // namespace
} // namespace reckon
