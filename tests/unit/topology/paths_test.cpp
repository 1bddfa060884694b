// SPDX-License-Identifier: Apache-2.0
#include "topology/paths.hpp"

#include "support/machines.hpp"
#include "support/refusals.hpp"

#include <gmock/gmock.h>

#include <map>

namespace reckon {
namespace {

using namespace testing;

std::string way(const Path& path) {
  std::string text = path.text() + ":";
  for (const LinkEnd& link : path.links) {
    text += " " + link.text() + ",";
  }
  text.pop_back();
  return text;
}

std::string class_between(const Topology& t, const std::string& from, const std::string& to) {
  return path_between(t, "m0/" + from, "m0/" + to).text();
}

/// A small tree out of (kind, id, parent) lines.
Topology tree(const std::vector<std::tuple<ObjectKind, std::string, std::string>>& objects) {
  Topology t;
  for (const auto& [kind, id, parent] : objects) {
    t.objects.push_back({.id = id, .kind = kind, .parent = parent});
  }
  return t;
}

TEST(Paths, OfThePcieMachineOfBytePs) {
  const Topology t = test::byteps_pcie_machine();
  EXPECT_EQ(class_between(t, "gpu0", "gpu0"), "X");
  EXPECT_EQ(class_between(t, "gpu0", "gpu3"), "PIX"); // one switch
  EXPECT_EQ(class_between(t, "gpu3", "gpu4"), "SYS");
  EXPECT_EQ(class_between(t, "gpu0", "nic0"), "NODE"); // two host bridges at processor 0
  EXPECT_EQ(class_between(t, "gpu4", "nic0"), "SYS");
  EXPECT_EQ(class_between(t, "gpu0", "numa0"), "PHB");
  EXPECT_EQ(class_between(t, "gpu0", "numa1"), "SYS");
  EXPECT_EQ(class_between(t, "numa0", "numa1"), "SYS");
  EXPECT_EQ(way(path_between(t, "m0/gpu0", "m0/gpu3")), "PIX: m0/gpu0 > m0/sw0, m0/sw0 > m0/gpu3");
  // Across: up to the memory of one processor, over the socket link, down again.
  EXPECT_EQ(way(path_between(t, "m0/gpu4", "m0/nic0")),
            "SYS: m0/gpu4 > m0/sw1, m0/sw1 > m0/hb1, m0/hb1 > m0/numa1, m0/numa1 > m0/numa0, "
            "m0/numa0 > m0/hb2, m0/hb2 > m0/nic0");
}

TEST(Paths, OfTheNvlinkMachineOfBytePs) {
  const Topology t = test::byteps_nvlink_machine();
  EXPECT_EQ(class_between(t, "gpu0", "gpu1"), "NV1");
  EXPECT_EQ(class_between(t, "gpu0", "gpu4"), "NV2");
  EXPECT_EQ(class_between(t, "gpu0", "gpu5"), "SYS"); // no NVLink joins these two
  EXPECT_EQ(class_between(t, "gpu0", "nic0"), "PIX");
  EXPECT_EQ(class_between(t, "gpu2", "nic0"), "NODE");
  EXPECT_EQ(way(path_between(t, "m0/gpu3", "m0/gpu0")), "NV2: m0/gpu3 > m0/gpu0");
  EXPECT_EQ(way(path_between(t, "m0/gpu0", "m0/gpu1", true)),
            "PIX: m0/gpu0 > m0/sw0, m0/sw0 > m0/gpu1");
  EXPECT_EQ(path_between(t, "m0/gpu0", "m0/gpu2", true).text(), "NODE");
}

TEST(Paths, RunBackwardsTheSameWay) {
  for (const Topology& t : {test::byteps_pcie_machine(), test::byteps_nvlink_machine()}) {
    const auto ends = endpoints_of(t, "m0");
    for (const std::string& from : ends) {
      for (const std::string& to : ends) {
        const Path there = path_between(t, from, to);
        const Path back = path_between(t, to, from);
        EXPECT_EQ(there.text(), back.text());
        ASSERT_EQ(there.links.size(), back.links.size());
        for (std::size_t i = 0; i < there.links.size(); ++i) {
          const LinkEnd& link = back.links[back.links.size() - 1 - i];
          EXPECT_EQ(there.links[i], (LinkEnd{link.to, link.from}));
        }
      }
    }
  }
}

TEST(Paths, SwitchesBelowSwitchesArePxb) {
  using enum ObjectKind;
  const Topology t = tree({{machine, "m0", ""},
                           {numa_node, "m0/numa0", "m0"},
                           {host_bridge, "m0/hb", "m0/numa0"},
                           {pci_bridge, "m0/top", "m0/hb"},
                           {pci_bridge, "m0/left", "m0/top"},
                           {pci_bridge, "m0/right", "m0/top"},
                           {gpu, "m0/gpu0", "m0/left"},
                           {gpu, "m0/gpu1", "m0/left"},
                           {gpu, "m0/gpu2", "m0/right"},
                           {nic, "m0/nic0", "m0/top"},
                           {gpu, "m0/gpu3", "m0/hb"}});
  EXPECT_EQ(class_between(t, "gpu0", "gpu1"), "PIX");
  EXPECT_EQ(class_between(t, "gpu0", "gpu2"), "PXB"); // left, top, right
  EXPECT_EQ(class_between(t, "gpu0", "nic0"), "PXB"); // left, top
  EXPECT_EQ(class_between(t, "gpu0", "gpu3"), "PHB");
  // The rule of BytePS is about the link to the processor, which is that of the upper switch.
  const SwitchCensus census = switch_census(t, "m0");
  EXPECT_THAT(census.with_nic, ElementsAre("m0/top"));
  EXPECT_THAT(census.gpus_only, ElementsAre("m0/gpu3")); // alone at its root port
}

TEST(Paths, FunctionsOfOneCardShareItsLinkAndNoSwitch) {
  using enum ObjectKind;
  Topology t = tree({{machine, "m0", ""},
                     {numa_node, "m0/numa0", "m0"},
                     {host_bridge, "m0/hb", "m0/numa0"},
                     {pci_bridge, "m0/sw", "m0/hb"},
                     {gpu, "m0/gpu0", "m0/sw"},
                     {pci_bridge, "m0/card", "m0/sw"},
                     {nic, "m0/nic0", "m0/card"},
                     {nic, "m0/nic1", "m0/card"}});
  t.objects[6].pci_address = "0000:17:00.0";
  t.objects[7].pci_address = "0000:17:00.1";
  EXPECT_EQ(class_between(t, "nic0", "nic1"), "PIX");
  EXPECT_TRUE(is_card_port(t, *t.find("m0/card")));
  EXPECT_FALSE(is_card_port(t, *t.find("m0/sw")));
  EXPECT_EQ(class_between(t, "gpu0", "nic1"), "PIX"); // the switch alone counts
  EXPECT_EQ(way(path_between(t, "m0/gpu0", "m0/nic1")),
            "PIX: m0/gpu0 > m0/sw, m0/sw > m0/card, m0/card > m0/nic1");
  t.objects[7].pci_address = "0000:18:00.0"; // another card: then it is a switch
  EXPECT_EQ(class_between(t, "gpu0", "nic1"), "PXB");
}

TEST(Paths, WithoutHostBridgesOneNodeIsPhb) {
  using enum ObjectKind;
  const Topology t = tree({{machine, "m0", ""},
                           {numa_node, "m0/numa0", "m0"},
                           {pci_bridge, "m0/sw0", "m0/numa0"},
                           {gpu, "m0/gpu0", "m0/sw0"},
                           {pci_bridge, "m0/sw1", "m0/numa0"},
                           {gpu, "m0/gpu1", "m0/sw1"},
                           {nic, "m0/nic0", "m0"}});
  EXPECT_EQ(class_between(t, "gpu0", "gpu1"), "PHB");
  EXPECT_EQ(class_between(t, "gpu0", "nic0"), "PHB"); // there is one NUMA node only
}

TEST(Paths, AnUnknownPlaceIsTakenForTheFarthest) {
  using enum ObjectKind;
  const Topology t = tree({{machine, "m0", ""},
                           {numa_node, "m0/numa0", "m0"},
                           {numa_node, "m0/numa1", "m0"},
                           {gpu, "m0/gpu0", "m0/numa0"},
                           {nic, "m0/nic0", "m0"}});
  EXPECT_EQ(class_between(t, "gpu0", "nic0"), "SYS");
  EXPECT_EQ(class_between(t, "numa1", "nic0"), "SYS");
}

TEST(Paths, SocketLinksAreTakenByTheFewestHops) {
  using enum ObjectKind;
  // Four packages in a ring 0-1-2-3-0, package 2 with two NUMA nodes.
  Topology t = tree({{machine, "m0", ""},
                     {package, "m0/pkg0", "m0"},
                     {numa_node, "m0/numa0", "m0/pkg0"},
                     {package, "m0/pkg1", "m0"},
                     {numa_node, "m0/numa1", "m0/pkg1"},
                     {package, "m0/pkg2", "m0"},
                     {numa_node, "m0/numa2", "m0/pkg2"},
                     {numa_node, "m0/numa3", "m0/pkg2"},
                     {package, "m0/pkg3", "m0"},
                     {numa_node, "m0/numa4", "m0/pkg3"}});
  EXPECT_EQ(way(path_between(t, "m0/numa0", "m0/numa1")), "SYS: m0/numa0 > m0/numa1");
  // Taken for granted: the two nodes of package 2 share its way out.
  EXPECT_EQ(way(path_between(t, "m0/numa0", "m0/numa2")),
            "SYS: m0/numa0 > m0/pkg2, m0/pkg2 > m0/numa2");
  EXPECT_EQ(way(path_between(t, "m0/numa2", "m0/numa3")),
            "SYS: m0/numa2 > m0/pkg2, m0/pkg2 > m0/numa3");
  for (const auto& [a, b] : {std::pair("0", "1"), {"1", "2"}, {"2", "3"}, {"0", "3"}}) {
    t.links.push_back({.kind = PeerLinkKind::socket,
                       .from = std::string("m0/pkg") + a,
                       .to = std::string("m0/pkg") + b,
                       .count = 1,
                       .bytes_per_second = 20e9});
  }
  EXPECT_EQ(way(path_between(t, "m0/numa0", "m0/numa4")),
            "SYS: m0/numa0 > m0/pkg0, m0/pkg0 > m0/pkg3, m0/pkg3 > m0/numa4");
  const Path far = path_between(t, "m0/numa1", "m0/numa4"); // two hops either way round
  EXPECT_EQ(far.links.size(), 4U);
  EXPECT_EQ(described_bytes_per_second(t, far.links[1]), 20e9);
}

TEST(Paths, GpusAtALinkSwitchHaveAsManyLinksAsTheFewer) {
  using enum ObjectKind;
  Topology t = tree({{machine, "m0", ""},
                     {numa_node, "m0/numa0", "m0"},
                     {gpu, "m0/gpu0", "m0/numa0"},
                     {gpu, "m0/gpu1", "m0/numa0"},
                     {gpu, "m0/gpu2", "m0/numa0"},
                     {link_switch, "m0/nvswitch", "m0"}});
  t.links = {{PeerLinkKind::nvlink, "m0/gpu0", "m0/nvswitch", 12, 300e9},
             {PeerLinkKind::nvlink, "m0/gpu1", "m0/nvswitch", 8, 200e9}};
  EXPECT_EQ(way(path_between(t, "m0/gpu0", "m0/gpu1")),
            "NV8: m0/gpu0 > m0/nvswitch, m0/nvswitch > m0/gpu1");
  EXPECT_EQ(class_between(t, "gpu0", "gpu2"), "PHB");
  EXPECT_EQ(described_bytes_per_second(t, {"m0/nvswitch", "m0/gpu1"}), 200e9);
}

TEST(Paths, IdsThatAreNotThereAndTwoMachinesAreRefused) {
  using enum ObjectKind;
  const Topology t = tree(
      {{machine, "m0", ""}, {gpu, "m0/gpu0", "m0"}, {machine, "m1", ""}, {gpu, "m1/gpu0", "m1"}});
  for (const auto& [from, to, says] :
       {std::tuple("m0/gpu0", "m0/gpu7", "no object \"m0/gpu7\""),
        {"m0/gpu0", "m1/gpu0", "m0/gpu0 and m1/gpu0 are in different machines"}}) {
    const char *const begin = from, *const end = to;
    EXPECT_REFUSED(input, says, path_between(t, begin, end));
  }
}

TEST(DescribedRate, IsThatOfThePcieLinkWithEitherEndFirst) {
  Topology t = test::byteps_pcie_machine();
  const double x16 = PcieLink{8e9, 16}.bytes_per_second();
  EXPECT_EQ(described_bytes_per_second(t, {"m0/gpu0", "m0/sw0"}), x16);
  EXPECT_EQ(described_bytes_per_second(t, {"m0/sw0", "m0/gpu0"}), x16);
  EXPECT_EQ(described_bytes_per_second(t, {"m0/nic0", "m0/hb2"}), x16); // not the port's 12.5e9
  EXPECT_EQ(described_bytes_per_second(t, {"m0/hb0", "m0/numa0"}), 0);
  EXPECT_EQ(described_bytes_per_second(t, {"m0/numa0", "m0/numa1"}), 0);
  EXPECT_EQ(described_bytes_per_second(t, {"m0/gpu0", "m0/gpu1"}), 0); // no neighbours
  t.objects.back().pcie.reset();
  EXPECT_EQ(described_bytes_per_second(t, {"m0/nic0", "m0/hb2"}), 0);
  t.objects.back().pcie_bytes_per_second = 7.9e9;
  EXPECT_EQ(described_bytes_per_second(t, {"m0/nic0", "m0/hb2"}), 7.9e9);
}

TEST(SwitchCensus, TellsTheTwoMachinesOfBytePsApart) {
  const SwitchCensus pcie = switch_census(test::byteps_pcie_machine(), "m0");
  EXPECT_THAT(pcie.with_nic, IsEmpty()); // symmetric
  EXPECT_THAT(pcie.gpus_only, ElementsAre("m0/sw0", "m0/sw1"));
  const SwitchCensus nvlink = switch_census(test::byteps_nvlink_machine(), "m0");
  EXPECT_THAT(nvlink.with_nic, ElementsAre("m0/sw0")); // asymmetric
  EXPECT_THAT(nvlink.gpus_only, ElementsAre("m0/sw1", "m0/sw2", "m0/sw3"));
}

TEST(LacksGpuLinks, WhereTheTreeSaysWhereTheGpusAreAndNotHowTheyAreJoined) {
  EXPECT_TRUE(lacks_gpu_links(test::byteps_pcie_machine(), "m0"));
  Topology t = test::byteps_nvlink_machine();
  EXPECT_FALSE(lacks_gpu_links(t, "m0"));
  std::erase_if(t.links, [](const PeerLink& l) { return l.kind != PeerLinkKind::socket; });
  EXPECT_TRUE(lacks_gpu_links(t, "m0"));
  t.links.push_back({PeerLinkKind::socket, "m0/numa0", "m0/gpu0", 1, 450e9}); // joins no two GPUs
  EXPECT_TRUE(lacks_gpu_links(t, "m0"));
  for (TopologyObject& o : t.objects) { // a model without NVLinks
    o.name = o.kind == ObjectKind::gpu ? "NVIDIA L40S" : o.name;
  }
  EXPECT_FALSE(lacks_gpu_links(t, "m0"));
  for (TopologyObject& o : t.objects) { // as importers list them
    o.name = o.kind == ObjectKind::gpu ? "" : o.name;
    o.parent = o.kind == ObjectKind::gpu ? "m0" : o.parent;
  }
  EXPECT_FALSE(lacks_gpu_links(t, "m0"));
}

TEST(Endpoints, AreGpusMemoryDevicesNicsAndNumaNodesOfThatMachine) {
  using enum ObjectKind;
  const Topology t = tree({{machine, "m0", ""},
                           {numa_node, "m0/numa0", "m0"},
                           {nic, "m0/nic0", "m0/numa0"},
                           {gpu, "m0/gpu0", "m0/numa0"},
                           {memory_device, "m0/mem0", "m0/numa0"},
                           {core, "m0/core0", "m0/numa0"},
                           {machine, "m1", ""},
                           {gpu, "m1/gpu0", "m1"}});
  EXPECT_THAT(endpoints_of(t, "m0"), ElementsAre("m0/gpu0", "m0/mem0", "m0/nic0", "m0/numa0"));
  EXPECT_THAT(endpoints_of(t, "m1"), ElementsAre("m1/gpu0"));
}

std::map<LinkEnd, std::size_t> counted(const std::vector<SharedLink>& links) {
  std::map<LinkEnd, std::size_t> counts;
  for (const SharedLink& s : links) {
    counts[s.link] = s.pairs.size();
  }
  return counts;
}

TEST(SharedLinks, OfThePcieMachineOfBytePs) {
  const auto pairs = counted(shared_links(test::byteps_pcie_machine(), "m0"));
  // 11 endpoints. A GPU's own link: to the 10 others.
  EXPECT_EQ(pairs.at({"m0/gpu0", "m0/sw0"}), 10U);
  EXPECT_EQ(pairs.at({"m0/sw0", "m0/gpu0"}), 10U);
  // From the 4 GPUs of a switch to the 4 of the other, the NIC and both memories: 4 x 7.
  EXPECT_EQ(pairs.at({"m0/sw0", "m0/hb0"}), 28U);
  EXPECT_EQ(pairs.at({"m0/hb0", "m0/numa0"}), 28U);
  // gpu0..3, the NIC and memory 0 to gpu4..7 and memory 1: 6 x 5.
  EXPECT_EQ(pairs.at({"m0/numa0", "m0/numa1"}), 30U);
  EXPECT_EQ(pairs.at({"m0/numa1", "m0/numa0"}), 30U);
  EXPECT_EQ(pairs.at({"m0/nic0", "m0/hb2"}), 10U);
  // Each direction: 8 GPUs, 2 switches, 2 + 1 host bridges, the NIC, and the socket link.
  EXPECT_EQ(pairs.size(), 2U * (8 + 2 + 3 + 1 + 1));
}

TEST(SharedLinks, OfTheNvlinkMachineLeaveOutLinksOfTwoGpusAlone) {
  const Topology t = test::byteps_nvlink_machine();
  const auto pairs = counted(shared_links(t, "m0"));
  // From gpu0, gpu1 to the GPUs without an NVLink to them (5, 6, 7 and 4, 6, 7) and both memories
  // 2 x 5; from the NIC to gpu2..7 and both memories: 8.
  EXPECT_EQ(pairs.at({"m0/sw0", "m0/hb0"}), 18U);
  EXPECT_FALSE(pairs.contains({"m0/gpu0", "m0/gpu3"})); // one pair's own
  // Without NVLinks: 3 endpoints to 8 others.
  EXPECT_EQ(counted(shared_links(t, "m0", true)).at({"m0/sw0", "m0/hb0"}), 24U);
}

} // namespace
} // namespace reckon
