// SPDX-License-Identifier: Apache-2.0
#include "core/name_ranges.hpp"
#include "topology/paths.hpp"
#include "verdict/checks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reckon::verdict_detail {
namespace {

/// From this rate of a NIC's port on what its functions may have under way matters.
constexpr double k_fast_port = 12.5e9;

/// The settings of a profile by place and name.
class Said {
public:
  explicit Said(const Profile& profile) : topology(profile.topology) {
    for (const Setting& setting : profile.settings) {
      m_all[{setting.place, setting.name}].push_back(&setting);
    }
  }
  [[nodiscard]] const std::vector<const Setting*>& all(const std::string& place,
                                                       const std::string& name) const {
    static const std::vector<const Setting*> none;
    const auto found = m_all.find({place, name});
    return found == m_all.end() ? none : found->second;
  }
  /// The first; empty: not known.
  [[nodiscard]] std::string first(const std::string& place, const std::string& name) const {
    const auto& found = all(place, name);
    return found.empty() ? "" : found.front()->value;
  }
  [[nodiscard]] std::string machine_of(const std::string& place) const {
    return place.substr(0, place.find('/'));
  }
  [[nodiscard]] std::size_t count(const Setting& beside, ObjectKind kind) const {
    return topology.ids_in(machine_of(beside.place), kind).size();
  }
  [[nodiscard]] bool is_gpu(const Setting& s) const {
    const TopologyObject* const object = topology.find(s.place);
    return object != nullptr && object->kind == ObjectKind::gpu;
  }
  /// A GPU, or a NIC with a fast port.
  [[nodiscard]] bool is_fast(const Setting& s) const {
    const TopologyObject* const object = topology.find(s.place);
    return is_gpu(s) ||
           (object != nullptr && object->link_bytes_per_second.value_or(0) >= k_fast_port);
  }

  const Topology& topology;

private:
  std::map<std::pair<std::string, std::string>, std::vector<const Setting*>> m_all;
};

bool is_off(const Said& said, const Setting& s) {
  return s.value == "off" && said.is_fast(s);
}
bool is_not_zero(const Said&, const Setting& s) {
  return s.value != "0";
}

struct SettingRule {
  const char* name;
  const char* what;
  bool (*is_bad)(const Said& said, const Setting& setting);
  const char* normal;
  const char* price;
  /// What shows it, and where it is set; {} is the PCI address or the device in the file's path.
  const char* command;
};

// docs/operate.md names the source of each price, and no number stands here without one; a probe
// tells this machine's.
const SettingRule k_setting_rules[] = {
    {"iommu", "IOMMU",
     [](const Said& said, const Setting& s) {
       return s.value.starts_with("DMA") && said.is_fast(s);
     },
     "identity", "translates each transfer: GPU-NIC copies may go by way of the processor, or hang",
     "`cat /sys/bus/pci/devices/{}/iommu_group/type`; boot with iommu=pt, or switch it off in the "
     "firmware"},
    {"max_payload_bytes", "PCIe payload",
     [](const Said& said, const Setting& s) {
       const auto& ports = said.all(s.place, "port_max_payload_bytes");
       return !ports.empty() && std::ranges::none_of(ports, [&](const Setting* port) {
         return port->value == s.value;
       });
     },
     "that of the port above", "packets are refused, or carry less than their link could",
     "`sudo lspci -vvs {}` (DevCtl: MaxPayload) shows it, and the port's; boot with "
     "pci=pcie_bus_safe"},
    {"max_read_request_bytes", "PCIe read requests",
     [](const Said& said, const Setting& s) {
       return std::strtoul(s.value.c_str(), nullptr, 10) < 512 && said.is_fast(s);
     },
     "512 or more", "what a NIC sends is read in many small pieces",
     "`sudo lspci -vvs {}` (DevCtl: MaxReadReq) shows it; the firmware or the NIC's tool sets it"},
    {"relaxed_ordering", "PCIe relaxed ordering", is_off, "on",
     "writes wait for each other: a quarter of the rate was published for memory of another node",
     "`sudo lspci -vvs {}` (DevCtl: RlxdOrd) shows it; the firmware or the NIC's tool "
     "(`mlxconfig`: PCI_WR_ORDERING) sets it"},
    {"extended_tags", "PCIe extended tags", is_off, "on",
     "32 reads under way at most: too few for a fast link",
     "`sudo lspci -vvs {}` (DevCtl: ExtTag) shows it; the firmware sets it"},
    {"numa_node", "NUMA node",
     [](const Said& said, const Setting& s) {
       return s.value == "-1" && said.count(s, ObjectKind::numa_node) > 1;
     },
     "its number", "threads and memory end up at any socket, and transfers pass the link between",
     "`cat /sys/bus/pci/devices/{}/numa_node`; the firmware tells it (NUMA, SRAT)"},
    {"largest_bar_bytes", "BAR",
     [](const Said& said, const Setting& s) {
       return s.value == "268435456" &&
              (said.count(s, ObjectKind::gpu) > 1 || said.count(s, ObjectKind::nic) > 0);
     },
     "the GPU's memory",
     "NICs and other GPUs reach 256 MiB of its memory: the rest is copied twice",
     "`lspci -vs {}` shows it; the firmware (Above 4G Decoding, Resizable BAR) sets it"},
    {"gpu_direct_rdma", "GPUDirect RDMA",
     [](const Said&, const Setting& s) { return s.value == "none"; }, "module or dma-buf",
     "what NICs move is copied through host memory: a third of the rate was published",
     "`lsmod | grep peermem`; `modprobe nvidia_peermem`, or NVIDIA's open driver"},
    {"roce_v2_gids", "RoCE v2 addresses",
     [](const Said&, const Setting& s) { return s.value == "none"; }, "one or more",
     "no RDMA beyond this subnet: jobs fail, or fall back to TCP",
     "`show_gids` or `rdma link`; give the network device of {} an address"},
    {"state", "RDMA port",
     [](const Said& said, const Setting& s) {
       return s.value.find("ACTIVE") == s.value.npos &&
              said.first(s.place, "physical_state").find("LinkUp") != std::string::npos;
     },
     "ACTIVE", "its cable works, and nothing moves over it",
     "`ibstat {}`; a subnet manager (InfiniBand) or an address (RoCE) is missing"},
    {k_tcp_again.data(), "TCP segments sent again",
     [](const Said&, const Setting& s) { return std::strtod(s.value.c_str(), nullptr) >= 1; },
     "less than 1 %", "each lost packet makes its connection slow down, and its rank wait",
     "`nstat -az TcpRetransSegs`, `ethtool -S` of its port, the counters of the switch's: cable, "
     "transceiver, buffers or a limit that drops"},
    {"slowed_by", "clocks", [](const Said&, const Setting& s) { return s.value != "nothing"; },
     "nothing", "the GPU runs at a part of its clock",
     "`nvidia-smi -q -d PERFORMANCE`; see its power supply, cooling and cables"},
    {"ecc_uncorrected", "uncorrected memory errors", is_not_zero, "0",
     "results may be wrong, and jobs end",
     "`nvidia-smi -q -d ECC`; reset the GPU, then have it replaced"},
    {"row_remapping", "rows of memory to replace",
     [](const Said&, const Setting& s) { return s.value != "done"; }, "done",
     "memory errors come again",
     "`nvidia-smi -q -d ROW_REMAPPER`; pending: reset the GPU, failed: have it replaced"},
    {"numa_balancing", "NUMA balancing",
     [](const Said& said, const Setting& s) {
       return s.value != "0" && said.count(s, ObjectKind::numa_node) > 1;
     },
     "0", "pages are taken away to see who uses them: threads and GPUs' copies stall",
     "`cat /proc/sys/kernel/numa_balancing`; `sysctl kernel.numa_balancing=0`"},
    {"zone_reclaim", "zone reclaim", is_not_zero, "0",
     "memory of other nodes stays unused while this one's files are thrown out",
     "`cat /proc/sys/vm/zone_reclaim_mode`; `sysctl vm.zone_reclaim_mode=0`"},
    {"transparent_huge_pages", "transparent huge pages",
     [](const Said&, const Setting& s) { return s.value == "never"; }, "madvise or always",
     "sums and copies of large tensors in host memory miss the TLB",
     "`cat /sys/kernel/mm/transparent_hugepage/enabled`; write madvise there"},
    {"governor", "frequency governor",
     [](const Said& said, const Setting& s) {
       // intel_pstate's and amd-pstate's powersave follows the load, as they are told to prefer.
       return (s.value == "powersave" &&
               said.first(s.place, "clock_driver").find("pstate") == std::string::npos) ||
              s.value == "conservative";
     },
     "performance", "processors stay at a low clock: latencies and sums take longer",
     "`cpupower frequency-info`; `cpupower frequency-set -g performance`"},
    {"energy_preference", "energy preference",
     [](const Said&, const Setting& s) { return s.value == "power"; }, "performance",
     "processors stay at a low clock: latencies and sums take longer",
     "`cpupower frequency-info`; `cpupower set -b 0`, or the firmware's profile"},
};

/// Names that are the same on all NICs of one kind in a machine, on all equal machines, or on all
/// machines.
enum class Alike { nics, equal_machines, machines };
struct AlikeRule {
  const char* name;
  const char* what;
  Alike among;
  const char* price;
  const char* command;
  const char* good = ""; ///< a value that is no fault where most have another
};
constexpr const char* k_mtu_price =
    "large messages between unlike machines are dropped, or sent in small packets";
constexpr const char* k_mtu_command = "`ip link show {}`; set it alike on hosts and switches";
constexpr const char* k_version_price = "the slowest, or a fault of one version, decides for all";
constexpr AlikeRule k_alike_rules[] = {
    {"mtu", "MTU", Alike::nics, k_mtu_price, k_mtu_command},
    {"mtu", "MTU", Alike::machines, k_mtu_price, k_mtu_command},
    {"operstate", "link", Alike::nics, "its share of the traffic goes over the others",
     "`ip link show {0}` and `ethtool {0}`: cable, transceiver and the switch's port", "up"},
    {"physical_state", "cable", Alike::nics, "its share of the traffic goes over the others",
     "`ibstat`: cable, transceiver and the switch's port", "5: LinkUp"},
    {"nic_firmware", "NIC's firmware", Alike::nics, k_version_price, "`ibstat` of {}"},
    {"nic_firmware", "NIC's firmware", Alike::equal_machines, k_version_price, "`ibstat` of {}"},
    {"max_read_request_bytes", "PCIe read requests", Alike::nics,
     "the NIC with smaller requests sends less",
     "`sudo lspci -vvs {}` (DevCtl: MaxReadReq) shows it"},
    {"roce_v2_gids", "RoCE v2 addresses", Alike::machines,
     "NCCL_IB_GID_INDEX names another address there: jobs hang or fall back",
     "`show_gids` on both machines"},
    {"operstate", "link", Alike::machines, "its share of the traffic goes over the others",
     "`ip link show {0}` and `ethtool {0}`: cable, transceiver and the switch's port", "up"},
    {"state", "RDMA port", Alike::machines, "its share of the traffic goes over the others",
     "`ibstat`: cable, transceiver and the switch's port", "4: ACTIVE"},
    {"kernel", "kernel", Alike::machines, k_version_price, "`uname -r`"},
    {"driver_nvidia", "NVIDIA's driver", Alike::machines, k_version_price, "`nvidia-smi`"},
    {"driver_amdgpu", "AMD's driver", Alike::machines, k_version_price,
     "`cat /sys/module/amdgpu/version`"},
    {"driver_mlx5", "NIC's driver", Alike::machines, k_version_price,
     "`cat /sys/module/mlx5_core/version`"},
    {"driver_bnxt", "NIC's driver", Alike::machines, k_version_price,
     "`cat /sys/module/bnxt_re/version`"},
    {"driver_efa", "NIC's driver", Alike::machines, k_version_price,
     "`cat /sys/module/efa/version`"},
    {"iommu", "IOMMU", Alike::machines, "ranks there are slower than the others",
     "`cat /sys/bus/pci/devices/{}/iommu_group/type`"},
    {"governor", "frequency governor", Alike::machines, "ranks there are slower than the others",
     "`cpupower frequency-info`"},
};

/// "0000:17:00.0" or "eth0": what the path of a file says it is about.
std::string subject_of(const std::string& file) {
  for (const std::string_view folder : {"/devices/", "/class/net/", "/class/infiniband/"}) {
    if (const std::size_t at = file.find(folder); at != file.npos) {
      const std::size_t begin = at + folder.size();
      return file.substr(begin, file.find('/', begin) - begin);
    }
  }
  return "";
}

class Settings {
public:
  Settings(const Profile& profile, Verdict& verdict)
      : m_profile(profile), m_said(profile), m_verdict(verdict) {}

  void check() {
    for (const SettingRule& rule : k_setting_rules) {
      for (const Setting& setting : m_profile.settings) {
        if (setting.name == rule.name) {
          judge(rule, setting);
        }
      }
    }
    for (const Setting& s : m_profile.settings) {
      if (s.name.ends_with(k_while_measured) && s.name != k_tcp_again) {
        add(place_of(s), s.name.substr(0, s.name.size() - k_while_measured.size()) + " errors", s,
            "0", "counted while the probe measured: what passes here is sent again",
            "`dmesg`, `ethtool -S`, `perfquery`, `nvidia-smi nvlink -e`: cable, slot, then the "
            "part");
      }
    }
    for (const MachineGroup& machine : m_profile.machines) {
      peer_paths(machine.id);
    }
    for (const AlikeRule& rule : k_alike_rules) {
      rule.among == Alike::nics ? like_nics_of(rule) : like_machines(rule);
    }
    unknown();
  }

private:
  [[nodiscard]] std::string place_of(const Setting& s) const {
    const std::string machine = s.machine.empty() ? only_member(s) : s.machine;
    return machine.empty() ? shown_place(m_profile, s.place)
                           : fmt::format("{} of {}", s.place, machine);
  }
  /// The machine of a group that alone has a value, because all others have their own; else empty.
  [[nodiscard]] std::string only_member(const Setting& s) const {
    const auto group =
        std::ranges::find(m_profile.machines, m_said.machine_of(s.place), &MachineGroup::id);
    if (group == m_profile.machines.end() || group->members.size() < 2) {
      return "";
    }
    std::set<std::string> members(group->members.begin(), group->members.end());
    for (const Setting* const other : m_said.all(s.place, s.name)) {
      if (other->file == s.file) {
        members.erase(other->machine);
      }
    }
    return members.size() == 1 ? *members.begin() : "";
  }
  void add(const std::string& place, const std::string& what, const Setting& s,
           const std::string& normal, const std::string& price, const std::string& command) {
    const std::string subject = subject_of(s.file);
    const std::string device = device_of(s);
    m_verdict.findings.push_back(
        {.kind = FindingKind::setting,
         .place = place,
         .what = device.empty() ? what : fmt::format("{} of {}", what, device),
         .value = text_side(s.value),
         .expected = text_side(normal),
         .against = price,
         .remedy = fmt::format(fmt::runtime(command), subject.empty() ? s.place : subject)});
  }

  void judge(const SettingRule& rule, const Setting& setting) {
    ++m_verdict.checks[FindingKind::setting];
    if (rule.is_bad(m_said, setting)) {
      add(place_of(setting), rule.what, setting, rule.normal, rule.price, rule.command);
    }
  }

  /// Copies between GPUs and NICs below one switch turn round in it, unless a port on the way sends
  /// them up to the root (PCI Express Base Specification, 6.12.3).
  void peer_paths(const std::string& machine) {
    struct Redirected {
      std::string first_path;
      std::uint64_t paths = 0;
      std::set<std::string> ports;
      const Setting* setting = nullptr;
    };
    std::map<std::string, Redirected> by_switch;
    const std::vector<std::string> gpus = m_said.topology.ids_in(machine, ObjectKind::gpu);
    std::vector<std::string> others = m_said.topology.ids_in(machine, ObjectKind::nic);
    others.insert(others.end(), gpus.begin(), gpus.end());
    for (const std::string& gpu : gpus) {
      for (const std::string& other : others) {
        if (other == gpu || (other > gpu && m_said.is_gpu({.place = other}))) {
          continue;
        }
        const Path path = path_between(m_said.topology, gpu, other);
        if (path.path_class != PathClass::pix && path.path_class != PathClass::pxb) {
          continue;
        }
        const std::vector<const Setting*> ports = ports_on(path);
        m_verdict.checks[FindingKind::setting] += ports.empty() ? 0U : 1U;
        std::uint64_t redirected = 0;
        for (const Setting* const port : ports) {
          if (redirects(port->value, gpu, other)) {
            auto [found, added] = by_switch.try_emplace(
                switch_of(path), Redirected{to_place(gpu, other), 0, {}, port});
            found->second.ports.insert(subject_of(port->file));
            found->second.paths += redirected++ == 0 ? 1U : 0U;
          }
        }
      }
    }
    for (const auto& [id, found] : by_switch) {
      add(found.first_path, fmt::format("ACS of {}", fmt::join(found.ports, ", ")), *found.setting,
          "ReqRedir- CmpltRedir-", "copies go up to the processor and back: often half the rate",
          "`sudo lspci -vvs {}` (ACSCtl) shows it; switch ACS off in the firmware, or with "
          "`setpci`, where no virtual machine needs it");
      m_verdict.findings.back().others = found.paths - 1;
    }
  }
  [[nodiscard]] std::vector<const Setting*> ports_on(const Path& path) const {
    std::vector<const Setting*> ports;
    for (const LinkEnd& link : path.links) {
      const bool up = m_said.topology.find(link.from)->parent == link.to;
      const auto& above = m_said.all(up ? link.from : link.to, "port_acs");
      ports.insert(ports.end(), above.begin(), above.end());
    }
    return ports;
  }
  /// Requests or their completions, unless addresses that the device has translated pass.
  [[nodiscard]] bool redirects(const std::string& acs, const std::string& one,
                               const std::string& other) const {
    const auto on = [&](const char* bit) { return acs.find(bit) != acs.npos; };
    const bool translated = on("DirectTrans+") && (m_said.first(one, "ats") == "on" ||
                                                   m_said.first(other, "ats") == "on");
    return (on("ReqRedir+") || on("CmpltRedir+")) && !translated;
  }
  /// The place where a path turns round.
  [[nodiscard]] std::string switch_of(const Path& path) const {
    std::string top = path.links.front().from;
    for (const LinkEnd& link : path.links) {
      top = m_said.topology.find(top)->parent == link.to ? link.to : top;
    }
    return top;
  }

  /// The value of a place, by what must agree: without the machine, or among the places of a kind.
  struct Value {
    const Setting* setting;
    std::string place, text;
    std::uint64_t weight = 1;
  };
  /// Those unlike two thirds of all, or, `of_two`, unlike the first of two.
  void odd_values(const AlikeRule& rule, const std::vector<Value>& values, bool of_two) {
    std::map<std::string, std::uint64_t> counts;
    std::uint64_t all = 0;
    for (const Value& value : values) {
      counts[value.text] += value.weight;
      all += value.weight;
    }
    m_verdict.checks[FindingKind::setting] += all;
    const auto usual = std::ranges::max_element(counts, {}, [](const auto& c) { return c.second; });
    if (counts.size() < 2 || (all < 3 ? !of_two : !of_two && 3 * usual->second < 2 * all)) {
      return;
    }
    const std::string& expected = all < 3 ? values.front().text : usual->first;
    for (const Value& value : values) {
      if (value.text != expected && value.text != rule.good) {
        add(value.place, rule.what, *value.setting, expected,
            fmt::format("{} of {} have that; {}", counts[expected], all, rule.price), rule.command);
      }
    }
  }

  void like_nics_of(const AlikeRule& rule) {
    for (const auto& [make, nics] : like_nics(m_said.topology)) {
      std::map<std::string, std::vector<Value>> by_machine;
      for (const TopologyObject* nic : nics) {
        for (const Setting* s : m_said.all(nic->id, rule.name)) {
          // A port without a cable has whatever setting it was left with.
          if (s->machine.empty() && (rule.name != std::string_view("mtu") ||
                                     m_said.first(nic->id, "operstate") != "down")) {
            by_machine[m_said.machine_of(nic->id)].push_back({s, place_of(*s), s->value});
            break;
          }
        }
      }
      for (const auto& [machine, values] : by_machine) {
        odd_values(rule, values, false);
      }
    }
  }

  void like_machines(const AlikeRule& rule) {
    std::map<std::string, std::vector<Value>> by_place;
    std::map<std::string, std::uint64_t> others; // machines of a group that have another value
    for (const Setting& s : m_profile.settings) {
      others[s.place + s.name + s.file] += s.machine.empty() ? 0U : 1U;
    }
    std::uint64_t machines = 0;
    for (const MachineGroup& group : m_profile.machines) {
      machines += group.count;
    }
    for (const Setting& s : m_profile.settings) {
      const std::string machine = m_said.machine_of(s.place);
      const auto group = std::ranges::find(m_profile.machines, machine, &MachineGroup::id);
      if (machines < 2 || s.name != rule.name || group == m_profile.machines.end()) {
        continue;
      }
      const std::string inside = s.place.substr(machine.size());
      const std::string key = rule.among == Alike::machines
                                  ? fmt::format("{} {}", inside, s.file)
                                  : fmt::format("{} {} {}", machine, inside, s.file);
      by_place[key].push_back(
          {&s, place_of(s), s.value,
           s.machine.empty()
               ? group->count - std::min(group->count, others[s.place + s.name + s.file])
               : 1});
    }
    for (const auto& [place, values] : by_place) {
      odd_values(rule, values, true);
    }
  }

  void unknown() {
    std::vector<std::string> hidden;
    for (const Setting& s : m_profile.settings) {
      if (s.name == "config_space" && std::ranges::find(hidden, s.place) == hidden.end()) {
        hidden.push_back(s.place);
      }
    }
    if (!hidden.empty()) {
      m_verdict.unknown.push_back(fmt::format(
          "ACS, ATS, relaxed ordering, payloads and read requests of {}: only root may read their "
          "config space",
          first_names(hidden)));
    }
  }

  const Profile& m_profile;
  Said m_said;
  Verdict& m_verdict;
};

} // namespace
} // namespace reckon::verdict_detail

namespace reckon {

std::string device_of(const Setting& setting) {
  const bool of_machine = setting.place.find('/') == std::string::npos;
  return of_machine && setting.file.starts_with("/sys/class/net/")
             ? verdict_detail::subject_of(setting.file)
             : "";
}

} // namespace reckon

namespace reckon::verdict_detail {

void check_settings(const Profile& profile, Verdict& verdict) {
  Settings(profile, verdict).check();
}

} // namespace reckon::verdict_detail
