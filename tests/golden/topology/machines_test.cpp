// SPDX-License-Identifier: Apache-2.0
// Recorded machines (machines/, README.md says where each is from). What is expected of each was
// written down by looking at its file: which NUMA node and which switches each endpoint hangs from,
// and which GPUs are joined. The classes follow from that by their definitions.
#include "discover/topology_file.hpp"
#include "topology/paths.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

namespace reckon {
namespace {

using ::testing::ElementsAreArray;

/// Endpoints and what they hang from, the NUMA node first, then switches from above: an endpoint
/// of {"numa0", "bridge0", "bridge1"} is below bridge1, which is below bridge0.
using Place = std::vector<std::string>;
struct Machine {
  std::string file, format;
  std::map<std::string, Place> places;
  std::map<std::pair<std::string, std::string>, int> joined; ///< NVLinks or xGMI links
  std::string within = "PHB"; ///< of ends of one NUMA node that share no switch
  std::vector<std::string> with_nic, gpus_only;
  std::size_t remarks = 0;
};

void PrintTo(const Machine& m, std::ostream* out) {
  *out << m.file;
}

std::string expected_class(const Machine& m, const std::string& a, const std::string& b) {
  if (a == b) {
    return "X";
  }
  for (const auto& pair : {std::pair(a, b), std::pair(b, a)}) {
    if (const auto it = m.joined.find(pair); it != m.joined.end()) {
      return "NV" + std::to_string(it->second);
    }
  }
  const Place& x = m.places.at(a);
  const Place& y = m.places.at(b);
  if (x.front() != y.front()) {
    return "SYS";
  }
  std::size_t common = 0;
  while (common < x.size() && common < y.size() && x[common] == y[common]) {
    ++common;
  }
  if (common > 1) { // the lowest common switch and those below it
    return x.size() - common + y.size() - common + 1 <= 1 ? "PIX" : "PXB";
  }
  return x.size() == 1 && y.size() == 1 && (a == x.front() || b == y.front()) ? "PHB" : m.within;
}

std::string id(const std::string& kind, int number) {
  return kind + std::to_string(number);
}

std::vector<Machine> machines() {
  std::vector<Machine> all;
  {
    // Four switches of two GPUs and a NIC, two at each processor.
    Machine m{"aws-p4d", "NCCL topology XML, version 1", {}, {}, "PHB", {}, {}, 0};
    for (int s = 0; s < 4; ++s) {
      const Place below{id("numa", s / 2), id("bridge", s)};
      m.places[id("gpu", 2 * s)] = m.places[id("gpu", 2 * s + 1)] = below;
      m.places[id("nic", s)] = below;
      m.with_nic.push_back(id("bridge", s));
    }
    all.push_back(m);
  }
  {
    // One NUMA node, eight switches of a GPU and four NICs.
    Machine m{"aws-p5", "NCCL topology XML, version 1", {}, {}, "PHB", {}, {}, 0};
    for (int s = 0; s < 8; ++s) {
      const Place below{"numa0", id("bridge", s)};
      m.places[id("gpu", s)] = below;
      for (int n = 4 * s; n < 4 * s + 4; ++n) {
        m.places[id("nic", n)] = below;
      }
      m.with_nic.push_back(id("bridge", s));
    }
    all.push_back(m);
  }
  {
    // Four NUMA nodes with one switch each, which has two GPUs and two NICs.
    Machine m{"azure-ndv4", "NCCL topology XML, version 1", {}, {}, "PHB", {}, {}, 0};
    for (int s = 0; s < 4; ++s) {
      const Place below{id("numa", s), id("bridge", s)};
      for (int n = 2 * s; n < 2 * s + 2; ++n) {
        m.places[id("gpu", n)] = m.places[id("nic", n)] = below;
      }
      m.with_nic.push_back(id("bridge", s));
    }
    all.push_back(m);
  }
  {
    // Four GPUs at each of two processors without switches, the NIC at the first.
    Machine m{"azure-ndv2", "NCCL topology XML, version 1", {}, {}, "PHB", {}, {}, 0};
    for (int g = 0; g < 8; ++g) {
      m.places[id("gpu", g)] = {id("numa", g / 4)};
      m.gpus_only.push_back(id("gpu", g));
    }
    m.places["nic0"] = {"numa0"};
    all.push_back(m);
  }
  {
    // A GPU at each of four NUMA nodes, Ethernet that is not on the PCI bus at the first. Each GPU
    // is said to have NVLinks to itself, which are no way to anywhere.
    Machine m{"azure-ncv4", "NCCL topology XML, version 1", {}, {}, "PHB", {}, {}, 4};
    for (int g = 0; g < 4; ++g) {
      m.places[id("gpu", g)] = {id("numa", g)};
      m.gpus_only.push_back(id("gpu", g));
    }
    m.places["nic0"] = {"numa0"};
    all.push_back(m);
  }
  {
    // Each GPU below a switch of its own (on its card), NICs directly at the processors. The GPUs
    // 63, 43, 24, 03, e3, c3, a3, 83 are 0 to 7 and name all others but 63-c3, 43-e3, 24-83, 03-a3.
    Machine m{"amd-mi100-8p6l-4nic", "RCCL topology XML, version 2", {}, {}, "PHB", {}, {}, 0};
    for (int g = 0; g < 8; ++g) {
      m.places[id("gpu", g)] = {id("numa", g / 4), id("bridge", g)};
      m.gpus_only.push_back(id("bridge", g));
      for (int other = g + 1; other < 8; ++other) {
        const auto pair = std::pair(g, other);
        if (pair != std::pair(0, 5) && pair != std::pair(1, 4) && pair != std::pair(2, 7) &&
            pair != std::pair(3, 6)) {
          m.joined[{id("gpu", g), id("gpu", other)}] = 1;
        }
      }
    }
    for (int n = 0; n < 4; ++n) {
      m.places[id("nic", n)] = {id("numa", n / 2)};
    }
    all.push_back(m);
  }
  {
    // NUMA nodes stand in the file as 1, 0, 2, 3. Two rings of four over xGMI:
    // 03-43-26-c6 (0, 1, 2, 6) and 23-c3-a3-83 (5, 3, 7, 4).
    Machine m{"amd-mi50-rome", "RCCL topology XML, version 2", {}, {}, "PHB", {}, {}, 0};
    m.places = {{"gpu1", {"numa0", "bridge0"}},
                {"gpu0", {"numa1", "bridge1"}},
                {"gpu2", {"numa1", "bridge2"}},
                {"gpu5", {"numa1", "bridge3"}},
                {"gpu3", {"numa2", "bridge4"}},
                {"gpu6", {"numa2", "bridge5"}},
                {"nic0", {"numa2"}},
                {"gpu4", {"numa3", "bridge6"}},
                {"gpu7", {"numa3", "bridge7"}}};
    for (const auto& [a, b] : std::vector<std::pair<int, int>>{
             {0, 1}, {1, 2}, {2, 6}, {0, 6}, {3, 5}, {3, 7}, {4, 7}, {4, 5}}) {
      m.joined[{id("gpu", a), id("gpu", b)}] = 1;
    }
    for (int s = 0; s < 8; ++s) {
      m.gpus_only.push_back(id("bridge", s));
    }
    all.push_back(m);
  }
  {
    // Two switches at processor 0 (all that the file has), each with four GPUs that are below a
    // switch on their card; the NIC at the first: the asymmetric case of BytePS. xGMI joins each
    // four to a square: 1d-20, 1d-23, 20-26, 23-26 and 3f-43, 3f-46, 43-49, 46-49.
    Machine m{"amd-mi50-switches", "RCCL topology XML, version 2", {}, {}, "PHB", {}, {}, 0};
    for (int g = 0; g < 8; ++g) {
      const int top = g < 4 ? 0 : 5;
      m.places[id("gpu", g)] = {"numa0", id("bridge", top), id("bridge", top + 1 + g % 4)};
    }
    m.places["nic0"] = {"numa0", "bridge0"};
    for (const int base : {0, 4}) {
      for (const auto& [a, b] : std::vector<std::pair<int, int>>{{0, 1}, {0, 2}, {1, 3}, {2, 3}}) {
        m.joined[{id("gpu", base + a), id("gpu", base + b)}] = 1;
      }
    }
    m.with_nic = {"bridge0"};
    m.gpus_only = {"bridge5"};
    all.push_back(m);
  }
  {
    // NUMA nodes in the file: 3, 1, 0, 2. The two dies of a card have 4 links, others 1 or 2.
    Machine m{"amd-mi250", "RCCL topology XML, version 2", {}, {}, "PHB", {}, {}, 0};
    m.places = {
        {"gpu4", {"numa0"}}, {"gpu5", {"numa0"}}, {"nic0", {"numa0", "bridge0"}},
        {"gpu2", {"numa1"}}, {"gpu3", {"numa1"}}, {"gpu6", {"numa2"}},
        {"gpu7", {"numa2"}}, {"gpu0", {"numa3"}}, {"gpu1", {"numa3"}}}; // vethe2d5378 is no NIC
    for (const auto& [a, b, count] : std::vector<std::tuple<int, int, int>>{{0, 1, 4},
                                                                            {0, 2, 1},
                                                                            {0, 6, 2},
                                                                            {1, 3, 1},
                                                                            {1, 5, 1},
                                                                            {2, 3, 4},
                                                                            {2, 4, 2},
                                                                            {3, 7, 1},
                                                                            {4, 5, 4},
                                                                            {4, 6, 1},
                                                                            {5, 7, 1},
                                                                            {6, 7, 4}}) {
      m.joined[{id("gpu", a), id("gpu", b)}] = count;
    }
    m.gpus_only = {"gpu4", "gpu5", "gpu2", "gpu3", "gpu6", "gpu7", "gpu0", "gpu1"};
    all.push_back(m);
  }
  {
    // Two GPUs at each processor, below root ports of host bridges of their own (domains 2, 3, a,
    // b). NVLinkBandwidth: 40 GB/s = 2 NVLinks of 20 GB/s between the two GPUs of a processor and
    // from each to that processor.
    Machine m{"ibm-power8-p100", "hwloc XML 2.0", {}, {}, "NODE", {}, {}, 0};
    for (int g = 0; g < 4; ++g) {
      m.places[id("gpu", g)] = {id("numa", g / 2)};
      m.joined[{id("gpu", g), id("numa", g / 2)}] = 2;
      m.gpus_only.push_back(id("gpu", g));
    }
    m.joined[{"gpu0", "gpu1"}] = m.joined[{"gpu2", "gpu3"}] = 2;
    all.push_back(m);
  }
  {
    // Four processors, each with a card of two Ethernet ports (functions 0 and 1 of one slot:
    // 02:00, 32:00, 62:00, 92:00) and no GPU: the ES1000 at 01:00.0 is a frame buffer.
    Machine m{"ibm-x3850m2", "hwloc XML 2.0", {}, {}, "PHB", {}, {}, 0};
    for (int n = 0; n < 8; ++n) {
      m.places[id("nic", n)] = {id("numa", n / 2), "card" + std::to_string(n / 2)};
    }
    all.push_back(m);
  }
  for (Machine& m : all) { // the memories themselves
    for (const auto& [end, place] : std::map(m.places)) {
      m.places[place.front()] = {place.front()};
    }
  }
  return all;
}

class RecordedMachine : public ::testing::TestWithParam<Machine> {
protected:
  const Machine& m() const { return GetParam(); }
  RecordedTopology recorded = read_topology_file(
      std::string(RECKON_SOURCE_DIR) + "/tests/golden/topology/machines/" + m().file + ".xml");
};

TEST_P(RecordedMachine, HasTheseEndpointsAndPaths) {
  const Topology& t = recorded.topology;
  EXPECT_EQ(recorded.format, m().format);
  EXPECT_EQ(recorded.remarks.size(), m().remarks);
  std::vector<std::string> ends = endpoints_of(t, "m0");
  std::vector<std::string> expected;
  for (const auto& [end, place] : m().places) {
    expected.push_back("m0/" + end);
  }
  EXPECT_THAT(ends, ::testing::UnorderedElementsAreArray(expected));
  for (const auto& [from, place] : m().places) {
    for (const auto& [to, other] : m().places) {
      const Path path = path_between(t, "m0/" + from, "m0/" + to);
      EXPECT_EQ(path.text(), expected_class(m(), from, to)) << from << " " << to;
      if (from != to) { // the links lead from one end to the other
        ASSERT_FALSE(path.links.empty());
        EXPECT_EQ(path.links.front().from, "m0/" + from);
        EXPECT_EQ(path.links.back().to, "m0/" + to);
        for (std::size_t i = 1; i < path.links.size(); ++i) {
          EXPECT_EQ(path.links[i - 1].to, path.links[i].from);
        }
      }
    }
  }
}

TEST_P(RecordedMachine, HasTheseSwitches) {
  const auto whole = [](std::vector<std::string> ids) {
    for (std::string& one : ids) {
      one = "m0/" + one;
    }
    return ids;
  };
  const SwitchCensus census = switch_census(recorded.topology, "m0");
  EXPECT_THAT(census.with_nic, ElementsAreArray(whole(m().with_nic)));
  EXPECT_THAT(census.gpus_only, ElementsAreArray(whole(m().gpus_only)));
}

INSTANTIATE_TEST_SUITE_P(Recorded, RecordedMachine, ::testing::ValuesIn(machines()),
                         [](const auto& recorded) {
                           std::string name = recorded.param.file;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(RecordedRates, AreThoseOfTheFileAndOfTheVendor) {
  const auto load = [](const std::string& name) {
    return read_topology_file(std::string(RECKON_SOURCE_DIR) + "/tests/golden/topology/machines/" +
                              name + ".xml")
        .topology;
  };
  const Topology p5 = load("aws-p5"); // "16.0 GT/s PCIe" x 16, x 8
  EXPECT_EQ(p5.find("m0/bridge0")->pcie, (PcieLink{16e9, 16}));
  EXPECT_EQ(p5.find("m0/gpu0")->pcie, (PcieLink{32e9, 16}));
  EXPECT_EQ(p5.find("m0/nic0")->pcie, (PcieLink{16e9, 8}));
  EXPECT_EQ(p5.find("m0/nic0")->link_bytes_per_second, 12.5e9); // 100000 Mbit/s
  EXPECT_EQ(p5.find("m0/nic0")->name, "rdmap79s0");
  EXPECT_EQ(p5.find("m0/numa0")->cpus.size(), 48U); // 0000ffff,ffffffff
  const Topology ncv4 = load("azure-ncv4");         // link_speed="" link_width="0"
  EXPECT_EQ(ncv4.find("m0/gpu0")->pcie, std::nullopt);
  EXPECT_TRUE(ncv4.links.empty());
  // The mask 00000000,0000ffff,ff000000: 24 processors from 24 on.
  EXPECT_EQ(ncv4.find("m0/numa1")->cpus.front(), 24);
  EXPECT_EQ(ncv4.find("m0/numa1")->cpus.back(), 47);
  const Topology mi250 = load("amd-mi250"); // 4 xGMI links of 50 GB/s
  EXPECT_EQ(described_bytes_per_second(mi250, {"m0/gpu0", "m0/gpu1"}), 200e9);
  const Topology power = load("ibm-power8-p100");
  EXPECT_EQ(described_bytes_per_second(power, {"m0/gpu1", "m0/gpu0"}), 40e9);
  EXPECT_EQ(described_bytes_per_second(power, {"m0/gpu0", "m0/numa0"}), 40e9);
  EXPECT_EQ(power.find("m0/gpu0")->parent, "m0/bridge0"); // no port between
  EXPECT_NEAR(*power.find("m0/gpu0")->pcie_bytes_per_second, 15.75e9, 0.01e9);
}

} // namespace
} // namespace reckon
