// SPDX-License-Identifier: Apache-2.0
#include "settings/settings.hpp"

#include "core/file.hpp"
#include "core/json.hpp"
#include "documents/json.hpp"
#include "machine.hpp"
#include "probe/cluster_merge.hpp"
#include "support/refusals.hpp"
#include "verdict/verdict.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <ostream>
#include <string>
#include <vector>

namespace reckon {
namespace {

using test::FakeMachine;
using test::TemporaryFolder;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

/// The profile that a probe makes of this machine's files, without cells; `later`: the files after
/// it has measured; null: they are the same.
Profile profile_of(const FakeMachine& machine, const FakeMachine* later = nullptr) {
  const SystemFiles before = machine.in_memory();
  const SystemFiles after = (later != nullptr ? *later : machine).in_memory();
  Profile profile;
  profile.name = "fake";
  profile.source = "made up";
  profile.machines = {{.id = "m0"}};
  profile.topology = FakeMachine::topology();
  profile.settings = read_settings(profile.topology, after);
  const auto counted = errors_while_measured(count_errors(profile.topology, before),
                                             count_errors(profile.topology, after));
  profile.settings.insert(profile.settings.end(), counted.begin(), counted.end());
  return profile_from_json(to_json(profile), "profile");
}

std::vector<std::string> findings(const Profile& profile) {
  std::vector<std::string> found;
  for (const Finding& f : judge(profile).findings) {
    EXPECT_EQ(f.kind, FindingKind::setting);
    EXPECT_FALSE(f.against.empty() || f.remedy.empty() || f.value.text.empty()) << f.what;
    EXPECT_EQ(f.remedy.find("{}"), std::string::npos) << f.remedy;
    found.push_back(f.place + ": " + f.what);
  }
  return found;
}

/// A fault: what is other than in the machine without one, and where it is found.
struct Fault {
  std::string name;
  std::function<void(FakeMachine&)> plant;
  std::string finding;
  bool while_measured = false; ///< it comes while the probe measures
};
void PrintTo(const Fault& fault, std::ostream* out) {
  *out << fault.name;
}

std::function<void(FakeMachine&)> file(const std::string& path, const std::string& content) {
  return [=](FakeMachine& machine) {
    ASSERT_TRUE(machine.files.contains(path)) << path;
    machine.files[path] = content + "\n";
  };
}
std::function<void(FakeMachine&)> config(const std::string& address,
                                         const std::function<void(test::Config&)>& change) {
  return [=](FakeMachine& machine) { change(machine.configs.at("0000:" + address)); };
}
std::function<void(FakeMachine&)> nvml(const std::string& from, const std::string& to) {
  return [=](FakeMachine& machine) {
    std::string& text = machine.files["/nvml.csv"];
    const std::size_t at = text.find(from);
    ASSERT_NE(at, text.npos) << from;
    text.replace(at, from.size(), to);
  };
}

const std::string k_cpu = "/sys/devices/system/cpu/cpu0/cpufreq/";
const std::string k_rdma = "/sys/class/infiniband/mlx5_2/ports/1/";
const std::string k_gpu = "/sys/bus/pci/devices/0000:93:00.0/";

const std::vector<Fault> k_setting_faults{
    // Behind port 12:02.0 is nic0; the first path that passes it is gpu0's.
    {"ACS redirects requests at a NIC's port", config("12:02.0", [](auto& c) { c.acs = 0x1d; }),
     "m0/gpu0 -> m0/nic0: ACS of 0000:12:02.0"},
    {"ACS redirects completions at a GPU's port", config("92:01.0", [](auto& c) { c.acs = 0x8; }),
     "m0/gpu3 -> m0/nic2: ACS of 0000:92:01.0"},
    {"ACS lets pass what nobody translates", config("12:00.0", [](auto& c) { c.acs = 0x5d; }),
     "m0/gpu0 -> m0/nic0: ACS of 0000:12:00.0"},
    {"the IOMMU translates a GPU's transfers", file(k_gpu + "iommu_group/type", "DMA-FQ"),
     "m0/gpu2: IOMMU"},
    {"the IOMMU translates a NIC's transfers",
     file("/sys/bus/pci/devices/0000:16:00.0/iommu_group/type", "DMA"), "m0/nic1: IOMMU"},
    {"a GPU's payload is larger than its port's", config("14:00.0", [](auto& c) { c.payload = 2; }),
     "m0/gpu1: PCIe payload"},
    {"a port's payload is smaller than its NIC's",
     config("92:03.0", [](auto& c) { c.payload = 0; }), "m0/nic3: PCIe payload"},
    {"a GPU asks for little at a time", config("94:00.0", [](auto& c) { c.read_request = 1; }),
     "m0/gpu3: PCIe read requests"},
    {"one NIC asks for less than the others",
     config("95:00.0", [](auto& c) { c.read_request = 2; }), "m0/nic2: PCIe read requests"},
    {"relaxed ordering is off", config("16:00.0", [](auto& c) { c.relaxed = false; }),
     "m0/nic1: PCIe relaxed ordering"},
    {"extended tags are off", config("15:00.0", [](auto& c) { c.tags = false; }),
     "m0/nic0: PCIe extended tags"},
    {"the firmware does not say the NUMA node", file(k_gpu + "numa_node", "-1"),
     "m0/gpu2: NUMA node"},
    {"a BAR of 256 MiB",
     file(k_gpu + "resource", "0x0000000090000000 0x0000000090ffffff 0x0000000000040200\n"
                              "0x00000000a0000000 0x00000000afffffff 0x000000000014220c"),
     "m0/gpu2: BAR"},
    {"no module for GPUDirect RDMA", file("/proc/modules", "mlx5_ib 1 0 - Live 0x0"),
     "m0: GPUDirect RDMA"},
    {"no address for RoCE v2",
     [](FakeMachine& m) {
       m.files[k_rdma + "gid_attrs/types/1"] = m.files[k_rdma + "gid_attrs/types/3"] =
           "IB/RoCE v1\n";
     },
     "m0/nic2: RoCE v2 addresses"},
    {"a port waits for its subnet manager", file(k_rdma + "state", "2: INIT"),
     "m0/nic2: RDMA port"},
    {"a port is down", file(k_rdma + "phys_state", "3: Disabled"), "m0/nic2: cable"},
    {"a function without a cable", file("/sys/class/net/eth1/operstate", "down"), "m0/nic1: link"},
    {"one MTU is another", file("/sys/class/net/eth3/mtu", "1500"), "m0/nic3: MTU"},
    {"one NIC has other firmware", file("/sys/class/infiniband/mlx5_0/fw_ver", "28.35.1012"),
     "m0/nic0: NIC's firmware"},
    {"NUMA balancing", file("/proc/sys/kernel/numa_balancing", "1"), "m0: NUMA balancing"},
    {"zone reclaim", file("/proc/sys/vm/zone_reclaim_mode", "1"), "m0: zone reclaim"},
    {"no huge pages", file("/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]"),
     "m0: transparent huge pages"},
    {"the governor saves power", file(k_cpu + "scaling_governor", "powersave"),
     "m0: frequency governor"},
    {"processors prefer to save power", file(k_cpu + "energy_performance_preference", "power"),
     "m0: energy preference"},
    {"a hot GPU", nvml("slowed_by,nothing", "slowed_by,hardware_thermal"), "m0/gpu0: clocks"},
    {"a GPU's memory fails", nvml("ecc_uncorrected,0", "ecc_uncorrected,2"),
     "m0/gpu0: uncorrected memory errors"},
    {"rows wait to be replaced", nvml("remapping,done", "remapping,pending"),
     "m0/gpu0: rows of memory to replace"},
    {"NVLink errors", nvml("link 3: 40", "link 3: 90"), "m0/gpu0: nvlink_crc_flit errors", true},
    {"PCIe replays", nvml("pcie_replay,3", "pcie_replay,4"), "m0/gpu0: pcie_replay errors", true},
    {"AER at a GPU", file(k_gpu + "aer_dev_correctable", "RxErr 5\nTOTAL_ERR_COR 5"),
     "m0/gpu2: pcie_correctable errors", true},
    {"packets out of order", file(k_rdma + "hw_counters/out_of_sequence", "150"),
     "m0/nic2: out_of_sequence errors", true},
    {"bad symbols", file(k_rdma + "counters/symbol_error", "9"), "m0/nic2: symbol_error errors",
     true},
    {"a link that goes up and down", file("/sys/class/net/eth0/carrier_changes", "4"),
     "m0/nic0: carrier_changes errors", true},
};

class SettingFault : public testing::TestWithParam<Fault> {};

TEST_P(SettingFault, IsFoundAtItsPlaceAndNothingElse) {
  FakeMachine bad;
  GetParam().plant(bad);
  const Profile profile = GetParam().while_measured ? profile_of({}, &bad) : profile_of(bad);
  EXPECT_THAT(findings(profile), UnorderedElementsAre(GetParam().finding));
}

INSTANTIATE_TEST_SUITE_P(Settings, SettingFault, testing::ValuesIn(k_setting_faults),
                         [](const auto& info) {
                           std::string name = info.param.name;
                           std::erase_if(name, [](char c) { return std::isalnum(c) == 0; });
                           return name;
                         });

/// Devices of a machine that no NIC stands for, by their routes and what the kernel says of them.
void add_devices(FakeMachine& machine) {
  std::string routes = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n"
                       "eth0 0000000A 00000000 0001 0 0 0 00FFFFFF 0 0 0\n"; // nic0's
  const auto device = [&](const std::string& name, const std::string& about,
                          const std::string& mask = "00FFFFFF", const char* type = "1\n") {
    const std::string folder = "/sys/class/net/" + name + "/";
    machine.files[folder + "uevent"] = about + "INTERFACE=" + name + "\n";
    machine.files[folder + "type"] = type;
    machine.files[folder + "mtu"] = "9000\n";
    machine.files[folder + "operstate"] = "up\n";
    machine.files[folder + "statistics/rx_errors"] = "7\n";
    routes += name + " 0001000A 00000000 0001 0 0 0 " + mask + " 0 0 0\n";
  };
  device("bond0", "DEVTYPE=bond\n");
  device("pod0", "");
  device("docker0", "DEVTYPE=bridge\n");
  device("cali1", "", "FFFFFFFF"); // to a container of this machine
  device("tun0", "", "00FFFFFF", "65534\n");
  machine.files["/proc/net/route"] = routes;
}

TEST(SettingsTest, DevicesWithoutANicAreSaidOfTheMachine) {
  FakeMachine machine;
  add_devices(machine);
  const Profile profile = profile_of(machine);
  std::vector<std::string> with_mtu;
  for (const Setting& s : profile.settings) {
    if (s.place == "m0" && s.name == "mtu") {
      with_mtu.push_back(s.file);
    }
  }
  EXPECT_THAT(with_mtu, ElementsAre("/sys/class/net/bond0/mtu", "/sys/class/net/pod0/mtu"));
  EXPECT_THAT(findings(profile), IsEmpty());
  FakeMachine later = machine;
  later.files["/sys/class/net/bond0/statistics/rx_errors"] = "9\n";
  EXPECT_THAT(findings(profile_of(machine, &later)), ElementsAre("m0: rx_errors errors of bond0"));
}

// What a finding costs has a source, or is said to have none.
TEST(SettingsTest, EveryFindingHasARowOfPrices) {
  const std::string manual = read_file(std::string(RECKON_SOURCE_DIR) + "/docs/operate.md");
  const std::string table = manual.substr(manual.find("| finding | usual price | source |"));
  for (const Fault& fault : k_setting_faults) {
    std::string what = fault.finding.substr(fault.finding.rfind(": ") + 2);
    what = what.starts_with("ACS")       ? "ACS"
           : what.find('_') != what.npos ? "errors while measured" // of a count
                                         : what;
    EXPECT_TRUE(table.find("| " + what) != table.npos || table.find(", " + what) != table.npos)
        << what;
  }
}

TEST(SettingsTest, ThereAreAtLeastTwentyFiveFaults) {
  EXPECT_GE(k_setting_faults.size(), 25U);
}

TEST(SettingsTest, AGoodMachineHasNoFinding) {
  const Profile profile = profile_of({});
  EXPECT_THAT(findings(profile), IsEmpty());
  EXPECT_THAT(judge(profile).unknown, Not(Contains(HasSubstr("root"))));
  EXPECT_GT(judge(profile).checks.at(FindingKind::setting), 80U);
}

TEST(SettingsTest, WhatNeedsNoCureIsNoFault) {
  FakeMachine machine;
  // At a root port every copy between devices goes up anyway.
  machine.configs.at("0000:00:01.0").acs = machine.configs.at("0000:11:00.0").acs = 0x1d;
  // With the devices' addresses translated, the port lets them pass.
  machine.configs.at("0000:12:00.0").acs = 0x5d;
  machine.configs.at("0000:13:00.0").ats = true;
  // A virtual function goes by its physical one's.
  machine.configs.at("0000:95:00.0") = {
      .payload = 0, .read_request = 0, .relaxed = false, .tags = false};
  // It follows the load.
  machine.files[k_cpu + "scaling_governor"] = "powersave\n";
  machine.files[k_cpu + "scaling_driver"] = "intel_pstate\n";
  // dma-buf instead of the module.
  machine.files["/proc/modules"] = "mlx5_ib 1 0 - Live 0x0\n";
  machine.files["/proc/driver/nvidia/version"] = "NVRM version: NVIDIA UNIX Open Kernel Module\n";
  EXPECT_THAT(findings(profile_of(machine)), IsEmpty());
}

TEST(SettingsTest, ThatMostPortsAreNotUsedIsNoFaultOfTheOther) {
  FakeMachine machine;
  for (const char* number : {"0", "1", "3"}) {
    machine.files[std::string("/sys/class/net/eth") + number + "/operstate"] = "down\n";
    machine.files[std::string("/sys/class/infiniband/mlx5_") + number + "/ports/1/phys_state"] =
        "3: Disabled\n";
  }
  EXPECT_THAT(findings(profile_of(machine)), IsEmpty());
}

// Below a switch are two GPUs and two NICs: one path between GPUs and four to NICs. nic0's port is
// on those of the two GPUs to it; all four ports are on all five.
TEST(SettingsTest, AcsIsOneFindingForEachSwitchAndCountsItsPaths) {
  FakeMachine machine;
  machine.configs.at("0000:12:02.0").acs = 0x1d;
  Verdict verdict = judge(profile_of(machine));
  ASSERT_EQ(verdict.findings.size(), 1U);
  EXPECT_EQ(verdict.findings[0].others, 1U);
  for (const char* port : {"12:00.0", "12:01.0", "12:03.0"}) {
    machine.configs.at(std::string("0000:") + port).acs = 0x1d;
  }
  verdict = judge(profile_of(machine));
  ASSERT_EQ(verdict.findings.size(), 1U);
  EXPECT_EQ(verdict.findings[0].others, 4U);
  EXPECT_THAT(verdict.findings[0].value.text, HasSubstr("ReqRedir+"));
}

TEST(SettingsTest, WhatOnlyRootMayReadIsNotKnown) {
  FakeMachine machine;
  for (auto& [address, config] : machine.configs) {
    config.acs = 0x1d;
    config.size = 64;
  }
  const Profile profile = profile_of(machine);
  EXPECT_THAT(findings(profile), IsEmpty());
  EXPECT_THAT(judge(profile).unknown, Contains(HasSubstr("m0/gpu0")));
}

/// A bridge leads from its bus to greater numbers; registers that say otherwise are no way, and no
/// ring of ways.
TEST(SettingsTest, ABridgeThatLeadsNowhereIsNone) {
  const auto of_all = [](unsigned first) {
    FakeMachine machine;
    machine.configs["0000:11:00.0"].first_bus = first;
    std::vector<Setting> settings = read_settings(FakeMachine::topology(), machine.in_memory());
    std::erase_if(settings, [](const Setting& s) { return !s.name.starts_with("port_"); });
    return settings;
  };
  const auto without = of_all(0);
  EXPECT_NE(without, of_all(0x12));
  for (const unsigned first : {0x10U, 0x11U}) {
    EXPECT_EQ(of_all(first), without) << first;
  }
}

TEST(SettingsTest, KeptFilesSayTheSame) {
  FakeMachine machine;
  machine.configs.at("0000:12:02.0").acs = 0x1d;
  const Topology topology = FakeMachine::topology();
  const SystemFiles files = machine.in_memory();
  const auto settings = read_settings(topology, files);
  const auto counts = count_errors(topology, files);
  const TemporaryFolder once, twice;
  files.keep(once.path());
  const SystemFiles on_disk(once.path());
  EXPECT_EQ(read_settings(topology, on_disk), settings);
  EXPECT_EQ(count_errors(topology, on_disk), counts);
  // Only what was asked for is kept, and that is enough.
  on_disk.keep(twice.path());
  const SystemFiles again(twice.path());
  EXPECT_EQ(read_settings(topology, again), settings);
  EXPECT_EQ(count_errors(topology, again), counts);
  EXPECT_ERROR(again.keep(once.path())); // it is not empty
}

// NVML's numbers are those of made_up_nvml.cpp: of the reasons only 0x40 is no usual one, and only
// link 0 is active.
TEST(SettingsTest, NvmlIsAskedByItsOwnInterface) {
  EXPECT_EQ(ask_nvml(MADE_UP_NVML), "0000:13:00.0,slowed_by,hardware_thermal\n"
                                    "0000:13:00.0,ecc_uncorrected,7\n"
                                    "0000:13:00.0,row_remapping,pending\n"
                                    "0000:13:00.0,pcie_replay,5\n"
                                    "0000:13:00.0,nvlink_replay,link 0: 10\n"
                                    "0000:13:00.0,nvlink_recovery,link 0: 11\n"
                                    "0000:13:00.0,nvlink_crc_flit,link 0: 12\n"
                                    "0000:13:00.0,nvlink_crc_data,link 0: 13\n");
  EXPECT_EQ(ask_nvml("no-such-library.so.1"), "");
}

/// A cluster of `machines` with the settings of each.
Profile cluster(const std::vector<FakeMachine>& machines) {
  std::vector<MemberResult> members;
  std::vector<std::string> ids;
  for (const FakeMachine& machine : machines) {
    ids.push_back("node" + std::string(1, static_cast<char>('a' + ids.size())));
    Profile& own = members.emplace_back().own = profile_of(machine);
    if (const auto again = machine.files.find("/tcp"); again != machine.files.end()) {
      own.settings.push_back(
          {"m0", "", std::string(k_tcp_again), again->second + " % of what it sends", "counts"});
    }
  }
  Profile profile;
  profile.name = "cluster";
  profile.source = "made up";
  merge_machines(profile, members, ids);
  profile.cells.clear(); // nothing was measured
  return profile_from_json(to_json(profile), "cluster");
}

class ClusterFault : public testing::TestWithParam<Fault> {};

TEST_P(ClusterFault, IsFoundAtItsMachine) {
  std::vector<FakeMachine> machines(4);
  for (FakeMachine& machine : machines) {
    add_devices(machine);
    machine.files["/tcp"] = "0.9";
  }
  GetParam().plant(machines[2]);
  EXPECT_THAT(findings(cluster(machines)), UnorderedElementsAre(GetParam().finding));
}

INSTANTIATE_TEST_SUITE_P(
    Settings, ClusterFault,
    testing::Values(
        Fault{"driver", file("/sys/module/nvidia/version", "550.54.15"),
              "m0 of nodec: NVIDIA's driver"},
        Fault{"nic_driver", file("/sys/module/mlx5_core/version", "23.10"),
              "m0 of nodec: NIC's driver"},
        Fault{"kernel", file("/proc/sys/kernel/osrelease", "5.15.0"), "m0 of nodec: kernel"},
        Fault{"gid", [](FakeMachine& m) { m.files[k_rdma + "gid_attrs/types/2"] = "RoCE v2\n"; },
              "m0/nic2 of nodec: RoCE v2 addresses"},
        Fault{"mtu",
              [](FakeMachine& m) {
                for (int i = 0; i < 4; ++i) {
                  m.files["/sys/class/net/eth" + std::to_string(i) + "/mtu"] =
                      i == 1 ? "1500\n" : "9000\n";
                }
              },
              "m0/nic1 of nodec: MTU"},
        Fault{"firmware", file("/sys/class/infiniband/mlx5_3/fw_ver", "28.35.1012"),
              "m0/nic3 of nodec: NIC's firmware"},
        Fault{"iommu_of_a_port",
              [](FakeMachine& m) {
                m.files["/sys/bus/pci/devices/0000:95:00.0/iommu_group/type"] = "DMA\n";
              },
              "m0/nic2 of nodec: IOMMU"},
        Fault{"bond", file("/sys/class/net/bond0/mtu", "1500"), "m0 of nodec: MTU of bond0"},
        Fault{"tcp", [](FakeMachine& m) { m.files["/tcp"] = "1.0"; },
              "m0 of nodec: TCP segments sent again"},
        Fault{"link", file("/sys/class/net/eth0/operstate", "down"), "m0/nic0 of nodec: link"}),
    [](const auto& info) { return info.param.name; });

// Of two of a group, one is the model for both.
TEST(SettingsTest, TheFirstOfAGroupIsNamedWhereItIsTheOddOne) {
  std::vector<FakeMachine> machines(3);
  machines[0].files["/sys/class/infiniband/mlx5_3/fw_ver"] = "28.35.1012\n";
  EXPECT_THAT(findings(cluster(machines)), ElementsAre("m0/nic3 of nodea: NIC's firmware"));
}

TEST(SettingsTest, MachinesThatAreAlikeHaveNoFinding) {
  const Profile profile = cluster(std::vector<FakeMachine>(3));
  EXPECT_THAT(findings(profile), IsEmpty());
  EXPECT_EQ(profile.settings.size(), cluster(std::vector<FakeMachine>(1)).settings.size());
}

} // namespace
} // namespace reckon
