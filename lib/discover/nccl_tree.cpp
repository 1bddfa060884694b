// SPDX-License-Identifier: Apache-2.0
#include "discover/nccl_tree.hpp"

#include "core/csv.hpp"
#include "core/error.hpp"
#include "core/whole_number.hpp"
#include "discover/cables.hpp"
#include "topology/gpu_models.hpp"

#include <fmt/format.h>
#include <pugixml.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace reckon {
namespace {

using pugi::xml_node;
using Place = std::function<std::string(const xml_node&)>;

/// "0x060400" -> 0x0604
constexpr int k_class_vga_bits = 8;
constexpr unsigned k_class_pci_bridge = 0x0604;
constexpr unsigned k_class_link_switch = 0x0680;
constexpr unsigned k_full_class_processor = 0x068001; // how NCCL names the other end at a POWER9
constexpr unsigned k_base_network = 0x02;
constexpr unsigned k_base_display = 0x03;
constexpr unsigned k_base_accelerator = 0x12;

/// One direction of one xGMI link, bytes per second, by AMD's number of the GPU's generation: MI50
/// and MI60 (906) and MI100 (908): 92 GB/s both ways together; MI200 (90a, written 910): 100; MI300
/// (94x): 128.
double xgmi_rate(std::string_view gcn) {
  static const std::map<std::string_view, double> rates{{"906", 46e9}, {"908", 46e9}, {"910", 50e9},
                                                        {"90a", 50e9}, {"940", 64e9}, {"941", 64e9},
                                                        {"942", 64e9}};
  const auto it = rates.find(gcn.starts_with("gfx") ? gcn.substr(3) : gcn);
  return it == rates.end() ? 0 : it->second;
}

constexpr int k_most_lanes = 32;
constexpr double k_width_not_known = 255; ///< as /sys has it where a device does not tell

/// A link that the file joins to a GPU.
struct FoundLink {
  std::string from;      ///< id of the GPU
  std::string processor; ///< id of the NUMA node that the GPU hangs from
  xml_node element;
  std::string gcn;
};

class Reader {
public:
  Reader(std::string machine, const Place& place) : m_machine(std::move(machine)), m_place(place) {}

  NcclTree read(const xml_node& system) {
    TopologyObject& root = m_tree.topology.objects.emplace_back();
    root.id = m_machine;
    const std::vector<xml_node> cpus = processors(system);
    number_gpus(system);
    for (std::size_t i = 0; i < cpus.size(); ++i) {
      read_cpu(cpus[i], i);
    }
    if (m_tree.topology.of_kind(ObjectKind::gpu).empty() &&
        m_tree.topology.of_kind(ObjectKind::nic).empty()) {
      refuse(system, "holds no GPU and no NIC; write it with NCCL_TOPO_DUMP_FILE on the machine");
    }
    join();
    complete_nvlinks(m_tree.topology, m_machine);
    share_cables(m_tree.topology, m_ports);
    return std::move(m_tree);
  }

private:
  [[noreturn]] void refuse(const xml_node& element, const std::string& what) const {
    fail(ErrorKind::input, fmt::format("{}: <{}> {}", m_place(element), element.name(), what));
  }

  std::vector<xml_node> processors(const xml_node& system) const {
    std::vector<xml_node> cpus;
    std::set<std::string> hosts;
    for (const xml_node& cpu : system.children("cpu")) {
      cpus.push_back(cpu);
      hosts.insert(cpu.attribute("host_hash").value());
    }
    if (cpus.empty()) {
      refuse(system, "has no <cpu>; this is no topology that NCCL or RCCL wrote");
    }
    if (hosts.size() > 1) {
      refuse(system, fmt::format("holds {} machines (host_hash of <cpu>); keep the elements of one",
                                 hosts.size()));
    }
    std::stable_sort(cpus.begin(), cpus.end(), [](const xml_node& a, const xml_node& b) {
      return numa_number(a).value_or(-1) < numa_number(b).value_or(-1);
    });
    for (std::size_t i = 1; i < cpus.size(); ++i) {
      if (const auto number = numa_number(cpus[i]); number && number == numa_number(cpus[i - 1])) {
        refuse(cpus[i], fmt::format("has numaid=\"{}\", as another <cpu> has; give each its own",
                                    cpus[i].attribute("numaid").value()));
      }
    }
    return cpus;
  }

  /// Absent where the file gives none, or something else.
  static std::optional<int> numa_number(const xml_node& cpu) {
    const auto number = whole_number<int>(cpu.attribute("numaid").value());
    return number && *number >= 0 ? number : std::nullopt;
  }

  /// By `dev` when that is unique, else in the file's order.
  void number_gpus(const xml_node& system) {
    std::vector<std::pair<xml_node, int>> gpus;
    collect_gpus(system, gpus);
    std::set<int> devices;
    for (const auto& [element, device] : gpus) {
      devices.insert(device);
    }
    const bool by_device = devices.size() == gpus.size() && !devices.contains(-1);
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      m_gpu_numbers[gpus[i].first.hash_value()] = by_device ? gpus[i].second : static_cast<int>(i);
    }
  }

  void collect_gpus(const xml_node& element, std::vector<std::pair<xml_node, int>>& gpus,
                    int depth = 0) const {
    constexpr int k_deepest = 64;
    if (depth > k_deepest) {
      refuse(element,
             fmt::format("is nested in {} elements; no machine has so many levels", depth));
    }
    for (const xml_node& child : element.children()) {
      if (std::string_view(child.name()) == "pci" && is_gpu(child)) {
        gpus.emplace_back(child, child.child("gpu").attribute("dev").as_int(-1));
      } else {
        collect_gpus(child, gpus, depth + 1);
      }
    }
  }

  /// 0 when the file does not say.
  unsigned full_class(const xml_node& pci, const char* attribute = "class") const {
    const std::string_view text = pci.attribute(attribute).value();
    if (text.empty()) {
      return 0;
    }
    const auto value = whole_number<unsigned>(text.starts_with("0x") ? text.substr(2) : text, 16);
    if (!value) {
      refuse(pci,
             fmt::format("has {}=\"{}\", which is no PCI class such as 0x030200", attribute, text));
    }
    return *value;
  }

  bool is_gpu(const xml_node& pci) const {
    const unsigned base = full_class(pci) >> 16U;
    return pci.child("gpu") || base == k_base_display || base == k_base_accelerator;
  }

  bool is_nic(const xml_node& pci) const {
    return pci.child("nic") || (full_class(pci) >> 16U) == k_base_network;
  }

  void read_cpu(const xml_node& cpu, std::size_t number) {
    TopologyObject& node = add(ObjectKind::numa_node, "numa", static_cast<int>(number), m_machine);
    if (const auto index = numa_number(cpu)) {
      node.os_index = index;
    } else if (const std::string_view text = cpu.attribute("numaid").value();
               !text.empty() && text != "-1") { // NCCL's word for a machine without NUMA
      remark(cpu, "numaid", "which is no number of a NUMA node");
    }
    node.name = fmt::format("{}{}{}", cpu.attribute("arch").value(),
                            cpu.attribute("vendor") ? " " : "", cpu.attribute("vendor").value());
    node.cpus = processors_of(cpu);
    const std::string id = node.id;
    read_children(cpu, id, id);
  }

  /// "000000ff,ffff0000": 32 bits a group, the lowest last.
  std::vector<int> processors_of(const xml_node& cpu) const {
    std::string_view mask = cpu.attribute("affinity").value();
    std::vector<int> numbers;
    for (int base = 0; !mask.empty(); base += 32) {
      const std::size_t comma = mask.rfind(',');
      const std::string_view group = comma == mask.npos ? mask : mask.substr(comma + 1);
      const auto bits = whole_number<std::uint32_t>(group, 16);
      if (!bits) {
        refuse(cpu, fmt::format("has affinity=\"{}\", which is no mask such as ffff0000,0000ffff",
                                cpu.attribute("affinity").value()));
      }
      for (int bit = 0; bit < 32; ++bit) {
        if ((*bits >> static_cast<unsigned>(bit) & 1U) != 0) {
          numbers.push_back(base + bit);
        }
      }
      mask = comma == mask.npos ? std::string_view() : mask.substr(0, comma);
    }
    return numbers;
  }

  void read_children(const xml_node& element, const std::string& parent,
                     const std::string& processor) {
    for (const xml_node& child : element.children()) {
      const std::string_view name = child.name();
      if (name == "pci") {
        read_pci(child, parent, processor);
      } else if (name == "nic") {
        read_nic(child, nullptr, parent);
      }
    }
  }

  void read_pci(const xml_node& pci, const std::string& parent, const std::string& processor) {
    const std::string address = address_of(pci, "busid");
    if (is_gpu(pci)) {
      read_gpu(pci, address, parent, processor);
      return;
    }
    if (is_nic(pci)) {
      read_nic(pci, &address, parent);
      return;
    }
    const unsigned kind = full_class(pci) >> k_class_vga_bits;
    if (kind == k_class_link_switch) {
      return; // it is in the links of the GPUs
    }
    if (kind != k_class_pci_bridge && !pci.child("pci")) {
      m_tree.remarks.push_back(fmt::format("{}: a device of class {} is left out", address,
                                           pci.attribute("class").value()));
      return;
    }
    TopologyObject& made = add(ObjectKind::pci_bridge, "bridge", m_bridges++, parent);
    made.pci_address = address;
    set_pcie(made, pci);
    const std::string id = made.id;
    read_children(pci, id, processor);
  }

  void read_gpu(const xml_node& pci, const std::string& address, const std::string& parent,
                const std::string& processor) {
    TopologyObject& made = add(ObjectKind::gpu, "gpu", m_gpu_numbers.at(pci.hash_value()), parent);
    made.pci_address = address;
    set_pcie(made, pci);
    const xml_node gpu = pci.child("gpu");
    m_by_address.emplace(address, made.id);
    if (gpu.next_sibling("gpu")) {
      m_tree.remarks.push_back(
          fmt::format("{} is parted into several GPUs; the topology has the whole", address));
    }
    const int sm = gpu.attribute("sm").as_int();
    const std::string gcn = gpu.attribute("gcn").value();
    if (!gcn.empty()) {
      made.name = gcn.starts_with("gfx") ? gcn : "gfx" + (gcn == "910" ? "90a" : gcn);
    } else if (sm > 0) {
      made.name = fmt::format("sm_{}", sm);
    }
    for (const char* kind : {"nvlink", "xgmi", "c2c"}) {
      for (const xml_node& link : gpu.children(kind)) {
        m_links.push_back({made.id, processor, link, gcn});
      }
    }
  }

  /// Whether a network device off the PCI bus is what containers and virtual machines hang on: it
  /// has no port, whatever speed it says.
  static bool is_made_by_software(std::string_view name) {
    constexpr std::array<std::string_view, 10> k_begin{"veth", "br-",     "docker", "virbr", "cni",
                                                       "cali", "flannel", "tap",    "tun",   "lo"};
    return std::any_of(k_begin.begin(), k_begin.end(),
                       [&](std::string_view begin) { return name.starts_with(begin); });
  }

  /// `element`: <nic>, or the <pci> that holds it or only says by its class that it is one.
  void read_nic(const xml_node& element, const std::string* address, const std::string& parent) {
    const xml_node nic = address == nullptr ? element : element.child("nic");
    std::string name;
    double rate = 0;
    for (const xml_node& net : nic.children("net")) {
      if (address == nullptr && is_made_by_software(net.attribute("name").value())) {
        continue;
      }
      name += (name.empty() ? "" : " ") + std::string(net.attribute("name").value());
      const double megabits = net.attribute("speed").as_double();
      constexpr double k_fastest_port = 10e6; // several generations beyond what there is
      if (megabits > k_fastest_port) {
        remark(net, "speed", "which is no rate of a port in Mbit/s such as 200000");
      } else {
        rate += megabits * 1e6 / 8;
      }
    }
    if (address == nullptr) {
      if (name.empty() || !m_off_bus.insert(name).second) {
        return; // NCCL lists one that is not on the PCI bus at each processor
      }
    }
    TopologyObject& made = add(ObjectKind::nic, "nic", m_nics++, parent);
    made.name = name;
    if (rate > 0) {
      made.link_bytes_per_second = rate;
    }
    if (address != nullptr) {
      made.pci_address = *address;
      set_pcie(made, element);
      const std::string guid = nic.child("net").attribute("guid").value();
      if (guid.find_first_not_of("0x") != guid.npos) {
        m_ports[made.id] = port_by_function(guid, *address);
      }
    }
  }

  void set_pcie(TopologyObject& made, const xml_node& pci) {
    // "8 GT/s", "16.0 GT/s PCIe", "Unknown"; virtual machines often say nothing, or 0 lanes.
    const std::string_view speed = pci.attribute("link_speed").value();
    const std::string_view lanes = pci.attribute("link_width").value();
    const auto rate = leading_number(speed);
    const auto width = leading_number(lanes);
    constexpr double k_fastest = 1000; // GT/s: several generations beyond what there is
    const bool no_rate = speed.empty() || speed.starts_with("Unknown") || rate == 0.0;
    const bool no_width = lanes.empty() || width == 0.0 || width == k_width_not_known;
    if (!no_rate && !(rate && *rate > 0 && *rate <= k_fastest)) {
      remark(pci, "link_speed", "which is no rate such as 16.0 GT/s PCIe");
    } else if (!no_width && !(width && *width >= 1 && *width <= k_most_lanes &&
                              *width == static_cast<int>(*width))) {
      remark(pci, "link_width", "which is no number of lanes from 1 to 32");
    } else if (!no_rate && !no_width) {
      made.pcie = PcieLink{*rate * 1e9, static_cast<int>(*width)};
    }
  }

  /// What an attribute says is not used, and why.
  void remark(const xml_node& element, const char* attribute, const char* why) {
    const std::string what =
        fmt::format("<{}> has {}=\"{}\", {}; taken as not known", element.name(), attribute,
                    element.attribute(attribute).value(), why);
    const auto [known, first] =
        m_remarked.try_emplace(what, Remarked{m_tree.remarks.size(), m_place(element), 0});
    if (first) {
      m_tree.remarks.emplace_back();
    }
    Remarked& remarked = known->second;
    ++remarked.count;
    m_tree.remarks[remarked.index] = fmt::format(
        "{}: {}{}", remarked.place, what,
        remarked.count > 1 ? fmt::format(" (and {} more like it)", remarked.count - 1) : "");
  }

  std::string address_of(const xml_node& element, const char* attribute) const {
    std::string text = element.attribute(attribute).value();
    if (text.empty()) {
      refuse(element, fmt::format("has no {}", attribute));
    }
    std::transform(text.begin(), text.end(), text.begin(),
                   [](char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c; });
    const std::size_t colon = text.find(':');
    const bool shaped = colon != text.npos && colon >= 4 && colon <= 8 &&
                        text.size() == colon + 8 && text[colon + 3] == ':' &&
                        text[colon + 6] == '.' &&
                        text.find_first_not_of("0123456789abcdef:.") == text.npos;
    if (!shaped) {
      refuse(element, fmt::format("has {}=\"{}\", which is no PCI address such as 0000:17:00.0",
                                  attribute, text));
    }
    return text;
  }

  /// The reference holds until the next object is added.
  TopologyObject& add(ObjectKind kind, std::string_view what, int number,
                      const std::string& parent) {
    TopologyObject& made = m_tree.topology.objects.emplace_back();
    made.kind = kind;
    made.id = fmt::format("{}/{}{}", m_machine, what, number);
    made.parent = parent;
    return made;
  }

  /// Each end names the other: the same links once.
  void join() {
    std::map<std::pair<std::string, std::string>, PeerLink> joined; // as one end tells it
    std::set<std::string> switches;
    for (const FoundLink& found : m_links) {
      PeerLink link = link_of(found, switches);
      if (link.to.empty()) {
        continue;
      }
      PeerLink& sum = joined[{link.from, link.to}];
      if (sum.from.empty()) {
        sum = std::move(link);
      } else { // another NVSwitch
        sum.count += link.count;
        sum.bytes_per_second = sum.bytes_per_second && link.bytes_per_second
                                   ? std::optional(*sum.bytes_per_second + *link.bytes_per_second)
                                   : std::nullopt;
      }
    }
    if (!switches.empty()) {
      TopologyObject& made = add(ObjectKind::link_switch, "nvswitch", 0, m_machine);
      made.name = switches.contains("") ? "NVSwitches out of sight"
                                        : fmt::format("{} x NVSwitch", switches.size());
    }
    std::map<std::string, std::size_t> places;
    for (std::size_t i = 0; i < m_tree.topology.objects.size(); ++i) {
      places[m_tree.topology.objects[i].id] = i;
    }
    std::map<std::pair<std::size_t, std::size_t>, PeerLink> once;
    for (auto& [ends, link] : joined) {
      const auto place = std::minmax(places.at(link.from), places.at(link.to));
      if (places.at(link.from) > places.at(link.to)) {
        std::swap(link.from, link.to);
      }
      PeerLink& kept = once[place];
      if (kept.from.empty() || link.count > kept.count) {
        kept = link;
      }
    }
    for (auto& [place, link] : once) {
      m_tree.topology.links.push_back(std::move(link));
    }
  }

  /// `to` is empty when it leads nowhere.
  PeerLink link_of(const FoundLink& found, std::set<std::string>& switches) {
    PeerLink link;
    link.from = found.from;
    const std::string_view kind = found.element.name();
    link.kind = kind == "xgmi" ? PeerLinkKind::xgmi : PeerLinkKind::nvlink;
    link.count = found.element.attribute("count").as_int(1);
    constexpr int k_most_links = 10'000; // a sum of them is a number
    if (link.count < 1 || link.count > k_most_links) {
      refuse(found.element, fmt::format("has count=\"{}\"; must be 1 to {}",
                                        found.element.attribute("count").value(), k_most_links));
    }
    if (kind == "c2c") { // bw of one, in MB/s
      link.to = found.processor;
      link.bytes_per_second = found.element.attribute("bw").as_double() * 1e6 * link.count;
    } else {
      if (const double rate = kind == "xgmi" ? xgmi_rate(found.gcn) : 0; rate > 0) {
        link.bytes_per_second = rate * link.count;
      }
      link.to = target_of(found, switches);
    }
    if (link.bytes_per_second &&
        !(*link.bytes_per_second > 0 && std::isfinite(*link.bytes_per_second))) {
      link.bytes_per_second.reset();
    }
    return link;
  }

  std::string target_of(const FoundLink& found, std::set<std::string>& switches) {
    const unsigned target_class = full_class(found.element, "tclass");
    if (target_class == k_full_class_processor) {
      return found.processor;
    }
    const std::string_view target = found.element.attribute("target").value();
    if (target_class >> k_class_vga_bits == k_class_link_switch) {
      // In a virtual machine NVSwitches cannot be seen: fffffff:ff:ff.
      switches.insert(target.starts_with("ffff") ? std::string() : std::string(target));
      return m_machine + "/nvswitch0";
    }
    const std::string address = address_of(found.element, "target");
    const auto it = m_by_address.find(address);
    if (it == m_by_address.end() || it->second == found.from) {
      m_tree.remarks.push_back(fmt::format(
          "{}: the {} of {} is said to lead to {}; left out", m_place(found.element),
          found.element.name(), found.from,
          it == m_by_address.end() ? address + ", which the file does not hold" : "itself"));
      return "";
    }
    return it->second;
  }

  std::string m_machine;
  const Place& m_place;
  NcclTree m_tree;
  std::map<std::size_t, int> m_gpu_numbers;        // by element
  std::map<std::string, std::string> m_by_address; // GPUs
  std::vector<FoundLink> m_links;
  std::set<std::string> m_off_bus;            // names of NICs that are not on the PCI bus
  std::map<std::string, std::string> m_ports; // of NICs
  int m_bridges = 0, m_nics = 0;
  /// The same mistake is often in every element: one remark for all.
  struct Remarked {
    std::size_t index = 0; ///< of the remark
    std::string place;     ///< of the first
    int count = 0;
  };
  std::map<std::string, Remarked> m_remarked; ///< by what is wrong
};

} // namespace

NcclTree topology_from_nccl(const xml_node& system, const std::string& machine,
                            const Place& place) {
  const std::string_view version = system.attribute("version").value();
  if (version != "1" && version != "2") {
    fail(ErrorKind::input,
         fmt::format("{}: <system> has version \"{}\"; this reckon reads 1 (NCCL) and 2 (RCCL)",
                     place(system), version));
  }
  return Reader(machine, place).read(system);
}

} // namespace reckon
