// SPDX-License-Identifier: Apache-2.0
#include "discover/cables.hpp"

#include <fmt/format.h>

#include <sstream>

namespace reckon {
namespace {

/// A virtual function is at the port of its physical one.
std::string physical_function(const std::string& pci_address, const SystemFile& files) {
  constexpr const char* k_slot = "PCI_SLOT_NAME=";
  std::istringstream lines(
      files("/sys/bus/pci/devices/" + pci_address + "/physfn/uevent").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(k_slot)) {
      return line.substr(std::char_traits<char>::length(k_slot));
    }
  }
  return pci_address;
}

} // namespace

std::string port_of(const std::string& pci_address, const std::string& devices,
                    const SystemFile& files) {
  std::istringstream words(devices);
  std::string card;
  for (std::string device; words >> device;) {
    const std::string net = "/sys/class/net/" + device + "/";
    if (const std::string id = files(net + "phys_port_id").value_or(""); !id.empty()) {
      return id;
    }
    const std::string in_switch = files(net + "phys_switch_id").value_or("");
    if (const std::string port = files(net + "phys_port_name").value_or("");
        !in_switch.empty() && !port.empty()) {
      return in_switch + " " + port;
    }
    if (const auto guid = files("/sys/class/infiniband/" + device + "/sys_image_guid");
        guid && guid->find_first_not_of("0:") != guid->npos) { // EFA's are 0
      card = *guid;
    }
  }
  return card.empty() || pci_address.empty()
             ? ""
             : port_by_function(card, physical_function(pci_address, files));
}

std::string port_by_function(const std::string& card, const std::string& pci_address) {
  return card + " " + pci_address.substr(pci_address.rfind('.') + 1);
}

void share_cables(Topology& topology, const std::map<std::string, std::string>& ports) {
  std::map<std::string, int> functions;
  for (const auto& [nic, port] : ports) {
    ++functions[port];
  }
  std::map<std::string, std::string> cables;
  for (TopologyObject& object : topology.objects) {
    const auto port = ports.find(object.id);
    if (port != ports.end() && functions[port->second] > 1) {
      object.cable =
          cables.try_emplace(port->second, fmt::format("cable{}", cables.size())).first->second;
    }
  }
}

} // namespace reckon
