// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/system_files.hpp"
#include "topology/topology.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <unistd.h>

namespace reckon::test {

/// The config space of a function, laid out by hand after the PCI Express Base Specification: PCI
/// Express at 0x60, then AER at 0x100, ACS at 0x150 and ATS at 0x170.
struct Config {
  unsigned payload = 1;      ///< 128 << n bytes
  unsigned read_request = 5; ///< 128 << n bytes
  bool relaxed = true, tags = true, ats = false;
  unsigned acs = 0;
  unsigned first_bus = 0, last_bus = 0; ///< behind a bridge
  std::size_t size = 4096;

  [[nodiscard]] std::string bytes() const {
    std::string space(4096, '\0');
    const auto put = [&](std::size_t at, unsigned word) {
      space[at] = static_cast<char>(word & 0xff);
      space[at + 1] = static_cast<char>(word >> 8);
    };
    space[0x19] = static_cast<char>(first_bus);
    space[0x1a] = static_cast<char>(last_bus);
    space[0x34] = 0x50;
    put(0x50, 0x6001); // power management, the next one is at 0x60
    put(0x60, 0x0010);
    put(0x64, 0x20); // has extended tags
    // Errors are reported, and snooping may be left away, whatever else is set.
    put(0x68, 0x080fU | (relaxed ? 0x10U : 0U) | payload << 5 | (tags ? 0x100U : 0U) |
                  read_request << 12);
    put(0x100, 0x0001);
    put(0x102, 0x1501);
    put(0x150, 0x000d);
    put(0x152, 0x1701);
    put(0x154, 0x007f);
    put(0x156, acs);
    put(0x170, 0x000f);
    put(0x172, 0x0001);
    put(0x176, ats ? 0x8000 : 0);
    return space.substr(0, size);
  }
};

/// Two sockets; next to each a host bridge, a root port (00:01.0, 80:01.0) and a switch (11:00.0,
/// 91:00.0) with four ports (12:00.0 to 12:03.0, 92:00.0 to 92:03.0). Behind the first two are
/// GPUs (13, 14 and 93, 94), behind the others NICs of 400 Gb/s (15, 16 and 95, 96) with a network
/// and an RDMA device each.
struct FakeMachine {
  std::map<std::string, Config> configs; ///< by address
  std::map<std::string, std::string> files;

  FakeMachine() {
    for (const unsigned base : {0x00U, 0x80U}) {
      const auto bus = [base](unsigned number) { return base + number; };
      bridge(fmt::format("{:02x}:01.0", bus(0)), bus(0x11), bus(0x16));
      bridge(fmt::format("{:02x}:00.0", bus(0x11)), bus(0x12), bus(0x16));
      for (unsigned port = 0; port < 4; ++port) {
        bridge(fmt::format("{:02x}:{:02x}.0", bus(0x12), port), bus(0x13 + port), bus(0x13 + port));
        const std::string address = fmt::format("0000:{:02x}:00.0", bus(0x13 + port));
        configs[address] = {};
        const std::string device = "/sys/bus/pci/devices/" + address;
        files[device + "/class"] = port < 2 ? "0x030200\n" : "0x020000\n";
        files[device + "/numa_node"] = base == 0 ? "0\n" : "1\n";
        // Registers, and memory of 128 GiB for GPUs, 32 MiB for NICs.
        files[device + "/resource"] =
            std::string("0x0000000090000000 0x0000000090ffffff 0x0000000000040200\n") +
            (port < 2 ? "0x0000200000000000 0x0000201fffffffff 0x000000000014220c\n"
                      : "0x0000200000000000 0x0000200001ffffff 0x000000000014220c\n") +
            "0x0000000000000000 0x0000000000000000 0x0000000000000000\n";
        for (const char* kind : {"correctable", "nonfatal", "fatal"}) {
          files[fmt::format("{}/aer_dev_{}", device, kind)] = "RxErr 0\nTOTAL_ERR 0\n";
        }
        files[device + "/iommu_group/type"] = "identity\n";
        if (port >= 2) {
          nic(fmt::format("{}", (base > 0 ? 2 : 0) + port - 2), port);
        }
      }
    }
    for (const auto& [path, text] : std::map<std::string, std::string>{
             {"/proc/sys/kernel/osrelease", "6.8.0-90-generic\n"},
             {"/proc/cmdline", "BOOT_IMAGE=/vmlinuz quiet iommu=pt\n"},
             {"/proc/sys/kernel/numa_balancing", "0\n"},
             {"/proc/sys/vm/zone_reclaim_mode", "0\n"},
             {"/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"},
             {"/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"},
             {"/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", "acpi-cpufreq\n"},
             {"/sys/devices/system/cpu/cpu0/cpufreq/energy_performance_preference",
              "performance\n"},
             {"/sys/module/nvidia/version", "570.86.15\n"},
             {"/sys/module/mlx5_core/version", "24.10-1.1.4\n"},
             {"/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module\n"},
             {"/proc/modules", "mlx5_ib 1 0 - Live 0x0\nnvidia_peermem 16384 0 - Live 0x0\n"},
             {"/nvml.csv", "0000:13:00.0,slowed_by,nothing\n0000:13:00.0,ecc_uncorrected,0\n"
                           "0000:13:00.0,row_remapping,done\n0000:13:00.0,pcie_replay,3\n"
                           "0000:13:00.0,nvlink_crc_flit,link 3: 40\n"}}) {
      files[path] = text;
    }
  }

  [[nodiscard]] static Topology topology() {
    Topology t;
    t.objects.push_back({.id = "m0", .kind = ObjectKind::machine});
    unsigned number = 0, bridge = 0;
    for (const unsigned base : {0x00U, 0x80U}) {
      const std::string node = fmt::format("m0/numa{}", base == 0 ? 0 : 1);
      t.objects.push_back({.id = node, .kind = ObjectKind::numa_node, .parent = "m0"});
      const std::string host = fmt::format("m0/bridge{}", bridge++);
      t.objects.push_back({.id = host, .kind = ObjectKind::host_bridge, .parent = node});
      const std::string at = fmt::format("m0/bridge{}", bridge++);
      t.objects.push_back({.id = at,
                           .kind = ObjectKind::pci_bridge,
                           .parent = host,
                           .pci_address = fmt::format("0000:{:02x}:00.0", base + 0x11)});
      for (unsigned port = 0; port < 4; ++port) {
        const bool gpu = port < 2;
        const unsigned own = number + port % 2;
        TopologyObject o{.id = fmt::format("m0/{}{}", gpu ? "gpu" : "nic", own),
                         .kind = gpu ? ObjectKind::gpu : ObjectKind::nic,
                         .parent = at,
                         .name = gpu ? "H100" : fmt::format("eth{0} mlx5_{0}", own),
                         .pci_address = fmt::format("0000:{:02x}:00.0", base + 0x13 + port)};
        if (!gpu) {
          o.link_bytes_per_second = 50e9;
        }
        t.objects.push_back(std::move(o));
      }
      number += 2;
    }
    return t;
  }

  /// All files, and no others.
  [[nodiscard]] SystemFiles in_memory() const {
    SystemFiles all("/no such folder");
    for (const auto& [path, text] : files) {
      all.put(path, text);
    }
    for (const auto& [address, config] : configs) {
      all.put("/sys/bus/pci/devices/" + address + "/config", config.bytes());
    }
    return all;
  }

private:
  void bridge(const std::string& address, unsigned first, unsigned last) {
    configs["0000:" + address] = {.first_bus = first, .last_bus = last};
    files["/sys/bus/pci/devices/0000:" + address + "/class"] = "0x060400\n";
  }
  void nic(const std::string& number, unsigned port) {
    const std::string net = "/sys/class/net/eth" + number,
                      rdma = "/sys/class/infiniband/mlx5_" + number;
    const std::string at = rdma + "/ports/1";
    for (const auto& [path, text] : std::map<std::string, std::string>{
             {net + "/mtu", "9000\n"},
             {net + "/operstate", "up\n"},
             {net + "/carrier_changes", "2\n"},
             {net + "/statistics/rx_errors", "0\n"},
             {net + "/statistics/tx_errors", "0\n"},
             {rdma + "/fw_ver", "28.39.1002\n"},
             {rdma + "/board_id", "MT_0000000838\n"},
             {at + "/state", "4: ACTIVE\n"},
             {at + "/phys_state", "5: LinkUp\n"},
             {at + "/link_layer", "Ethernet\n"},
             {at + "/counters/symbol_error", "0\n"},
             {at + "/counters/link_downed", "1\n"},
             {at + "/hw_counters/out_of_sequence", "100\n"},
             {at + "/gids/0", "fe80:0000:0000:0000:0000:00ff:fe00:0001\n"},
             {at + "/gids/1", "fe80:0000:0000:0000:0000:00ff:fe00:0001\n"},
             {at + "/gids/2", fmt::format("0000:0000:0000:0000:0000:ffff:0a00:00{:02x}\n", port)},
             {at + "/gids/3", fmt::format("0000:0000:0000:0000:0000:ffff:0a00:00{:02x}\n", port)},
             {at + "/gids/4", "0000:0000:0000:0000:0000:0000:0000:0000\n"},
             {at + "/gid_attrs/types/0", "IB/RoCE v1\n"},
             {at + "/gid_attrs/types/1", "RoCE v2\n"},
             {at + "/gid_attrs/types/2", "IB/RoCE v1\n"},
             {at + "/gid_attrs/types/3", "RoCE v2\n"}}) {
      files[path] = text;
    }
  }
};

/// A folder that is gone with this.
class TemporaryFolder {
public:
  TemporaryFolder()
      : m_path(std::filesystem::temp_directory_path() /
               fmt::format("reckon-settings-{}-{}", ::getpid(), s_number++)) {}
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code error;
    std::filesystem::remove_all(m_path, error);
  }
  [[nodiscard]] std::string path() const { return m_path.string(); }

private:
  static inline std::atomic<int> s_number = 0;
  std::filesystem::path m_path;
};

} // namespace reckon::test
