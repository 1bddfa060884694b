// SPDX-License-Identifier: Apache-2.0
#include "settings/settings.hpp"

#include "core/whole_number.hpp"
#include "settings/config_space.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>

namespace reckon {

using namespace settings_detail;

namespace {

const std::string k_devices = "/sys/bus/pci/devices";

using Text = std::optional<std::string>;

Text whole(const std::string& text) {
  return text;
}

/// "always [madvise] never" -> "madvise"
Text chosen(const std::string& text) {
  const std::size_t open = text.find('[');
  const std::size_t close = text.find(']', open == text.npos ? 0 : open);
  return open == text.npos || close == text.npos ? Text() : text.substr(open + 1, close - open - 1);
}

/// The largest of the ranges of a function, a line each: first and last address, and flags.
Text largest_bar(const std::string& text) {
  unsigned long long largest = 0;
  std::istringstream lines(text);
  std::string first, last, flags;
  while (lines >> first >> last >> flags) {
    largest = std::max(largest, std::strtoull(last.c_str(), nullptr, 16) -
                                    std::strtoull(first.c_str(), nullptr, 16) + 1);
  }
  return largest > 1 ? Text(fmt::format("{}", largest)) : Text();
}

/// The words of the kernel's command line that decide on the IOMMU and on PCI.
Text iommu_words(const std::string& text) {
  std::string found;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (word.find("iommu") != word.npos || word.starts_with("pci=")) {
      found += (found.empty() ? "" : " ") + word;
    }
  }
  return found.empty() ? Text() : found;
}

/// A file with one fact: {} is the place's PCI address or device.
struct FileFact {
  const char* name;
  const char* file;
  Text (*read)(const std::string& text) = whole;
};

constexpr std::array<FileFact, 15> k_machine_facts{{
    {"kernel", "/proc/sys/kernel/osrelease"},
    {"kernel_options", "/proc/cmdline", iommu_words},
    {"numa_balancing", "/proc/sys/kernel/numa_balancing"},
    {"zone_reclaim", "/proc/sys/vm/zone_reclaim_mode"},
    {"transparent_huge_pages", "/sys/kernel/mm/transparent_hugepage/enabled", chosen},
    {"governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"},
    {"clock_driver", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver"},
    {"energy_preference", "/sys/devices/system/cpu/cpu0/cpufreq/energy_performance_preference"},
    {"driver_nvidia", "/sys/module/nvidia/version"},
    {"driver_amdgpu", "/sys/module/amdgpu/version"},
    {"driver_mlx5", "/sys/module/mlx5_core/version"},
    {"driver_bnxt", "/sys/module/bnxt_re/version"},
    {"driver_efa", "/sys/module/efa/version"},
    {"driver_irdma", "/sys/module/irdma/version"},
    {"driver_ena", "/sys/module/ena/version"},
}};
constexpr std::array<FileFact, 2> k_function_facts{{
    {"numa_node", "/sys/bus/pci/devices/{}/numa_node"},
    {"iommu", "/sys/bus/pci/devices/{}/iommu_group/type"},
}};
constexpr std::array<FileFact, 1> k_gpu_facts{{
    {"largest_bar_bytes", "/sys/bus/pci/devices/{}/resource", largest_bar},
}};
constexpr std::array<FileFact, 4> k_device_facts{{
    {"mtu", "/sys/class/net/{}/mtu"},
    {"operstate", "/sys/class/net/{}/operstate"},
    {"nic_firmware", "/sys/class/infiniband/{}/fw_ver"},
    {"board", "/sys/class/infiniband/{}/board_id"},
}};
constexpr std::array<FileFact, 3> k_port_facts{{
    {"state", "/sys/class/infiniband/{}/state"},
    {"physical_state", "/sys/class/infiniband/{}/phys_state"},
    {"link_layer", "/sys/class/infiniband/{}/link_layer"},
}};

/// A bridge, by the buses behind it.
struct Bridge {
  std::string address, domain;
  unsigned first_bus = 0, last_bus = 0;
};

/// Of "domain:bus:device.function"; nothing: it is no address of PCI.
std::optional<unsigned> bus_of(const std::string& address) {
  const std::size_t colon = address.find(':');
  return colon == address.npos
             ? std::nullopt
             : whole_number<unsigned>(std::string_view(address).substr(colon + 1, 2), 16);
}

class Reader {
public:
  Reader(const Topology& topology, const SystemFiles& files)
      : m_topology(topology), m_files(files) {}

  std::vector<Setting> read() {
    read_facts(k_machine, k_machine_facts, "");
    find_bridges();
    for (const TopologyObject& object : m_topology.objects) {
      if (!object.pci_address.empty()) {
        read_function(object);
      }
      if (object.kind == ObjectKind::nic) {
        read_ports(object);
      }
    }
    for (const std::string& device : other_devices(m_topology, m_files)) {
      read_facts(k_machine, k_device_facts, device);
    }
    read_gpu_direct();
    for (const NvmlRow& row : nvml_rows(m_topology, m_files)) {
      add(row.place, row.name, row.value, k_nvml_file);
    }
    std::sort(m_settings.begin(), m_settings.end());
    m_settings.erase(std::unique(m_settings.begin(), m_settings.end()), m_settings.end());
    return std::move(m_settings);
  }

private:
  void add(const std::string& place, std::string name, std::string value, std::string file) {
    m_settings.push_back({place, "", std::move(name), std::move(value), std::move(file)});
  }

  template <class Facts>
  void read_facts(const std::string& place, const Facts& facts, const std::string& of) {
    for (const FileFact& fact : facts) {
      const std::string file = fmt::format(fmt::runtime(fact.file), of);
      const Text text = m_files.text(file);
      if (const Text value = text && !text->empty() ? fact.read(*text) : Text()) {
        add(place, fact.name, *value, file);
      }
    }
  }

  /// All bridges of the machine: those between an object and its parent are no objects. A bridge
  /// whose buses do not have greater numbers than its own is left out: the way up would be a
  /// circle.
  void find_bridges() {
    for (const std::string& address : m_files.names(k_devices)) {
      const std::string folder = k_devices + "/" + address;
      const std::optional<unsigned> bus = bus_of(address);
      if (!bus || !m_files.text(folder + "/class").value_or("").starts_with("0x0604")) {
        continue;
      }
      const ConfigSpace space(m_files.bytes(folder + "/config").value_or(""));
      if (const unsigned first = space.byte(0x19); *bus < first) {
        m_bridges.push_back(
            {address, address.substr(0, address.find(':')), first, space.byte(0x1a)});
      }
    }
  }

  /// The bridge on the way from a function to the processor; nullptr: there is none.
  [[nodiscard]] const Bridge* bridge_above(const std::string& address) const {
    const std::optional<unsigned> bus = bus_of(address);
    if (!bus) {
      return nullptr;
    }
    const std::string domain = address.substr(0, address.find(':'));
    const Bridge* nearest = nullptr;
    for (const Bridge& bridge : m_bridges) {
      if (bridge.domain == domain && bridge.first_bus <= *bus && *bus <= bridge.last_bus &&
          (nearest == nullptr || bridge.first_bus > nearest->first_bus)) {
        nearest = &bridge;
      }
    }
    return nearest;
  }

  void read_config(const std::string& place, const std::string& address,
                   const std::vector<ConfigFact>& facts) {
    const std::string file = k_devices + "/" + address + "/config";
    const auto bytes = m_files.bytes(file);
    if (!bytes) {
      return;
    }
    const ConfigSpace space(*bytes);
    if (!space.has_capabilities()) {
      add(place, "config_space", fmt::format("{} bytes", bytes->size()), file);
    }
    for (const ConfigFact& fact : facts) {
      if (const auto value = fact.read(space)) {
        add(place, fact.name, *value, file);
      }
    }
  }

  void read_function(const TopologyObject& object) {
    const bool device = object.kind == ObjectKind::gpu || object.kind == ObjectKind::nic;
    const std::string& address = object.pci_address;
    if (device) {
      read_config(object.id, address, function_facts());
      read_facts(object.id, k_function_facts, address);
    }
    if (object.kind == ObjectKind::gpu) {
      read_facts(object.id, k_gpu_facts, address);
    }
    // The ports between it and the next object above.
    std::string end;
    for (const TopologyObject* above = m_topology.find(object.parent);
         above != nullptr && end.empty(); above = m_topology.find(above->parent)) {
      end = above->pci_address;
    }
    for (const Bridge* port = bridge_above(address); port != nullptr && port->address != end;
         port = bridge_above(port->address)) {
      read_config(object.id, port->address, port_facts());
    }
  }

  void read_ports(const TopologyObject& nic) {
    for (const std::string& device : device_names(nic)) {
      read_facts(nic.id, k_device_facts, device);
      for (const std::string& port : m_files.names("/sys/class/infiniband/" + device + "/ports")) {
        const std::string of = device + "/ports/" + port;
        read_facts(nic.id, k_port_facts, of);
        read_gids(nic.id, "/sys/class/infiniband/" + of);
        m_rdma = true;
      }
    }
  }

  /// The numbers of a port's addresses for RoCE v2: what NCCL_IB_GID_INDEX names.
  void read_gids(const std::string& place, const std::string& port) {
    if (m_files.text(port + "/link_layer") != "Ethernet") {
      return;
    }
    std::vector<int> ipv4, ipv6;
    for (const std::string& number : m_files.names(port + "/gids")) {
      const std::string gid = m_files.text(port + "/gids/" + number).value_or("");
      if (gid.find_first_not_of("0:") != gid.npos &&
          m_files.text(port + "/gid_attrs/types/" + number) == "RoCE v2") {
        (gid.starts_with("0000:0000:0000:0000:0000:ffff:") ? ipv4 : ipv6)
            .push_back(std::atoi(number.c_str()));
      }
    }
    std::sort(ipv4.begin(), ipv4.end());
    std::sort(ipv6.begin(), ipv6.end());
    add(place, "roce_v2_gids",
        !ipv4.empty()   ? fmt::format("IPv4 at {}", fmt::join(ipv4, " "))
        : !ipv6.empty() ? fmt::format("IPv6 at {}", fmt::join(ipv6, " "))
                        : "none",
        port + "/gid_attrs/types");
  }

  /// How NICs reach the memory of NVIDIA's GPUs: by a module, or by dma-buf, which the open driver
  /// offers.
  void read_gpu_direct() {
    const Text driver = m_files.text("/proc/driver/nvidia/version");
    if (!driver || !m_rdma) {
      return;
    }
    const std::string modules = "\n" + m_files.text("/proc/modules").value_or("");
    const bool module = modules.find("\nnvidia_peermem ") != modules.npos ||
                        modules.find("\nnv_peer_mem ") != modules.npos;
    const bool open = driver->find("Open Kernel Module") != driver->npos;
    add(k_machine, "gpu_direct_rdma",
        module ? "module"
        : open ? "dma-buf"
               : "none",
        module || !open ? "/proc/modules" : "/proc/driver/nvidia/version");
  }

  const Topology& m_topology;
  const SystemFiles& m_files;
  std::vector<Bridge> m_bridges;
  bool m_rdma = false;
  std::vector<Setting> m_settings;
};

} // namespace

namespace settings_detail {

std::vector<std::string> device_names(const TopologyObject& nic) {
  std::istringstream words(nic.name);
  std::vector<std::string> names;
  for (std::string word; words >> word;) {
    names.push_back(word);
  }
  return names;
}

std::vector<std::string> other_devices(const Topology& topology, const SystemFiles& files) {
  std::set<std::string> with_nic, found;
  for (const TopologyObject* nic : topology.of_kind(ObjectKind::nic)) {
    for (std::string& name : device_names(*nic)) {
      with_nic.insert(std::move(name));
    }
  }
  std::istringstream routes(files.text("/proc/net/route").value_or(""));
  std::string line;
  std::getline(routes, line); // names of the columns
  while (std::getline(routes, line)) {
    std::istringstream words(line);
    std::vector<std::string> columns(std::istream_iterator<std::string>(words), {});
    constexpr std::size_t k_mask = 7;
    if (columns.size() <= k_mask || columns[k_mask] == "FFFFFFFF" || // to another container here
        with_nic.contains(columns[0])) {
      continue;
    }
    // The kernel says of what it makes by itself, as bridges and tunnels, what it is.
    const std::string device = "/sys/class/net/" + columns[0];
    const std::string about = files.text(device + "/uevent").value_or("");
    const bool made = about.find("DEVTYPE=") != about.npos &&
                      about.find("DEVTYPE=bond") == about.npos &&
                      about.find("DEVTYPE=vlan") == about.npos;
    if (!made && files.text(device + "/type") == "1") { // Ethernet
      found.insert(columns[0]);
    }
  }
  return {found.begin(), found.end()};
}

} // namespace settings_detail

std::vector<Setting> read_settings(const Topology& topology, const SystemFiles& files) {
  return Reader(topology, files).read();
}

} // namespace reckon
