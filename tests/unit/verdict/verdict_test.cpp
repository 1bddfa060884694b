// SPDX-License-Identifier: Apache-2.0
#include "verdict/verdict.hpp"

#include "discover/topology_file.hpp"
#include "documents/cells.hpp"
#include "documents/document.hpp"
#include "support/messages.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace reckon {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

/// "link m0/gpu3 PCIe link: 3.0 x16, 4.0 x16", or of numbers the share in percent.
std::string text(const Finding& f) {
  return fmt::format("{} {} {}: {}", name_of(f.kind), f.place, f.what,
                     f.value.number ? fmt::format("{:.0f} %", 100 * f.share)
                                    : fmt::format("{}, {}", f.value.text, f.expected.text));
}

std::vector<std::string> findings(const Verdict& verdict) {
  std::vector<std::string> out;
  for (const Finding& f : verdict.findings) {
    out.push_back(text(f));
    EXPECT_FALSE(f.remedy.empty()) << out.back();
  }
  return out;
}

std::vector<std::string> found(const Profile& profile) {
  return findings(judge(profile));
}

Profile recorded(const std::string& file) {
  Profile profile;
  profile.name = file;
  profile.topology =
      read_topology_file(RECKON_SOURCE_DIR "/tests/golden/topology/machines/" + file).topology;
  profile.machines.push_back({.id = "m0"});
  return profile;
}

TopologyObject& part(Profile& profile, const std::string& id) {
  const auto at = std::ranges::find(profile.topology.objects, id, &TopologyObject::id);
  EXPECT_NE(at, profile.topology.objects.end()) << id;
  return *at;
}

/// 30 samples of one rate or time, evenly over +- 1 %.
Cell& measure(Profile& profile, const std::string& test, const std::string& from,
              const std::string& to, double value) {
  Cell& cell = profile.cells.emplace_back();
  cell.key.test = test;
  cell.key.from = from;
  cell.key.to = to;
  const bool time = test == k_memory_latency || test == k_pair_latency;
  cell.unit = time ? k_seconds : k_bytes_per_second;
  cell.bytes_convention = time ? "" : "payload";
  for (int i = 0; i < 30; ++i) {
    cell.samples.push_back(value * (0.99 + 0.02 * ((7 * i) % 30) / 29));
  }
  summarize_cell(cell);
  return cell;
}

/// Two processors with four GPUs and four NICs each, NVSwitches, PCIe 4.0 x16, ports of 200 Gb/s;
/// every part measured.
Profile dgx() {
  Profile p;
  p.name = "dgx";
  p.machines.push_back({.id = "m0", .cores = 128});
  auto& objects = p.topology.objects;
  objects.push_back({.id = "m0"});
  for (int n = 0; n < 2; ++n) {
    const std::string numa = fmt::format("m0/numa{}", n);
    objects.push_back(
        {.id = fmt::format("m0/pkg{}", n), .kind = ObjectKind::package, .parent = "m0"});
    objects.push_back({.id = numa,
                       .kind = ObjectKind::numa_node,
                       .parent = fmt::format("m0/pkg{}", n),
                       .bytes = 512ULL << 30U,
                       .cpus = {2 * n, 2 * n + 1}});
    measure(p, k_stream_copy, numa, "", 200e9);
    measure(p, k_memory_latency, numa, numa, 100e-9);
    for (int i = 4 * n; i < 4 * n + 4; ++i) {
      const std::string sw = fmt::format("m0/bridge{}", i);
      objects.push_back({.id = sw, .kind = ObjectKind::pci_bridge, .parent = numa});
      const std::string gpu = fmt::format("m0/gpu{}", i);
      objects.push_back({.id = gpu,
                         .kind = ObjectKind::gpu,
                         .parent = sw,
                         .name = "NVIDIA A100-SXM4-40GB",
                         .pci_address = fmt::format("0000:{:02x}:00.0", 16 + i),
                         .pcie = PcieLink{16e9, 16},
                         .pcie_possible = PcieLink{16e9, 16}});
      objects.push_back({.id = fmt::format("m0/nic{}", i),
                         .kind = ObjectKind::nic,
                         .parent = sw,
                         .name = fmt::format("mlx5_{}", i),
                         .pci_address = fmt::format("0000:{:02x}:00.0", 32 + i),
                         .link_bytes_per_second = 25e9,
                         .pcie = PcieLink{16e9, 16},
                         .pcie_possible = PcieLink{16e9, 16}});
      measure(p, k_host_to_device_ce, numa, gpu, 25e9).key.state = "pinned";
      measure(p, k_device_local_copy, gpu, gpu, 600e9);
    }
  }
  objects.push_back({.id = "m0/nvswitch0", .kind = ObjectKind::link_switch, .parent = "m0"});
  for (int i = 0; i < 8; ++i) {
    p.topology.links.push_back({.from = fmt::format("m0/gpu{}", i),
                                .to = "m0/nvswitch0",
                                .count = 12,
                                .bytes_per_second = 300e9});
    for (int j = 0; j < 8; ++j) {
      if (i != j) {
        measure(p, k_device_write_ce, fmt::format("m0/gpu{}", i), fmt::format("m0/gpu{}", j), 250e9)
            .key.state = "peer";
      }
    }
  }
  return p;
}

/// Every cell with this end is slower.
void slow_down(Profile& profile, const std::string& id, double factor) {
  for (Cell& cell : profile.cells) {
    if (cell.key.from == id || cell.key.to == id) {
      for (double& sample : cell.samples) {
        sample *= cell.unit == k_seconds ? 1 / factor : factor;
      }
      if (cell.samples.empty()) {
        cell.min = cell.p50 = cell.p99 = cell.max = cell.p50 * factor;
      } else {
        summarize_cell(cell);
      }
    }
  }
}

TEST(Verdict, IsSilentOnEveryShippedMachine) {
  for (const std::string& name : shipped_profiles()) {
    EXPECT_THAT(found(read_profile(name)), IsEmpty()) << name;
  }
  EXPECT_THAT(shipped_profiles(), SizeIs(::testing::Ge(7U)));
}

TEST(Verdict, IsSilentOnEveryRecordedMachine) {
  std::size_t machines = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(RECKON_SOURCE_DIR "/tests/golden/topology/machines")) {
    EXPECT_THAT(found(recorded(entry.path().filename().string())), IsEmpty()) << entry.path();
    ++machines;
  }
  EXPECT_GE(machines, 11U);
}

TEST(Verdict, IsSilentOnAMachineWhosePartsAreAlike) {
  const Verdict verdict = judge(dgx());
  EXPECT_THAT(findings(verdict), IsEmpty());
  EXPECT_TRUE(verdict.passed());
  // Of each GPU: PCIe, NVLinks of its model, and their number and rate beside the others'; of each
  // NIC: PCIe and port; of the nodes their memory.
  EXPECT_EQ(verdict.checks.at(FindingKind::link), 8U * 4 + 8U * 2 + 2);
  EXPECT_EQ(verdict.checks.at(FindingKind::data), 2U * 2 + 8U * 2 + 56);
}

TEST(Verdict, SaysWhatDisturbedTheProfileAndItsBaseline) {
  Profile now, before;
  EXPECT_THAT(judge(now, {.baseline = &before}).disturbed, IsEmpty());
  now.context["disturbed"] = "other processes used 0.8 of 2 processors";
  before.context["disturbed"] = "other processes used 1.1 of 2 processors";
  EXPECT_THAT(judge(now).disturbed, ElementsAre("other processes used 0.8 of 2 processors"));
  EXPECT_THAT(judge(now, {.baseline = &before, .baseline_name = "old.json"}).disturbed,
              ElementsAre("other processes used 0.8 of 2 processors",
                          "other processes used 1.1 of 2 processors during old.json"));
}

TEST(Verdict, SaysWhereAProfileContradictsItself) {
  Profile profile = dgx();
  Cell& halves = measure(profile, k_bisection_random, "", "", 116);
  halves.ceiling = Ceiling{"the ports", 100};
  EXPECT_THAT(found(profile),
              ElementsAre("contradiction " + profile.name + " bisection_random: 86 %"));
}

struct Fault {
  const char* name;
  std::function<Profile()> machine;
  std::function<void(Profile&)> break_it;
  std::vector<std::string> expected;
};

const std::vector<Fault>& faults() {
  static const std::vector<Fault> all{
      {"a GPU's PCIe link lost half of its lanes",
       dgx,
       [](Profile& p) { part(p, "m0/gpu3").pcie->width = 8; },
       {"link m0/gpu3 PCIe link: 4.0 x8, 4.0 x16"}},
      {"a NIC's is of generation 3 with 4 lanes",
       dgx,
       [](Profile& p) {
         part(p, "m0/nic5").pcie = PcieLink{8e9, 4};
       },
       {"link m0/nic5 PCIe link: 3.0 x4, 4.0 x16"}},
      {"the same where nobody tells what it could do",
       [] { return recorded("aws-p5.xml"); },
       [](Profile& p) {
         part(p, "m0/nic5").pcie = PcieLink{8e9, 4};
       },
       {"link m0/nic5 PCIe link: 25 %"}}, // 3.94 of 15.75 GB/s
      {"a GPU has 11 of 12 NVLinks",
       dgx,
       [](Profile& p) {
         p.topology.links[2].count = 11;
         p.topology.links[2].bytes_per_second = 275e9;
       },
       {"link m0/gpu2 NVLinks: 92 %"}},
      {"all GPUs have",
       dgx,
       [](Profile& p) {
         for (PeerLink& link : p.topology.links) {
           link.count = 6;
         }
       },
       {"link m0/gpu0 NVLinks: 50 %", "link m0/gpu1 NVLinks: 50 %", "link m0/gpu2 NVLinks: 50 %",
        "link m0/gpu3 NVLinks: 50 %", "link m0/gpu4 NVLinks: 50 %", "link m0/gpu5 NVLinks: 50 %",
        "link m0/gpu6 NVLinks: 50 %", "link m0/gpu7 NVLinks: 50 %"}},
      {"a GPU's NVLinks run at half rate",
       dgx,
       [](Profile& p) { p.topology.links[7].bytes_per_second = 150e9; },
       {"link m0/gpu7 NVLinks: 50 %"}},
      // Its two ends have five of six.
      {"an NVLink between two of eight GPUs is gone",
       [] { return read_profile("byteps-nvlink"); },
       [](Profile& p) { p.topology.links.erase(p.topology.links.begin()); },
       {"link m0/gpu0 NVLinks: 83 %", "link m0/gpu1 NVLinks: 83 %"}},
      {"a port at half speed",
       dgx,
       [](Profile& p) { part(p, "m0/nic6").link_bytes_per_second = 12.5e9; },
       {"link m0/nic6 port: 50 %"}},
      {"a memory module of 64 GiB gone",
       dgx,
       [](Profile& p) { part(p, "m0/numa1").bytes = 448ULL << 30U; },
       {"link m0/numa1 memory: 88 %"}},
      {"one module of sixteen is smaller",
       dgx,
       [](Profile& p) { p.context["memory_modules"] = "1 x 32 GiB DDR4, 15 x 64 GiB DDR4"; },
       {"link m0 memory modules: 1 x 32 GiB DDR4, 15 x 64 GiB DDR4, all alike"}},
      {"15 modules at two processors",
       dgx,
       [](Profile& p) { p.context["memory_modules"] = "12 x 64 GiB DDR4 3200 MT/s, 3 x 32 GiB"; },
       {"link m0 memory modules: 12 x 64 GiB DDR4 3200 MT/s, 3 x 32 GiB, a multiple of 2"}},
      // The best cell of each kind of copy speaks for the place; 14 copies with others follow.
      {"a GPU is slow in all that it does",
       dgx,
       [](Profile& p) { slow_down(p, "m0/gpu1", 0.8); },
       {"like m0/gpu1 device_local_copy: 80 %"}},
      {"one way between two GPUs is slow",
       dgx,
       [](Profile& p) {
         for (Cell& cell : p.cells) {
           if (cell.key.from == "m0/gpu2" && cell.key.to == "m0/gpu6") {
             measure(p, "scratch", "", "", 0.7 * cell.p50);
             cell.samples = p.cells.back().samples;
             summarize_cell(cell);
             p.cells.pop_back();
             return;
           }
         }
       },
       {"like m0/gpu2 -> m0/gpu6 device_to_device_memcpy_write_ce peer: 70 %"}},
      {"a NUMA node has half the memory bandwidth",
       dgx,
       [](Profile& p) {
         for (Cell& cell : p.cells) {
           if (cell.key.test == k_stream_copy && cell.key.from == "m0/numa0") {
             for (double& sample : cell.samples) {
               sample /= 2;
             }
             summarize_cell(cell);
           }
         }
       },
       {"like m0/numa0 stream_copy: 50 %"}},
      // All alike, so the link they pass says it: 15 of 31.5 GB/s, of which 60 % are wanted.
      {"all copies from host memory are slow",
       dgx,
       [](Profile& p) {
         for (Cell& cell : p.cells) {
           if (cell.key.test == k_host_to_device_ce) {
             for (double& sample : cell.samples) {
               sample *= 0.6;
             }
             summarize_cell(cell);
           }
         }
       },
       {"ceiling m0/gpu0 host_to_device_memcpy_ce pinned: 79 %",
        "ceiling m0/gpu1 host_to_device_memcpy_ce pinned: 79 %",
        "ceiling m0/gpu2 host_to_device_memcpy_ce pinned: 79 %",
        "ceiling m0/gpu3 host_to_device_memcpy_ce pinned: 79 %",
        "ceiling m0/gpu4 host_to_device_memcpy_ce pinned: 79 %",
        "ceiling m0/gpu5 host_to_device_memcpy_ce pinned: 79 %",
        "ceiling m0/gpu6 host_to_device_memcpy_ce pinned: 79 %",
        "ceiling m0/gpu7 host_to_device_memcpy_ce pinned: 79 %"}}};
  return all;
}

TEST(Verdict, NamesEachFaultAndNothingElse) {
  for (const Fault& fault : faults()) {
    Profile machine = fault.machine();
    fault.break_it(machine);
    EXPECT_EQ(found(machine), fault.expected) << fault.name;
  }
}

TEST(Verdict, CountsWhatFollowsFromALinkThere) {
  Profile p = dgx();
  part(p, "m0/gpu3").pcie = PcieLink{8e9, 4};
  slow_down(p, "m0/gpu3", 0.15);
  const Verdict verdict = judge(p);
  EXPECT_THAT(findings(verdict), Contains("link m0/gpu3 PCIe link: 3.0 x4, 4.0 x16"));
  EXPECT_GE(verdict.findings.at(0).others, 3U);
}

TEST(Verdict, BelievesAGpuWhoseLinkIsSlowOnlyWhileItRests) {
  // Without a copy nobody knows; a copy at 25 GB/s needs more than the 4 GB/s of 1.0 x16.
  Profile p = dgx();
  part(p, "m0/gpu3").pcie->transfers_per_second = 2.5e9;
  EXPECT_THAT(found(p), IsEmpty());
  std::erase_if(p.cells, [](const Cell& cell) { return cell.key.test == k_host_to_device_ce; });
  EXPECT_THAT(found(p), IsEmpty());
  EXPECT_THAT(judge(p).unknown, Contains(test::Says("m0/gpu3")));
  part(p, "m0/nic3").pcie->transfers_per_second = 2.5e9; // a NIC does not rest
  EXPECT_THAT(found(p), ElementsAre("link m0/nic3 PCIe link: 1.0 x16, 4.0 x16"));
}

TEST(Verdict, SaysWhatItCannotKnowInsteadOfFailing) {
  Profile p = dgx();
  for (TopologyObject& o : p.topology.objects) {
    o.pcie.reset();
    o.link_bytes_per_second.reset();
  }
  p.topology.links.clear();
  p.context["kernel"] = "Linux";
  const Verdict verdict = judge(p);
  EXPECT_THAT(findings(verdict), IsEmpty());
  EXPECT_THAT(verdict.unknown, ElementsAre(HasSubstr("no NVLink"), HasSubstr("memory modules"),
                                           test::Says("m0/gpu0"), test::Says("m0/nic0")));
}

TEST(Verdict, TakesNicsForStorageForOthersThanThoseBesideGpus) {
  Profile p = dgx();
  for (const int i : {8, 9}) { // a fifth of all, at half the speed
    TopologyObject nic = part(p, "m0/nic0");
    nic.id = fmt::format("m0/nic{}", i);
    nic.parent = "m0/numa0";
    nic.link_bytes_per_second = 12.5e9;
    p.topology.objects.push_back(nic);
  }
  EXPECT_THAT(found(p), IsEmpty());
}

/// The machine with one GPU's copies inside it changed.
Profile with_local_copy(const std::function<void(Cell&)>& change) {
  Profile p = dgx();
  for (Cell& cell : p.cells) {
    if (cell.key.test == k_device_local_copy && cell.key.from == "m0/gpu1") {
      change(cell);
    }
  }
  return p;
}

TEST(Verdict, WantsMoreOfADisturbedCellThanOfAQuietOne) {
  const auto noisy = [](double factor) {
    return found(with_local_copy([factor](Cell& cell) {
      for (double& sample : cell.samples) {
        sample *= factor;
      }
      summarize_cell(cell);
      cell.status = CellStatus::noisy;
      cell.reason = "others";
    }));
  };
  EXPECT_THAT(noisy(0.6), IsEmpty());
  EXPECT_THAT(noisy(0.4), ElementsAre("like m0/gpu1 device_local_copy: 40 %"));
}

TEST(Verdict, DoesNotBelieveAMedianThatItsSamplesDoNotShow) {
  // Half of them are above all others, half below: as ranks they are as the others' are.
  EXPECT_THAT(found(with_local_copy([](Cell& cell) {
                cell.samples = {500e9, 500e9, 500e9, 650e9, 650e9, 650e9};
                summarize_cell(cell);
                cell.spread = 0;
                cell.p50 = 500e9;
              })),
              IsEmpty());
}

TEST(Verdict, ReportsWrongDataFirst) {
  Profile p = with_local_copy([](Cell& cell) {
    cell.samples.clear();
    cell.status = CellStatus::mismatch;
    cell.reason = "byte 17 is 3, not 4";
  });
  part(p, "m0/gpu3").pcie->width = 8;
  EXPECT_THAT(found(p), ElementsAre("data m0/gpu1 -> m0/gpu1 device_local_copy: mismatch: byte 17 "
                                    "is 3, not 4, ",
                                    "link m0/gpu3 PCIe link: 4.0 x8, 4.0 x16"));
}

TEST(Verdict, HoldsMachinesOfAClusterAgainstEachOther) {
  Profile p;
  p.name = "cluster";
  p.machines = {{.id = "m0", .count = 2, .cores = 2, .members = {"w0", "w1"}},
                {.id = "m1", .count = 1, .cores = 2, .members = {"w2"}},
                {.id = "m2", .count = 1, .cores = 2, .members = {"w3"}}};
  const std::vector<std::string> members{"w0", "w1", "w2", "w3"};
  for (const std::string& a : members) {
    measure(p, k_fan_in, a, "", a == "w2" ? 10e6 : 24e6);
    for (const std::string& b : members) {
      if (a != b) {
        measure(p, k_pair_bandwidth, a, b, a == "w2" || b == "w2" ? 10e6 : 24e6);
      }
    }
  }
  const Verdict verdict = judge(p);
  EXPECT_THAT(findings(verdict), ElementsAre("like w2 fan_in_bandwidth: 42 %"));
  // What its pairs lost since the baseline follows from that: 6 of 12, and its fan-in.
  Profile before = p;
  before.cells.clear();
  for (const Cell& cell : p.cells) {
    measure(before, cell.key.test, cell.key.from, cell.key.to, 24e6);
  }
  const Verdict compared = judge(p, {.baseline = &before});
  EXPECT_THAT(findings(compared), SizeIs(1));
  EXPECT_EQ(compared.findings.at(0).others, verdict.findings.at(0).others + 7);
}

TEST(Verdict, NamesTheMachineOfAGroupOfOne) {
  Profile p;
  for (int i = 0; i < 4; ++i) {
    const std::string id = fmt::format("m{}", i);
    p.machines.push_back({.id = id, .cores = 2, .members = {fmt::format("w{}", i)}});
    measure(p, k_port_bandwidth, id, "", i == 2 ? 10e6 : 24e6);
  }
  EXPECT_THAT(found(p), ElementsAre("like w2 port_bandwidth: 42 %"));
  // One sample of a disturbed cell is no proof.
  p.cells[2].samples.resize(1);
  summarize_cell(p.cells[2]);
  EXPECT_THAT(found(p), SizeIs(1));
  p.cells[2].status = CellStatus::noisy;
  EXPECT_THAT(found(p), IsEmpty());
}

TEST(Verdict, CountsARequirementThatIsMissed) {
  Requirements site;
  site.name = "site";
  site.parts = {{ObjectKind::gpu, "A100", 8}, {ObjectKind::nic, "", 9}};
  site.cells = {{.key = {.test = k_host_to_device_ce, .to = "m0/gpu*"}, .at_least = 24e9},
                {.key = {.test = k_host_to_device_ce, .to = "m0/gpu7"}, .at_least = 26e9},
                {.key = {.test = k_memory_latency}, .at_most = 120e-9},
                {.key = {.test = k_reduce_sum}, .at_least = 1}};
  for (RequiredCell& cell : site.cells) {
    cell.remedy = "ask";
  }
  EXPECT_THAT(findings(judge(dgx(), {.requirements = &site})),
              ElementsAre("requirement dgx reduce_sum: not measured, ",
                          "requirement dgx number of nic: 89 %",
                          "requirement m0/numa1 -> m0/gpu7 host_to_device_memcpy_ce pinned: 96 %"));
}

TEST(Verdict, CountsWhatGotWorseSinceTheBaseline) {
  const Profile before = dgx();
  Profile now = before;
  for (Cell& cell : now.cells) { // all alike, and still as fast as the links want it
    if (cell.key.test == k_host_to_device_ce || cell.key.test == k_stream_copy) {
      for (double& sample : cell.samples) {
        sample *= cell.key.test == k_stream_copy ? 1.2 : 0.8;
      }
      summarize_cell(cell);
    }
  }
  EXPECT_THAT(findings(judge(before, {.baseline = &before})), IsEmpty());
  EXPECT_THAT(found(now), IsEmpty());
  const Verdict verdict = judge(now, {.baseline = &before, .baseline_name = "may.json"});
  ASSERT_THAT(verdict.findings, SizeIs(8));
  for (const Finding& finding : verdict.findings) {
    EXPECT_EQ(finding.kind, FindingKind::baseline);
    EXPECT_THAT(finding.place, StartsWith("m0/numa"));
    EXPECT_EQ(finding.against, "in may.json");
    EXPECT_NEAR(finding.share, 0.8, 1e-6);
  }
}

TEST(Verdict, TellsSlowMemoryAndCountsWhatFollowsFromIt) {
  Profile before;
  before.machines = {{.id = "m0", .cores = 2}};
  measure(before, k_stream_copy, "m0", "", 50e9);
  measure(before, k_reduce_sum, "m0", "", 15e9);
  measure(before, k_host_memcpy, "m0", "", 20e9);
  measure(before, k_processor_loop, "m0", "", 1e9);
  Profile now = before;
  for (Cell& cell : now.cells) {
    if (cell.key.test != k_processor_loop) {
      for (double& sample : cell.samples) {
        sample *= cell.key.test == k_reduce_sum ? 0.6 : 0.66; // a consequence, though it lost more
      }
      summarize_cell(cell);
    }
  }
  const Verdict verdict = judge(now, {.baseline = &before});
  EXPECT_THAT(findings(verdict), ElementsAre("baseline m0 stream_copy: 66 %"));
  EXPECT_EQ(verdict.findings.at(0).others, 2U);
}

TEST(Verdict, TellsAPartThatIsGoneFromAQuantityThatWasNotMeasured) {
  const Profile before = dgx();
  Profile now = before;
  std::erase_if(now.topology.objects, [](const TopologyObject& o) { return o.id == "m0/nic7"; });
  for (Cell& cell : now.cells) {
    if (cell.key.test == k_memory_latency) {
      cell = Cell{
          .key = cell.key, .status = CellStatus::skipped, .reason = "no time", .unit = cell.unit};
    }
  }
  const Verdict verdict = judge(now, {.baseline = &before});
  EXPECT_THAT(findings(verdict), ElementsAre("baseline m0/nic7 the part itself: , nic mlx5_7"));
  EXPECT_THAT(verdict.unknown, Contains(test::Says("2 quantities")));
  EXPECT_THAT(verdict.unknown, Contains(test::Says("76 cells")));
}

} // namespace
} // namespace reckon
