// SPDX-License-Identifier: Apache-2.0
#include "discover/topology_file.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>
#include <map>
#include <string>
#include <vector>

namespace reckon {
namespace {

using ::testing::ElementsAre;

using Files = std::map<std::string, std::string>;

/// Two cards' worth of functions: a port's has one PCIe link in each of two domains, as in a DGX
/// Spark, where devices 0 and 1 are functions of one slot, and 2 and 3 of the other.
constexpr std::array<const char*, 4> k_functions{"0000:01:00.0", "0000:01:00.1", "0002:01:00.0",
                                                 "0002:01:00.1"};
std::string net(int device, const char* file) {
  return fmt::format("/sys/class/net/eth{}/{}", device, file);
}
std::string rdma(int device) {
  return fmt::format("/sys/class/infiniband/mlx5_{}/sys_image_guid", device);
}

/// The cables of the four, as a machine's record and its files say; "-": none.
std::vector<std::string> cables(const Files& files) {
  std::string xml = R"(<topology version="2.0">
 <object type="Machine" os_index="0" cpuset="0x1" complete_cpuset="0x1" allowed_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" allowed_nodeset="0x1" gp_index="1">
  <object type="NUMANode" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="3" local_memory="1073741824"/>
  <object type="PU" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="5"/>)";
  for (std::size_t i = 0; i < k_functions.size(); ++i) {
    const std::string domain(k_functions[i], 4);
    xml +=
        i % 2 == 0
            ? fmt::format(
                  R"(<object type="Bridge" gp_index="{}" bridge_type="0-1" depth="0" bridge_pci="{}:[00-0f]">)",
                  10 + i, domain)
            : "";
    xml += fmt::format(
        R"(<object type="PCIDev" gp_index="{}" pci_busid="{}" pci_type="0200 [15b3:1021] [15b3:0041] 00">
        <object type="OSDev" gp_index="{}" name="eth{}" osdev_type="2"/><object type="OSDev" gp_index="{}" name="mlx5_{}" osdev_type="3"/></object>)",
        20 + i, k_functions[i], 30 + i, i, 40 + i, i);
    xml += i % 2 == 1 ? "</object>" : "";
  }
  const RecordedTopology recorded =
      topology_from_text(xml + "</object></topology>", "f.xml", "m0",
                         [&](const std::string& path) -> std::optional<std::string> {
                           const auto file = files.find(path);
                           return file == files.end() ? std::nullopt : std::optional(file->second);
                         });
  std::vector<std::string> found;
  for (const TopologyObject* nic : recorded.topology.of_kind(ObjectKind::nic)) {
    found.push_back(nic->cable.empty() ? "-" : nic->cable);
  }
  return found;
}

TEST(Cables, FunctionsOfOneNumberInTwoSlotsOfACardShareAPort) {
  Files files;
  for (int i = 0; i < 4; ++i) {
    files[rdma(i)] = "a088:c203:0044:1234";
  }
  EXPECT_THAT(cables(files), ElementsAre("cable0", "cable1", "cable0", "cable1"));
  files[rdma(2)] = files[rdma(3)] = "a088:c203:0044:5678"; // another card
  EXPECT_THAT(cables(files), ElementsAre("-", "-", "-", "-"));
}

TEST(Cables, WhatTheKernelSaysOfAPortDecides) {
  Files files;
  for (int i = 0; i < 4; ++i) {
    files[rdma(i)] = "a088:c203:0044:1234";
    files[net(i, "phys_switch_id")] = "3412440003c288a0";
    files[net(i, "phys_port_name")] = i < 2 ? "p0" : "p1";
  }
  EXPECT_THAT(cables(files), ElementsAre("cable0", "cable0", "cable1", "cable1"));
  files[net(0, "phys_port_id")] = files[net(3, "phys_port_id")] = "001b21aabbcc";
  EXPECT_THAT(cables(files), ElementsAre("cable0", "-", "-", "cable0"));
}

TEST(Cables, AVirtualFunctionIsAtThePortOfItsPhysicalOne) {
  Files files;
  for (int i = 0; i < 4; ++i) {
    files[rdma(i)] = "a088:c203:0044:1234";
  }
  files["/sys/bus/pci/devices/0000:01:00.1/physfn/uevent"] =
      "DRIVER=mlx5_core\nPCI_SLOT_NAME=0002:01:00.0\nMODALIAS=pci";
  EXPECT_THAT(cables(files), ElementsAre("cable0", "cable0", "cable0", "-"));
}

TEST(Cables, AnIdentityOfZeroIsNone) {
  Files files;
  for (int i = 0; i < 4; ++i) {
    files[rdma(i)] = "0000:0000:0000:0000"; // as EFA says
  }
  EXPECT_THAT(cables(files), ElementsAre("-", "-", "-", "-"));
  EXPECT_THAT(cables({}), ElementsAre("-", "-", "-", "-"));
}

// The same card as NCCL records it.
TEST(Cables, NcclsRecordSaysTheSame) {
  std::string xml = R"(<system version="1"><cpu numaid="0">)";
  for (const char* const address : k_functions) {
    xml += fmt::format(
        R"(<pci busid="{0}" class="0x020000"><nic><net name="mlx5" dev="0" speed="200000" port="1" guid="0x{1}"/></nic></pci>)",
        address, "34124403c288a0");
  }
  const RecordedTopology recorded = topology_from_text(xml + "</cpu></system>", "f.xml");
  std::vector<std::string> found;
  for (const TopologyObject* nic : recorded.topology.of_kind(ObjectKind::nic)) {
    found.push_back(nic->cable);
  }
  EXPECT_THAT(found, ElementsAre("cable0", "cable1", "cable0", "cable1"));
}

} // namespace
} // namespace reckon
