// SPDX-License-Identifier: Apache-2.0
#include "import/import.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace reckon {

Profile with_tree_of(const Profile& described, Profile imported) {
  const auto root = std::ranges::find_if(described.machines, [&](const MachineGroup& machine) {
    return described.topology.find(machine.id) != nullptr;
  });
  if (root == described.machines.end()) {
    return imported;
  }
  Profile out;
  out.context = described.context;
  out.context.erase("measured"); // nothing, it says
  std::set<std::string> addresses;
  for (const MachineGroup& machine : imported.machines) {
    MachineGroup& added = out.machines.emplace_back(*root);
    added.id = machine.id;
    added.name = machine.name;
    added.count = machine.count;
    added.members = machine.members;
    const auto here = [&](std::string id) {
      const bool of_root = id == root->id || id.starts_with(root->id + "/");
      return of_root ? id.replace(0, root->id.size(), machine.id) : std::string();
    };
    for (TopologyObject object : described.topology.objects) {
      if (const std::string id = here(object.id); !id.empty()) {
        object.id = id;
        object.parent = here(object.parent);
        addresses.insert(object.pci_address);
        out.topology.objects.push_back(std::move(object));
      }
    }
    for (PeerLink link : described.topology.links) {
      if (const std::string from = here(link.from); !from.empty()) {
        link.from = from;
        link.to = here(link.to);
        out.topology.links.push_back(std::move(link));
      }
    }
  }
  for (TopologyObject& gpu : imported.topology.objects) {
    if (!addresses.contains(gpu.pci_address)) {
      gpu.pci_address.clear();
    }
    for (TopologyObject& known : out.topology.objects) { // the tool knows the model best
      const bool same =
          gpu.pci_address.empty() ? known.id == gpu.id : known.pci_address == gpu.pci_address;
      known.name = same && !gpu.name.empty() ? gpu.name : known.name;
    }
  }
  merge_import(out, imported);
  out.name = imported.name;
  out.source = fmt::format("{}; {}", imported.source, described.source);
  return out;
}

} // namespace reckon
