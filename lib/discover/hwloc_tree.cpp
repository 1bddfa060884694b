// SPDX-License-Identifier: Apache-2.0
#include "discover/hwloc_tree.hpp"

#include "core/csv.hpp"
#include "discover/cables.hpp"
#include "topology/gpu_models.hpp"

#include <fmt/format.h>
#include <hwloc.h>
#include <hwloc/distances.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace reckon {
namespace {

using PciAttributes = hwloc_obj_attr_u::hwloc_pcidev_attr_s;

constexpr unsigned k_pci_class_network = 0x02;
constexpr unsigned k_pci_class_display = 0x03;
constexpr unsigned k_pci_class_accelerator = 0x12;
constexpr unsigned k_pci_vga = 0x0300;
constexpr unsigned k_pci_other_bridge = 0x0680; // an NVSwitch says that it is one
constexpr unsigned k_vendor_amd = 0x1002;
constexpr unsigned k_vendor_nvidia = 0x10de;
constexpr unsigned k_device_es1000 = 0x515e; // AMD's frame buffer for server boards

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
    read_peer_links();
    share_cables(m_result, m_ports);
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
    case HWLOC_OBJ_PU:
      if (m_cores_known) {
        return "";
      }
      [[fallthrough]];
    case HWLOC_OBJ_CORE:
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

  /// What the objects below a bridge hang from. PCIe alternates: below a host bridge are root
  /// ports, below a port a switch's upstream port, below that its downstream ports.
  enum class Above { host, port, upstream };

  void visit_io(hwloc_obj_t o, const std::string& parent, Above above = Above::host) {
    if (o->type == HWLOC_OBJ_BRIDGE) {
      visit_bridge(o, parent, above);
      return;
    }
    if (o->type == HWLOC_OBJ_PCI_DEVICE) {
      emit_pci_device(o, parent);
    } else if (o->type == HWLOC_OBJ_OS_DEVICE &&
               (o->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK ||
                o->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS)) {
      emit_nic(parent, nullptr, {o}); // a port that is not on the PCI bus
    }
    for (hwloc_obj_t child = o->io_first_child; child != nullptr; child = child->next_sibling) {
      if (o->type != HWLOC_OBJ_PCI_DEVICE || child->type != HWLOC_OBJ_OS_DEVICE) {
        visit_io(child, parent, above);
      }
    }
  }

  void visit_bridge(hwloc_obj_t o, const std::string& parent, Above above) {
    const auto& bridge = o->attr->bridge;
    TopologyObject made;
    made.id = id("bridge", m_bridges);
    made.parent = parent;
    if (bridge.upstream_type != HWLOC_OBJ_BRIDGE_PCI) {
      made.kind = ObjectKind::host_bridge;
      made.name =
          fmt::format("buses {:04x}:{:02x}-{:02x}", bridge.downstream.pci.domain,
                      bridge.downstream.pci.secondary_bus, bridge.downstream.pci.subordinate_bus);
      emit_above(o, std::move(made), Above::host, 1);
      return;
    }
    made.kind = ObjectKind::pci_bridge;
    set_pci_speed(made, bridge.upstream.pci, o);
    if (above != Above::port && !joins_cards(o)) { // a port: what it leads to shares its link
      emit_above(o, std::move(made), Above::port, 2);
      return;
    }
    made.name = o->name != nullptr ? o->name : "";
    made.pci_address = address_of(bridge.upstream.pci);
    emit_above(o, std::move(made), Above::upstream, 1);
  }

  /// Whether different cards or bridges hang from this bridge: then it is no port, which leads to
  /// one. Ports that firmware or a virtual machine draws with several count as switches.
  static bool joins_cards(hwloc_obj_t bridge) {
    const auto slot = [](hwloc_obj_t o) {
      const std::string address =
          address_of(o->type == HWLOC_OBJ_BRIDGE ? o->attr->bridge.upstream.pci : o->attr->pcidev);
      return address.substr(0, address.rfind('.'));
    };
    hwloc_obj_t first = bridge->io_first_child;
    for (hwloc_obj_t child = first; child != nullptr; child = child->next_sibling) {
      if (child != first && slot(child) != slot(first)) {
        return true;
      }
    }
    return false;
  }

  /// Emits `made` for the bridge `o` and what is below it. With fewer than `fewest` children it is
  /// left out, and its children, if any, hang from its parent.
  void emit_above(hwloc_obj_t o, TopologyObject made, Above role, std::size_t fewest) {
    const std::size_t place = m_result.objects.size();
    const std::string made_id = made.id;
    const std::string parent = made.parent;
    m_result.objects.push_back(std::move(made));
    const unsigned number = m_bridges++;
    for (hwloc_obj_t child = o->io_first_child; child != nullptr; child = child->next_sibling) {
      visit_io(child, made_id, role);
    }
    std::vector<TopologyObject*> children;
    for (std::size_t i = place + 1; i < m_result.objects.size(); ++i) {
      if (m_result.objects[i].parent == made_id) {
        children.push_back(&m_result.objects[i]);
      }
    }
    if (children.size() >= fewest) {
      return;
    }
    for (TopologyObject* child : children) {
      child->parent = parent;
    }
    m_result.objects.erase(m_result.objects.begin() + static_cast<std::ptrdiff_t>(place));
    // The numbers of bridges follow one another.
    m_bridges = number;
    for (std::size_t i = place; i < m_result.objects.size(); ++i) {
      TopologyObject& object = m_result.objects[i];
      if (object.kind != ObjectKind::host_bridge && object.kind != ObjectKind::pci_bridge) {
        continue;
      }
      const std::string before = object.id;
      object.id = id("bridge", m_bridges++);
      for (std::size_t j = i + 1; j < m_result.objects.size(); ++j) {
        if (m_result.objects[j].parent == before) {
          m_result.objects[j].parent = object.id;
        }
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
      emit_nic(parent, o, ports);
    } else if (base == k_pci_class_network && o->name != nullptr) {
      emit_nic(parent, o, {}, o->name);
    } else if (is_link_switch(o)) {
      m_link_switches.push_back(o);
    } else if (computes || is_gpu(pci, base)) {
      TopologyObject made;
      made.id = id("gpu", m_gpus++);
      made.kind = ObjectKind::gpu;
      made.parent = parent;
      made.name = o->name != nullptr ? o->name : info(o, "PCIDevice");
      for (hwloc_obj_t child = o->io_first_child; child != nullptr; child = child->next_sibling) {
        if (const std::string model = info(child, "GPUModel"); !model.empty()) {
          made.name = model;
        }
      }
      made.pci_address = address_of(pci);
      set_pci_speed(made, pci, o);
      m_ids[o] = made.id;
      m_result.objects.push_back(std::move(made));
    }
  }

  /// By its class, or by what hwloc calls it: a switch that was off when the XML was written has no
  /// class.
  static bool is_link_switch(hwloc_obj_t device) {
    const PciAttributes& pci = device->attr->pcidev;
    const std::string_view subtype = device->subtype == nullptr ? "" : device->subtype;
    return subtype == "NVSwitch" ||
           (pci.class_id == k_pci_other_bridge && pci.vendor_id == k_vendor_nvidia);
  }

  /// Display and accelerator devices, but not the frame buffer of a board's management controller.
  static bool is_gpu(const PciAttributes& pci, unsigned base) {
    if (base == k_pci_class_accelerator) {
      return pci.vendor_id == k_vendor_amd || pci.vendor_id == k_vendor_nvidia;
    }
    if (base != k_pci_class_display) {
      return false;
    }
    return pci.class_id != k_pci_vga || pci.vendor_id == k_vendor_nvidia ||
           (pci.vendor_id == k_vendor_amd && pci.device_id != k_device_es1000);
  }

  /// `device`: nullptr when it is not on the PCI bus.
  void emit_nic(const std::string& parent, hwloc_obj_t device,
                const std::vector<hwloc_obj_t>& ports, const std::string& fallback_name = "") {
    TopologyObject made;
    made.id = id("nic", m_nics++);
    made.kind = ObjectKind::nic;
    made.parent = parent;
    if (device != nullptr) {
      made.pci_address = address_of(device->attr->pcidev);
      set_pci_speed(made, device->attr->pcidev, device);
      made.link_bytes_per_second.reset(); // of a NIC that is the port's
    }
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
    if (const std::string port = m_files ? port_of(made.pci_address, made.name, m_files) : "";
        !port.empty()) {
      m_ports[made.id] = port;
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

  /// hwloc knows the rate of a link, but not its generation and width; /sys knows both.
  void set_pci_speed(TopologyObject& object, const PciAttributes& pci, hwloc_obj_t device) const {
    if (pci.linkspeed > 0) { // in 1e9 bytes per second
      object.link_bytes_per_second = static_cast<double>(pci.linkspeed) * 1e9;
      object.pcie_bytes_per_second = object.link_bytes_per_second;
    }
    if (!m_files) {
      return;
    }
    object.pcie = pcie_of(address_of(pci), "current");
    if (object.pcie) {
      object.pcie_bytes_per_second.reset();
    }
    object.pcie_possible = pcie_of(address_of(pci), "max");
    const hwloc_obj_t port = device->parent;
    if (object.pcie_possible && port != nullptr && port->type == HWLOC_OBJ_BRIDGE &&
        port->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI) {
      if (const auto other = pcie_of(address_of(port->attr->bridge.upstream.pci), "max")) {
        PcieLink& both = *object.pcie_possible;
        both.transfers_per_second =
            std::min(both.transfers_per_second, other->transfers_per_second);
        both.width = std::min(both.width, other->width);
      }
    }
  }

  /// `which`: "current" or "max".
  [[nodiscard]] std::optional<PcieLink> pcie_of(const std::string& address,
                                                std::string_view which) const {
    const std::string base = fmt::format("/sys/bus/pci/devices/{}/{}_link_", address, which);
    const auto speed = m_files(base + "speed"); // "16.0 GT/s PCIe", "Unknown"
    const auto width = m_files(base + "width"); // "16"; 0, 63 or 255 when there is no link
    const auto rate = speed ? leading_number(*speed) : std::nullopt;
    const auto lanes = width ? leading_number(*width) : std::nullopt;
    if (!rate || !lanes || *rate <= 0 || *lanes < 1 || *lanes > 32) {
      return std::nullopt;
    }
    return PcieLink{*rate * 1e9, static_cast<int>(*lanes)};
  }

  /// NVLinks and xGMI links, which hwloc gives as matrices of bandwidths in 1e6 bytes per second,
  /// one direction.
  void read_peer_links() {
    if (!m_link_switches.empty()) {
      TopologyObject made;
      made.id = m_machine + "/nvswitch0";
      made.kind = ObjectKind::link_switch;
      made.parent = m_machine;
      made.name = fmt::format("{} x NVSwitch", m_link_switches.size());
      for (const hwloc_obj_t o : m_link_switches) {
        m_ids[o] = made.id;
      }
      m_result.objects.push_back(std::move(made));
    }
    read_bandwidths("NVLinkBandwidth", PeerLinkKind::nvlink);
    read_bandwidths("XGMIBandwidth", PeerLinkKind::xgmi);
    complete_nvlinks(m_result, m_machine);
  }

  void read_bandwidths(const char* name, PeerLinkKind kind) {
    hwloc_distances_s* matrix = nullptr;
    unsigned found = 1;
    if (hwloc_distances_get_by_name(m_topology, name, &found, &matrix, 0) != 0 || found == 0) {
      return;
    }
    std::map<std::pair<std::size_t, std::size_t>, std::pair<double, int>> sums; // by places
    for (unsigned i = 0; i < matrix->nbobjs; ++i) {
      for (unsigned j = i + 1; j < matrix->nbobjs; ++j) {
        const auto there = matrix->values[i * matrix->nbobjs + j];
        const auto back = matrix->values[j * matrix->nbobjs + i];
        const double megabytes = static_cast<double>(std::max(there, back));
        const auto from = place_of(matrix->objs[i]);
        const auto to = place_of(matrix->objs[j]);
        if (megabytes <= 0 || !from || !to || *from == *to) {
          continue;
        }
        auto& [rate, count] = sums[std::minmax(*from, *to)];
        rate += megabytes * 1e6;
        count += link_count(kind, megabytes, *from, *to);
      }
    }
    hwloc_distances_release(m_topology, matrix);
    for (const auto& [ends, sum] : sums) {
      m_result.links.push_back({.kind = kind,
                                .from = m_result.objects[ends.first].id,
                                .to = m_result.objects[ends.second].id,
                                .count = sum.second,
                                .bytes_per_second = sum.first});
    }
  }

  /// How many links have that bandwidth together: of NVLink 1 (Pascal) 20 GB/s each, from 2 on 25
  /// GB/s, of NVLink 5 50 GB/s. Of xGMI hwloc tells no more than the sum.
  [[nodiscard]] int link_count(PeerLinkKind kind, double megabytes, std::size_t from,
                               std::size_t to) const {
    if (kind != PeerLinkKind::nvlink) {
      return 1;
    }
    double each = 25'000;
    for (const std::size_t place : {from, to}) {
      const std::string& name = m_result.objects[place].name;
      if (name.find("P100") != std::string::npos) {
        each = 20'000;
      } else if (name.find("B200") != std::string::npos || name.find("B300") != std::string::npos) {
        each = 50'000;
      }
    }
    return std::max(1, static_cast<int>(megabytes / each + 0.5));
  }

  /// Where the object of ours stands that a matrix means by `o`; a package stands for its memory.
  [[nodiscard]] std::optional<std::size_t> place_of(hwloc_obj_t o) const {
    for (hwloc_obj_t at = o; at != nullptr; at = at->parent) {
      if (const auto it = m_ids.find(at); it != m_ids.end()) {
        return place_of(it->second);
      }
      if (at->type != HWLOC_OBJ_OS_DEVICE) {
        break;
      }
    }
    if (o->type == HWLOC_OBJ_PACKAGE || o->type == HWLOC_OBJ_NUMANODE) {
      const int node = hwloc_bitmap_first(o->nodeset);
      const hwloc_obj_t numa =
          node < 0 ? nullptr
                   : hwloc_get_numanode_obj_by_os_index(m_topology, static_cast<unsigned>(node));
      return numa == nullptr ? std::nullopt : place_of(id("numa", numa->logical_index));
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<std::size_t> place_of(const std::string& object_id) const {
    for (std::size_t i = 0; i < m_result.objects.size(); ++i) {
      if (m_result.objects[i].id == object_id) {
        return i;
      }
    }
    return std::nullopt;
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
    for (int cpu = hwloc_bitmap_first(allowed); cpu != -1; cpu = hwloc_bitmap_next(allowed, cpu)) {
      if (hwloc_bitmap_isset(o->cpuset, static_cast<unsigned>(cpu)) != 0) {
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
  std::map<hwloc_obj_t, std::string> m_ids; // of GPUs and NVSwitches
  std::vector<hwloc_obj_t> m_link_switches;
  std::map<std::string, std::string> m_ports; // of NICs
  Topology m_result;
};

} // namespace

void DestroyHwloc::operator()(hwloc_topology* topology) const noexcept {
  hwloc_topology_destroy(topology);
}

HwlocTopology load_hwloc(const char* choice, const std::function<int(hwloc_topology*)>& choose,
                         const std::function<void(const char* step)>& failed) {
  const auto check = [&](int result, const char* step) {
    if (result != 0) {
      failed(step);
    }
  };
  hwloc_topology_t raw = nullptr;
  check(hwloc_topology_init(&raw), "hwloc_topology_init");
  HwlocTopology topology(raw);
  check(hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_IMPORTANT),
        "hwloc_topology_set_io_types_filter");
  check(choose(raw), choice);
  check(hwloc_topology_load(raw), "hwloc_topology_load");
  return topology;
}

Topology topology_from_hwloc(hwloc_topology* topology, const std::string& machine,
                             const SystemFile& files) {
  return Builder(topology, machine, files).build();
}

} // namespace reckon
