// SPDX-License-Identifier: Apache-2.0
#include "discover/hwloc_tree.hpp"

#include <fmt/format.h>
#include <hwloc.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <map>
#include <utility>

namespace reckon {
namespace {

using PciAttributes = hwloc_obj_attr_u::hwloc_pcidev_attr_s;

constexpr unsigned k_pci_class_network = 0x02;
constexpr unsigned k_pci_class_display = 0x03;
constexpr unsigned k_pci_class_accelerator = 0x12;
constexpr unsigned k_pci_vga = 0x0300;
constexpr unsigned k_vendor_amd = 0x1002;
constexpr unsigned k_vendor_nvidia = 0x10de;

/// The first number in `text`; nullopt when there is none.
std::optional<double> leading_number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} ? std::optional(value) : std::nullopt;
}

std::string address_of(const PciAttributes& pci) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", pci.domain, pci.bus, pci.dev, pci.func);
}

class Builder {
public:
  Builder(hwloc_topology_t topology, std::string machine, const SystemFile& files)
      : m_topology(topology), m_machine(std::move(machine)), m_files(files),
        m_cores_known(hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) > 0) {}

  Topology build() {
    visit(hwloc_get_root_obj(m_topology), "", "");
    return std::move(m_result);
  }

private:
  /// `above` is the nearest object of ours that contains `o`; `inner` is where `o`'s peers hang:
  /// the NUMA node next to them where there is one, `above` otherwise.
  void visit(hwloc_obj_t o, const std::string& above, const std::string& inner) {
    std::string self = emit_normal(o, inner);
    std::string around = self.empty() ? above : self; // contains the memory below o
    std::string below = self.empty() ? inner : self;  // contains the normal children of o
    std::vector<TopologyObject> memories;
    for (hwloc_obj_t m = o->memory_first_child; m != nullptr; m = m->next_sibling) {
      collect_memory(m, around, memories);
    }
    std::string memory; // the node that the caches and cores below o hang from
    if (!memories.empty()) {
      const auto with_cpus = std::find_if(memories.begin(), memories.end(),
                                          [](const auto& node) { return !node.cpus.empty(); });
      memory = with_cpus != memories.end() ? with_cpus->id : memories.front().id;
      below = memory;
    }
    const bool single = memories.size() == 1;
    std::move(memories.begin(), memories.end(), std::back_inserter(m_result.objects));
    for (hwloc_obj_t child = o->first_child; child != nullptr; child = child->next_sibling) {
      visit(child, around, below);
    }
    // What hangs from the whole machine may just have an unknown place.
    const bool local = o->type != HWLOC_OBJ_MACHINE && single;
    for (hwloc_obj_t child = o->io_first_child; child != nullptr; child = child->next_sibling) {
      visit_io(child, local ? memory : below == memory ? around : below);
    }
  }

  std::string emit_normal(hwloc_obj_t o, const std::string& parent) {
    TopologyObject made;
    made.parent = parent;
    switch (o->type) {
    case HWLOC_OBJ_MACHINE:
      made.id = m_machine;
      made.kind = ObjectKind::machine;
      made.name = info(o, "DMIProductName");
      break;
    case HWLOC_OBJ_PACKAGE:
      made.id = id("pkg", o->logical_index);
      made.kind = ObjectKind::package;
      made.name = info(o, "CPUModel");
      made.os_index = os_index(o);
      break;
    case HWLOC_OBJ_CORE:
      made.id = id("core", o->logical_index);
      made.kind = ObjectKind::core;
      made.os_index = os_index(o);
      made.cpus = cpus(o);
      break;
    case HWLOC_OBJ_PU:
      if (m_cores_known) {
        return "";
      }
      made.id = id("core", o->logical_index);
      made.kind = ObjectKind::core;
      made.os_index = os_index(o);
      made.cpus = cpus(o);
      break;
    case HWLOC_OBJ_L1CACHE:
    case HWLOC_OBJ_L2CACHE:
    case HWLOC_OBJ_L3CACHE:
    case HWLOC_OBJ_L4CACHE:
    case HWLOC_OBJ_L5CACHE: {
      const unsigned level = o->attr->cache.depth;
      made.id = id(fmt::format("l{}-", level), o->logical_index);
      made.kind = ObjectKind::cache;
      made.cache_level = static_cast<int>(level);
      made.bytes = o->attr->cache.size;
      break;
    }
    default:
      return "";
    }
    std::string made_id = made.id;
    m_result.objects.push_back(std::move(made));
    return made_id;
  }

  /// NUMA nodes, also behind a memory-side cache.
  void collect_memory(hwloc_obj_t o, const std::string& parent,
                      std::vector<TopologyObject>& found) const {
    if (o->type == HWLOC_OBJ_NUMANODE) {
      TopologyObject made;
      made.id = id("numa", o->logical_index);
      made.kind = ObjectKind::numa_node;
      made.parent = parent;
      made.os_index = os_index(o);
      made.bytes = o->attr->numanode.local_memory;
      made.cpus = cpus(o);
      found.push_back(std::move(made));
    }
    for (hwloc_obj_t m = o->memory_first_child; m != nullptr; m = m->next_sibling) {
      collect_memory(m, parent, found);
    }
  }

  void visit_io(hwloc_obj_t o, const std::string& parent) {
    std::string below = parent;
    if (o->type == HWLOC_OBJ_BRIDGE) {
      TopologyObject made;
      made.id = id("bridge", m_bridges++);
      made.kind = ObjectKind::pci_bridge;
      made.parent = parent;
      const auto& bridge = o->attr->bridge;
      if (bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI) {
        made.name = o->name != nullptr ? o->name : "";
        made.pci_address = address_of(bridge.upstream.pci);
        set_pci_speed(made, bridge.upstream.pci);
      } else {
        made.name =
            fmt::format("host bridge, buses {:04x}:{:02x}-{:02x}", bridge.downstream.pci.domain,
                        bridge.downstream.pci.secondary_bus, bridge.downstream.pci.subordinate_bus);
      }
      below = made.id;
      m_result.objects.push_back(std::move(made));
    } else if (o->type == HWLOC_OBJ_PCI_DEVICE) {
      emit_pci_device(o, parent);
    } else if (o->type == HWLOC_OBJ_OS_DEVICE &&
               (o->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK ||
                o->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS)) {
      emit_nic(parent, "", {o}); // a port that is not on the PCI bus
    }
    for (hwloc_obj_t child = o->io_first_child; child != nullptr; child = child->next_sibling) {
      if (o->type != HWLOC_OBJ_PCI_DEVICE || child->type != HWLOC_OBJ_OS_DEVICE) {
        visit_io(child, below);
      }
    }
  }

  void emit_pci_device(hwloc_obj_t o, const std::string& parent) {
    const PciAttributes& pci = o->attr->pcidev;
    std::vector<hwloc_obj_t> ports;
    bool computes = false;
    for (hwloc_obj_t child = o->io_first_child; child != nullptr; child = child->next_sibling) {
      if (child->type != HWLOC_OBJ_OS_DEVICE) {
        continue;
      }
      const auto type = child->attr->osdev.type;
      if (type == HWLOC_OBJ_OSDEV_NETWORK || type == HWLOC_OBJ_OSDEV_OPENFABRICS) {
        ports.push_back(child);
      }
      computes = computes || type == HWLOC_OBJ_OSDEV_COPROC;
    }
    const unsigned base = pci.class_id >> 8U;
    if (!ports.empty()) {
      emit_nic(parent, address_of(pci), ports);
    } else if (base == k_pci_class_network && o->name != nullptr) {
      emit_nic(parent, address_of(pci), {}, o->name);
    } else if (computes || is_gpu(pci, base)) {
      TopologyObject made;
      made.id = id("gpu", m_gpus++);
      made.kind = ObjectKind::gpu;
      made.parent = parent;
      made.name = o->name != nullptr ? o->name : info(o, "PCIDevice");
      made.pci_address = address_of(pci);
      set_pci_speed(made, pci);
      m_result.objects.push_back(std::move(made));
    }
  }

  /// Display and accelerator devices, but not the frame buffer of a board's management controller.
  static bool is_gpu(const PciAttributes& pci, unsigned base) {
    if (base == k_pci_class_accelerator) {
      return pci.vendor_id == k_vendor_amd || pci.vendor_id == k_vendor_nvidia;
    }
    if (base != k_pci_class_display) {
      return false;
    }
    return pci.class_id != k_pci_vga || pci.vendor_id == k_vendor_amd ||
           pci.vendor_id == k_vendor_nvidia;
  }

  void emit_nic(const std::string& parent, const std::string& address,
                const std::vector<hwloc_obj_t>& ports, const std::string& fallback_name = "") {
    TopologyObject made;
    made.id = id("nic", m_nics++);
    made.kind = ObjectKind::nic;
    made.parent = parent;
    made.pci_address = address;
    made.name = fallback_name;
    for (const hwloc_obj_t port : ports) {
      if (port->name == nullptr) {
        continue;
      }
      made.name += (made.name.empty() ? "" : " ") + std::string(port->name);
      if (const auto speed = port_speed(port)) {
        // The Ethernet and the RDMA device of one card are the same port: do not add them up.
        made.link_bytes_per_second = std::max(made.link_bytes_per_second.value_or(0), *speed);
      }
    }
    m_result.objects.push_back(std::move(made));
  }

  /// Bytes per second, one direction, as negotiated now.
  std::optional<double> port_speed(hwloc_obj_t port) const {
    if (!m_files) {
      return std::nullopt;
    }
    if (port->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK) {
      // In Mbit/s; -1 or an error when the link is down or has no speed of its own (virtio).
      const auto text = m_files(fmt::format("/sys/class/net/{}/speed", port->name));
      const auto megabits = text ? leading_number(*text) : std::nullopt;
      return megabits && *megabits > 0 ? std::optional(*megabits * 1e6 / 8) : std::nullopt;
    }
    double sum = 0;
    for (int i = 1; i <= 8; ++i) { // ports of one adapter, as "100 Gb/sec (4X EDR)"
      const std::string base = fmt::format("/sys/class/infiniband/{}/ports/{}/", port->name, i);
      const auto rate = m_files(base + "rate");
      if (!rate) {
        break;
      }
      const auto state = m_files(base + "state"); // "4: ACTIVE"
      const auto gigabits = leading_number(*rate);
      if (gigabits && state && state->find("ACTIVE") != std::string::npos) {
        sum += *gigabits * 1e9 / 8;
      }
    }
    return sum > 0 ? std::optional(sum) : std::nullopt;
  }

  static void set_pci_speed(TopologyObject& object, const PciAttributes& pci) {
    if (pci.linkspeed > 0) { // in 1e9 bytes per second
      object.link_bytes_per_second = static_cast<double>(pci.linkspeed) * 1e9;
    }
  }

  [[nodiscard]] std::string id(std::string_view what, unsigned number) const {
    return fmt::format("{}/{}{}", m_machine, what, number);
  }

  static std::optional<int> os_index(hwloc_obj_t o) {
    return o->os_index == HWLOC_UNKNOWN_INDEX ? std::nullopt
                                              : std::optional(static_cast<int>(o->os_index));
  }

  static std::string info(hwloc_obj_t o, const char* key) {
    const char* const value = hwloc_obj_get_info_by_name(o, key);
    return value != nullptr ? value : "";
  }

  [[nodiscard]] std::vector<int> cpus(hwloc_obj_t o) const {
    std::vector<int> list;
    const hwloc_const_cpuset_t allowed = hwloc_topology_get_allowed_cpuset(m_topology);
    for (int cpu = hwloc_bitmap_first(o->cpuset); cpu != -1;
         cpu = hwloc_bitmap_next(o->cpuset, cpu)) {
      if (hwloc_bitmap_isset(allowed, static_cast<unsigned>(cpu)) != 0) {
        list.push_back(cpu);
      }
    }
    return list;
  }

  hwloc_topology_t m_topology;
  std::string m_machine;
  const SystemFile& m_files;
  bool m_cores_known;
  unsigned m_bridges = 0, m_gpus = 0, m_nics = 0;
  Topology m_result;
};

} // namespace

SystemFile real_system_files() {
  return [](const std::string& path) -> std::optional<std::string> {
    std::ifstream file(path);
    if (!file) {
      return std::nullopt;
    }
    std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    if (file.bad() ||
        (text.empty() && file.fail())) { // reading "speed" of a link that is down fails
      return std::nullopt;
    }
    text.erase(text.find_last_not_of(" \t\n") + 1);
    return text;
  };
}

Topology topology_from_hwloc(hwloc_topology* topology, const std::string& machine,
                             const SystemFile& files) {
  return Builder(topology, machine, files).build();
}

} // namespace reckon
