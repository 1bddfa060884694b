// SPDX-License-Identifier: Apache-2.0
#include "discover/hwloc_tree.hpp"

#include "loaded.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace reckon {
namespace {

using test::from_xml;
using test::synthetic;

std::string parent_of(const Topology& t, std::string_view id) {
  const TopologyObject* const o = t.find(id);
  return o == nullptr ? "(absent)" : o->parent;
}

/// Holds of every tree: unique ids, one root, parents stand before their children.
void expect_well_formed(const Topology& t) {
  std::set<std::string> seen;
  for (const TopologyObject& o : t.objects) {
    EXPECT_TRUE(o.parent.empty() == (o.kind == ObjectKind::machine)) << o.id;
    EXPECT_TRUE(o.parent.empty() || seen.contains(o.parent)) << o.id << " below " << o.parent;
    EXPECT_TRUE(seen.insert(o.id).second) << o.id << " twice";
  }
}

/// The tree of a loaded machine, which holds what holds of every tree.
Topology tree_of(const test::Loaded& loaded, const SystemFile& files = nullptr) {
  Topology t = topology_from_hwloc(loaded.get(), "m0", files);
  expect_well_formed(t);
  return t;
}

TEST(HwlocTree, TwoPackagesOfTwoNumaNodesOfFourCores) {
  const Topology t = tree_of(synthetic("package:2 numa:2(memory=1GB) l3:2(size=32MB) core:2 pu:2"));
  EXPECT_EQ(t.of_kind(ObjectKind::machine).size(), 1U);
  EXPECT_EQ(t.of_kind(ObjectKind::package).size(), 2U);
  EXPECT_EQ(t.of_kind(ObjectKind::numa_node).size(), 4U);
  EXPECT_EQ(t.of_kind(ObjectKind::cache).size(), 8U);
  EXPECT_EQ(t.of_kind(ObjectKind::core).size(), 16U);
  // The chain of the last core: 16 cores, 4 to a node, 2 nodes to a package.
  EXPECT_EQ(parent_of(t, "m0/core15"), "m0/l3-7");
  EXPECT_EQ(parent_of(t, "m0/l3-7"), "m0/numa3");
  EXPECT_EQ(parent_of(t, "m0/numa3"), "m0/pkg1");
  EXPECT_EQ(parent_of(t, "m0/pkg1"), "m0");
  // Two processors to a core: core 15 has the last two of 32; node 3 the last eight.
  EXPECT_EQ(t.find("m0/core15")->cpus, (std::vector<int>{30, 31}));
  EXPECT_EQ(t.find("m0/numa3")->cpus, (std::vector<int>{24, 25, 26, 27, 28, 29, 30, 31}));
  EXPECT_EQ(t.find("m0/numa0")->bytes, 1'000'000'000U);
  EXPECT_EQ(t.find("m0/l3-0")->cache_level, 3);
  EXPECT_EQ(t.find("m0/l3-0")->bytes, 32'000'000U);
}

TEST(HwlocTree, ANodeAsLargeAsItsCache) {
  // hwloc hangs the node from the cache then, and we follow: what matters is that the way up from a
  // core passes both.
  const Topology t = tree_of(synthetic("package:2 numa:2(memory=1GB) l3:1(size=32MB) core:4 pu:1"));
  std::set<std::string> up;
  for (std::string id = "m0/core15"; !id.empty(); id = parent_of(t, id)) {
    up.insert(id);
  }
  EXPECT_EQ(up, (std::set<std::string>{"m0/core15", "m0/l3-3", "m0/numa3", "m0/pkg1", "m0"}));
}

TEST(HwlocTree, OneNodeBesideOnePackage) {
  const Topology t = topology_from_hwloc(synthetic("package:1 core:2 pu:1").get(), "m7", nullptr);
  // hwloc puts the only node beside the package or the machine; either way the cores are below it.
  ASSERT_NE(t.find("m7/numa0"), nullptr);
  std::string up = parent_of(t, "m7/core1");
  bool passed = false;
  for (; !up.empty(); up = parent_of(t, up)) {
    passed = passed || up == "m7/numa0";
  }
  EXPECT_TRUE(passed);
}

TEST(HwlocTree, TwoKindsOfMemoryNextToTheSameCores) {
  // As KNL and HBM machines: each package has two nodes. Both belong to the package.
  const Topology t =
      tree_of(synthetic("package:2 [numa(memory=64GB)] [numa(memory=16GB)] core:2 pu:1"));
  const auto nodes = t.of_kind(ObjectKind::numa_node);
  ASSERT_EQ(nodes.size(), 4U);
  std::map<std::string, int> per_package;
  for (const TopologyObject* node : nodes) {
    ++per_package[node->parent];
  }
  EXPECT_EQ(per_package, (std::map<std::string, int>{{"m0/pkg0", 2}, {"m0/pkg1", 2}}));
  EXPECT_TRUE(parent_of(t, "m0/core3").starts_with("m0/numa"));
}

TEST(HwlocTree, OnlyAllowedProcessorsCount) {
  const auto loaded = synthetic("package:2 numa:1(memory=1GB) core:2 pu:1");
  // As a taskset to processors 1 and 2: one core of each package.
  hwloc_bitmap_t only = hwloc_bitmap_alloc();
  hwloc_bitmap_set_range(only, 1, 2);
  ASSERT_EQ(hwloc_topology_restrict(loaded.get(), only, 0), 0);
  Topology t = tree_of(loaded);
  ASSERT_EQ(t.of_kind(ObjectKind::core).size(), 2U);
  EXPECT_EQ(t.of_kind(ObjectKind::core)[0]->cpus, std::vector<int>{1});
  EXPECT_EQ(t.of_kind(ObjectKind::core)[1]->cpus, std::vector<int>{2});

  // Only processor 1: package 1 keeps its memory, without processors.
  hwloc_bitmap_only(only, 1);
  ASSERT_EQ(hwloc_topology_restrict(loaded.get(), only, 0), 0);
  hwloc_bitmap_free(only);
  t = tree_of(loaded);
  EXPECT_EQ(t.of_kind(ObjectKind::core).size(), 1U);
  ASSERT_EQ(t.of_kind(ObjectKind::numa_node).size(), 2U);
  EXPECT_EQ(t.find("m0/numa0")->cpus, std::vector<int>{1});
  EXPECT_TRUE(t.find("m0/numa1")->cpus.empty());
  EXPECT_EQ(t.find("m0/numa1")->bytes, 1'000'000'000U);
}

TEST(HwlocTree, ProcessorsStandForCoresThatFirmwareHides) {
  const auto loaded = synthetic("numa:1 pu:3");
  ASSERT_EQ(hwloc_get_nbobjs_by_type(loaded.get(), HWLOC_OBJ_CORE), 0);
  const Topology t = tree_of(loaded);
  EXPECT_EQ(t.of_kind(ObjectKind::core).size(), 3U);
}

// Two packages; package 1 has a PCIe switch with a GPU and a two-function card whose first function
// is both an Ethernet port and an RDMA device, and a management controller's frame buffer.
constexpr const char* k_xml = R"(<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
 <object type="Machine" os_index="0" cpuset="0x3" complete_cpuset="0x3" allowed_cpuset="0x3" nodeset="0x3" complete_nodeset="0x3" allowed_nodeset="0x3" gp_index="1">
  <info name="DMIProductName" value="Test Box"/>
  <object type="Package" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="2">
   <info name="CPUModel" value="Some CPU"/>
   <object type="NUMANode" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="3" local_memory="1073741824"/>
   <object type="Core" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="4">
    <object type="PU" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="5"/>
   </object>
  </object>
  <object type="Package" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x2" complete_nodeset="0x2" gp_index="6">
   <object type="NUMANode" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x2" complete_nodeset="0x2" gp_index="7" local_memory="1073741824"/>
   <object type="Core" os_index="0" cpuset="0x2" complete_cpuset="0x2" nodeset="0x2" complete_nodeset="0x2" gp_index="8">
    <object type="PU" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x2" complete_nodeset="0x2" gp_index="9"/>
   </object>
   <object type="Bridge" gp_index="10" bridge_type="0-1" depth="0" bridge_pci="0000:[80-8f]">
    <object type="Bridge" gp_index="11" bridge_type="1-1" depth="1" bridge_pci="0000:[81-85]" pci_busid="0000:80:01.0" pci_type="0604 [1000:c010] [0000:0000] b0" pci_link_speed="31.507692">
     <object type="PCIDev" gp_index="12" name="GH100" pci_busid="0000:82:00.0" pci_type="0302 [10de:2330] [10de:16c1] a1" pci_link_speed="63.015385"/>
     <object type="PCIDev" gp_index="13" pci_busid="0000:83:00.0" pci_type="0200 [15b3:1021] [15b3:0041] 00" pci_link_speed="63.015385">
      <object type="OSDev" gp_index="14" name="ens83np0" subtype="" osdev_type="2"/>
      <object type="OSDev" gp_index="15" name="mlx5_3" osdev_type="3"/>
     </object>
    </object>
    <object type="PCIDev" gp_index="16" pci_busid="0000:86:00.0" pci_type="0300 [1a03:2000] [1a03:2000] 41" pci_link_speed="0.250000">
     <object type="OSDev" gp_index="17" name="card0" osdev_type="1"/>
    </object>
   </object>
  </object>
 </object>
</topology>
)";

TEST(HwlocTree, DevicesHangFromTheMemoryNextToThem) {
  const Topology t =
      tree_of(from_xml(k_xml),
              test::files({{"/sys/class/net/ens83np0/speed", "400000"},
                           {"/sys/class/infiniband/mlx5_3/ports/1/rate", "400 Gb/sec (4X NDR)"},
                           {"/sys/class/infiniband/mlx5_3/ports/1/state", "4: ACTIVE"}}));
  EXPECT_EQ(t.find("m0")->name, "Test Box");
  EXPECT_EQ(t.find("m0/pkg0")->name, "Some CPU");

  // Host bridge below the node of package 1, the switch below it, the card below the switch.
  EXPECT_EQ(parent_of(t, "m0/bridge0"), "m0/numa1");
  EXPECT_EQ(parent_of(t, "m0/bridge1"), "m0/bridge0");
  EXPECT_EQ(t.find("m0/bridge1")->pci_address, "0000:80:01.0");
  // hwloc gives GB/s: 31.5 is PCIe 4.0 x16.
  EXPECT_NEAR(*t.find("m0/bridge1")->link_bytes_per_second, 31.5e9, 0.1e9);

  // The frame buffer is no GPU.
  ASSERT_EQ(t.of_kind(ObjectKind::gpu).size(), 1U);
  EXPECT_EQ(t.find("m0/gpu0")->pci_address, "0000:82:00.0");
  EXPECT_EQ(t.find("m0/gpu0")->name, "GH100");
  EXPECT_EQ(parent_of(t, "m0/gpu0"), "m0/bridge1");

  // One port, two drivers: one NIC of 400 Gb/s = 50 GB/s, not two.
  ASSERT_EQ(t.of_kind(ObjectKind::nic).size(), 1U);
  EXPECT_EQ(t.find("m0/nic0")->name, "ens83np0 mlx5_3");
  EXPECT_EQ(t.find("m0/nic0")->link_bytes_per_second, 50e9);
  EXPECT_EQ(parent_of(t, "m0/nic0"), "m0/bridge1");
}

TEST(HwlocTree, PortsWithoutASpeedSayNone) {
  const auto speed = [](const SystemFile& files) {
    return tree_of(from_xml(k_xml), files).find("m0/nic0")->link_bytes_per_second;
  };
  // virtio reports -1; a port that is down fails to be read.
  EXPECT_EQ(speed(test::files({{"/sys/class/net/ens83np0/speed", "-1"}})), std::nullopt);
  EXPECT_EQ(speed(nullptr), std::nullopt); // another machine's
  const std::string base = "/sys/class/infiniband/mlx5_3/ports/";
  EXPECT_EQ(speed(test::files({{base + "1/rate", "40 Gb/sec (4X QDR)"},
                               {base + "1/state", "1: DOWN"},
                               {base + "2/rate", "100 Gb/sec (4X EDR)"},
                               {base + "2/state", "4: ACTIVE"}})),
            12.5e9); // port 2's 100 Gb/s alone
}

// One package; root port 16:00.0, a switch 17:00.0 with downstream ports 18:00.0 to a GPU and
// 18:01.0 to a card of two functions. Above every device is a port that is not in the tree, but the
// card's.
constexpr const char* k_switch_xml = R"(<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
 <object type="Machine" os_index="0" cpuset="0x1" complete_cpuset="0x1" allowed_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" allowed_nodeset="0x1" gp_index="1">
  <object type="Package" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="2">
   <object type="NUMANode" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="3" local_memory="1073741824"/>
   <object type="Core" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="4">
    <object type="PU" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="5"/>
   </object>
   <object type="Bridge" gp_index="10" bridge_type="0-1" depth="0" bridge_pci="0000:[16-1f]">
    <object type="Bridge" gp_index="11" bridge_type="1-1" depth="1" bridge_pci="0000:[17-1f]" pci_busid="0000:16:00.0" pci_type="0604 [8086:2030] [8086:0000] 04" pci_link_speed="15.753846">
     <object type="Bridge" gp_index="12" bridge_type="1-1" depth="2" bridge_pci="0000:[18-1f]" pci_busid="0000:17:00.0" pci_type="0604 [10b5:9781] [10b5:9781] b0" pci_link_speed="15.753846">
      <object type="Bridge" gp_index="13" bridge_type="1-1" depth="3" bridge_pci="0000:[19-19]" pci_busid="0000:18:00.0" pci_type="0604 [10b5:9781] [10b5:9781] b0" pci_link_speed="15.753846">
       <object type="PCIDev" gp_index="14" pci_busid="0000:19:00.0" pci_type="0302 [10de:1db8] [10de:131d] a1" pci_link_speed="15.753846"/>
      </object>
      <object type="Bridge" gp_index="15" bridge_type="1-1" depth="3" bridge_pci="0000:[1a-1a]" pci_busid="0000:18:01.0" pci_type="0604 [10b5:9781] [10b5:9781] b0" pci_link_speed="7.876923">
       <object type="PCIDev" gp_index="16" pci_busid="0000:1a:00.0" pci_type="0200 [15b3:1013] [15b3:0013] 00" pci_link_speed="7.876923">
        <object type="OSDev" gp_index="17" name="eth0" osdev_type="2"/>
       </object>
       <object type="PCIDev" gp_index="18" pci_busid="0000:1a:00.1" pci_type="0200 [15b3:1013] [15b3:0013] 00" pci_link_speed="7.876923">
        <object type="OSDev" gp_index="19" name="eth1" osdev_type="2"/>
       </object>
      </object>
      <object type="Bridge" gp_index="20" bridge_type="1-1" depth="3" bridge_pci="0000:[1b-1b]" pci_busid="0000:18:02.0" pci_type="0604 [10b5:9781] [10b5:9781] b0" pci_link_speed="0.5">
       <object type="PCIDev" gp_index="21" pci_busid="0000:1b:00.0" pci_type="0107 [1000:0072] [1000:3080] 03" pci_link_speed="0.5"/>
      </object>
     </object>
    </object>
   </object>
  </object>
 </object>
</topology>
)";

TEST(HwlocTree, ASwitchIsOneObjectAndPortsAreNone) {
  const Topology t = tree_of(from_xml(k_switch_xml));
  // bridge0: host bridge; bridge1: the switch; bridge2: the port of the card.
  EXPECT_EQ(t.of_kind(ObjectKind::host_bridge).size(), 1U);
  EXPECT_EQ(t.of_kind(ObjectKind::pci_bridge).size(), 2U);
  EXPECT_EQ(parent_of(t, "m0/bridge1"), "m0/bridge0");
  EXPECT_EQ(t.find("m0/bridge1")->pci_address, "0000:17:00.0");
  EXPECT_EQ(parent_of(t, "m0/gpu0"), "m0/bridge1");
  EXPECT_EQ(parent_of(t, "m0/bridge2"), "m0/bridge1");
  EXPECT_EQ(t.find("m0/bridge2")->pci_address, "");
  EXPECT_NEAR(*t.find("m0/bridge2")->pcie_bytes_per_second, 7.877e9, 1e6);
  EXPECT_EQ(parent_of(t, "m0/nic0"), "m0/bridge2");
  EXPECT_EQ(parent_of(t, "m0/nic1"), "m0/bridge2");
}

TEST(HwlocTree, AnNvSwitchWithoutAClassIsOneAllTheSame) {
  // As in hwloc's record of a DGX-2, where one of twelve says nothing of itself.
  std::string xml = k_switch_xml;
  const std::string storage =
      R"(pci_type="0107 [1000:0072] [1000:3080] 03" pci_link_speed="0.5"/>)";
  xml.replace(xml.find(storage), storage.size(),
              R"(subtype="NVSwitch" pci_type="0680 [10de:1ac2] [0000:0000] a1" pci_link_speed="1"/>
       <object type="PCIDev" gp_index="22" subtype="NVSwitch" pci_busid="0000:1b:00.1" pci_type="0000 [0000:0000] [0000:0000] 00" pci_link_speed="1"/>)");
  const Topology t = tree_of(from_xml(xml.c_str()));
  EXPECT_EQ(t.find("m0/nvswitch0")->name, "2 x NVSwitch");
}

TEST(HwlocTree, PcieLinksAreReadFromBothEnds) {
  const std::string base = "/sys/bus/pci/devices/0000:";
  const Topology t =
      tree_of(from_xml(k_switch_xml),
              test::files({{base + "19:00.0/current_link_speed", "8.0 GT/s PCIe"},
                           {base + "19:00.0/current_link_width", "8"},
                           {base + "19:00.0/max_link_speed", "32.0 GT/s PCIe"},
                           {base + "19:00.0/max_link_width", "16"},
                           {base + "18:00.0/max_link_speed", "16.0 GT/s PCIe"}, // the port above it
                           {base + "18:00.0/max_link_width", "16"},
                           {base + "17:00.0/current_link_speed", "Unknown"},
                           {base + "17:00.0/current_link_width", "0"}}));
  EXPECT_EQ(t.find("m0/gpu0")->pcie, (PcieLink{8e9, 8}));
  EXPECT_EQ(t.find("m0/gpu0")->pcie_possible, (PcieLink{16e9, 16})); // the slower end decides
  EXPECT_EQ(t.find("m0/gpu0")->pcie_bytes_per_second, std::nullopt);
  EXPECT_EQ(t.find("m0/bridge1")->pcie, std::nullopt);
}

} // namespace
} // namespace reckon
