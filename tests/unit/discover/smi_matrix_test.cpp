// SPDX-License-Identifier: Apache-2.0
#include "discover/smi_matrix.hpp"

#include "core/error.hpp"
#include "discover/topology_file.hpp"
#include "support/messages.hpp"
#include "topology/gpu_models.hpp"
#include "topology/paths.hpp"

#include <gmock/gmock.h>

#include <string>

namespace reckon {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

/// Four GPUs on NVSwitches; NIC0 beside GPU0, NIC1 beside GPU2. The head is underlined, as on a
/// terminal.
const std::string k_hopper =
    "\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA "
    "ID\x1b[0m\n"
    "GPU0\t X \tNV18\tNV18\tNV18\tPIX\tSYS\t0-47,96-143\t0\t\tN/A\n"
    "GPU1\tNV18\t X \tNV18\tNV18\tSYS\tSYS\t0-47,96-143\t0\t\tN/A\n"
    "GPU2\tNV18\tNV18\t X \tNV18\tSYS\tPIX\t48-95,144-191\t1\t\tN/A\n"
    "GPU3\tNV18\tNV18\tNV18\t X \tSYS\tSYS\t48-95,144-191\t1\t\tN/A\n"
    "NIC0\tPIX\tSYS\tSYS\tSYS\t X \tSYS\t\t\t\t\n"
    "NIC1\tSYS\tSYS\tPIX\tSYS\tSYS\t X \t\t\t\t\n"
    "\nLegend:\n\n  X    = Self\n\nNIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n";

std::string between(const Topology& topology, const char* a, const char* b,
                    bool without_peer_links = false) {
  return path_between(topology, std::string("m0/") + a, std::string("m0/") + b, without_peer_links)
      .text();
}

TEST(SmiMatrix, IsReadAsTheTreeThatItImplies) {
  ASSERT_TRUE(is_smi_matrix(k_hopper));
  const Topology topology = topology_from_smi_matrix(k_hopper, "topo.txt", "m0").topology;
  EXPECT_THAT(topology.ids_in("m0", ObjectKind::gpu), SizeIs(4));
  EXPECT_EQ(between(topology, "gpu0", "nic0"), "PIX");
  EXPECT_EQ(between(topology, "gpu2", "nic1"), "PIX");
  EXPECT_EQ(between(topology, "gpu0", "nic1"), "SYS");
  EXPECT_EQ(between(topology, "gpu1", "gpu3"), "NV18");
  EXPECT_EQ(between(topology, "gpu0", "gpu2", true), "SYS");
  EXPECT_EQ(topology.find("m0/nic1")->name, "mlx5_1");
  EXPECT_EQ(topology.find("m0/numa1")->os_index, 1);
  // 18 links to each of three others would be 54: they lead to switches.
  ASSERT_THAT(topology.of_kind(ObjectKind::link_switch), SizeIs(1));
  EXPECT_THAT(topology.links, SizeIs(4));
  EXPECT_EQ(topology.links[0].count, 18);
}

TEST(SmiMatrix, HasTheDistancesThatItWasMadeFrom) {
  // Two GPUs below one switch, two below two switches of one switch, one elsewhere on the node.
  const std::string text = "      GPU0 GPU1 GPU2 GPU3 mlx5_0 CPU Affinity NUMA Affinity\n"
                           "GPU0   X   PIX  PXB  NODE  PHB   0-31 0\n"
                           "GPU1  PIX   X   PXB  NODE  PHB   0-31 0\n"
                           "GPU2  PXB  PXB   X   NODE  PHB   0-31 0\n"
                           "GPU3  NODE NODE NODE  X    NODE  0-31 0\n"
                           "mlx5_0 PHB PHB  PHB  NODE   X\n";
  const Topology topology = topology_from_smi_matrix(text, "topo.txt", "m0").topology;
  EXPECT_EQ(between(topology, "gpu0", "gpu1"), "PIX");
  EXPECT_EQ(between(topology, "gpu0", "gpu2"), "PXB");
  EXPECT_EQ(between(topology, "gpu1", "gpu3"), "NODE");
  EXPECT_EQ(between(topology, "gpu2", "nic0"), "PHB");
  EXPECT_EQ(between(topology, "gpu3", "nic0"), "NODE");
  EXPECT_EQ(topology.find("m0/nic0")->name, "mlx5_0");
}

TEST(SmiMatrix, NvlinksThatAGpuCanHaveLeadToOtherGpus) {
  // Four GPUs with six links to each other: 18 of each.
  const std::string text = "GPU0 GPU1 GPU2 GPU3 CPU Affinity NUMA Affinity\n"
                           "GPU0 X NV6 NV6 NV6 0-71 0\nGPU1 NV6 X NV6 NV6 0-71 0\n"
                           "GPU2 NV6 NV6 X NV6 72-143 1\nGPU3 NV6 NV6 NV6 X 72-143 1\n";
  Topology topology = topology_from_smi_matrix(text, "topo.txt", "m0").topology;
  EXPECT_THAT(topology.of_kind(ObjectKind::link_switch), SizeIs(0));
  ASSERT_THAT(topology.links, SizeIs(6));
  complete_nvlinks(topology, "m0", "NVIDIA GH200 120GB");
  EXPECT_EQ(topology.links[0].bytes_per_second, 150e9);
}

TEST(SmiMatrix, TheModelDecidesOnRatesAndOnSumsInTheSwitch) {
  for (const auto& [name, rate, sums] :
       {std::tuple("NVIDIA H100 80GB HBM3", 450e9, true), std::tuple("NVIDIA B200", 900e9, true)}) {
    Topology topology = topology_from_smi_matrix(k_hopper, "topo.txt", "m0").topology;
    EXPECT_FALSE(topology.links[0].bytes_per_second);
    complete_nvlinks(topology, "m0", name);
    EXPECT_EQ(topology.links[0].bytes_per_second, rate);
    EXPECT_EQ(topology.of_kind(ObjectKind::link_switch)[0]->sums, sums);
  }
  Topology unknown = topology_from_smi_matrix(k_hopper, "topo.txt", "m0").topology;
  complete_nvlinks(unknown, "m0", "a GPU of tomorrow");
  EXPECT_FALSE(unknown.links[0].bytes_per_second);
  EXPECT_FALSE(unknown.of_kind(ObjectKind::link_switch)[0]->sums);
}

/// `from` and all that stands before and after it, with `to` in its place.
std::string hopper_with(const std::string& from, const std::string& to) {
  std::string text = k_hopper;
  text.replace(text.find(from), from.size(), to);
  return text;
}

TEST(SmiMatrix, CellsThatContradictEachOtherAreRemarkedAndTheWorseOneCounts) {
  EXPECT_THAT(topology_from_smi_matrix(k_hopper, "topo.txt", "m0").remarks, SizeIs(0));
  // Row 4 alone says that 17 links of GPU 3 work; one pair of the six is GPU 3's with GPU 0.
  const RecordedTopology down = topology_from_smi_matrix(
      hopper_with("GPU3\tNV18\tNV18\tNV18", "GPU3\tNV17\tNV17\tNV17"), "topo.txt", "m0");
  ASSERT_THAT(down.remarks, SizeIs(1));
  EXPECT_THAT(down.remarks[0], test::Says("topo.txt: line 2: GPU0 has NV18 to GPU3"));
  EXPECT_THAT(down.remarks[0], ::testing::HasSubstr("NV17 to GPU0 in line 5"));
  EXPECT_EQ(down.topology.links[0].count, 18);
  EXPECT_EQ(down.topology.links[3].count, 17);
  // NIC 0 is below GPU 0's switch in one row only: not nearer than the other says.
  const RecordedTopology far =
      topology_from_smi_matrix(hopper_with("NV18\tPIX\tSYS", "NV18\tNODE\tSYS"), "topo.txt", "m0");
  EXPECT_THAT(far.remarks, SizeIs(1));
  EXPECT_EQ(between(far.topology, "gpu0", "nic0"), "NODE");
}

TEST(SmiMatrix, IsReadOutOfAQuotation) {
  std::string quoted = "> ";
  for (const char c : k_hopper) {
    quoted += c == '\n' ? "\n> " : std::string(1, c);
  }
  const RecordedTopology plain = topology_from_text(k_hopper, "topo.txt");
  EXPECT_EQ(topology_from_text(quoted, "topo.txt").topology, plain.topology);
  EXPECT_EQ(plain.format, k_smi_matrix_format);
}

std::string refusal_of(const std::string& text) {
  try {
    static_cast<void>(topology_from_text(text, "topo.txt"));
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(SmiMatrix, OtherTextsAreCalledWhatTheyAre) {
  EXPECT_THAT(refusal_of(" \n"), test::Says("empty"));
  EXPECT_THAT(refusal_of("# a log\n"), test::Says("neither"));
  EXPECT_THAT(refusal_of(" \tGPU0\tGPU1\n GPU0\tX\tOK\n GPU1\tOK\tX\n"), test::Says("-p2p"));
}

TEST(SmiMatrix, IsRefusedWithTheLine) {
  const auto refusal = [](const std::string& from, const std::string& to) {
    return refusal_of(hopper_with(from, to));
  };
  EXPECT_THAT(refusal("NV18\tNV18\tNV18\tPIX", "NV18\tNV18\tNV18\tNEAR"), test::Says("topo.txt:2"));
  EXPECT_THAT(refusal("X \tNV18", "X \tNV2147483647"), test::Says("topo.txt:2"));
  EXPECT_THAT(refusal("GPU3\tNV18", "GPU7\tNV18"), test::Says("topo.txt:5"));
  EXPECT_THAT(refusal("NIC1\tSYS\tSYS\tPIX\tSYS\tSYS\t X \t\t\t\t\n\nLegend", "\nLegend"),
              test::Says("NIC1"));
}

} // namespace
} // namespace reckon
