// SPDX-License-Identifier: Apache-2.0
#include "topology/topology.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace reckon {
namespace {
constexpr std::array<std::pair<ObjectKind, std::string_view>, 9> k_kinds{{
    {ObjectKind::machine, "machine"},
    {ObjectKind::package, "package"},
    {ObjectKind::numa_node, "numa_node"},
    {ObjectKind::cache, "cache"},
    {ObjectKind::core, "core"},
    {ObjectKind::pci_bridge, "pci_bridge"},
    {ObjectKind::gpu, "gpu"},
    {ObjectKind::nic, "nic"},
    {ObjectKind::memory_device, "memory_device"},
}};
} // namespace

std::string_view name_of(ObjectKind kind) {
  for (const auto& [k, name] : k_kinds) {
    if (k == kind) {
      return name;
    }
  }
  return "?";
}

std::optional<ObjectKind> object_kind_named(std::string_view name) {
  for (const auto& [kind, n] : k_kinds) {
    if (n == name) {
      return kind;
    }
  }
  return std::nullopt;
}

const TopologyObject* Topology::find(std::string_view id) const {
  const auto it = std::find_if(objects.begin(), objects.end(),
                               [&](const TopologyObject& o) { return o.id == id; });
  return it == objects.end() ? nullptr : &*it;
}

std::vector<const TopologyObject*> Topology::of_kind(ObjectKind kind) const {
  std::vector<const TopologyObject*> found;
  for (const TopologyObject& o : objects) {
    if (o.kind == kind) {
      found.push_back(&o);
    }
  }
  return found;
}

std::vector<const TopologyObject*> Topology::children(std::string_view id) const {
  std::vector<const TopologyObject*> found;
  for (const TopologyObject& o : objects) {
    if (o.parent == id && !o.parent.empty()) {
      found.push_back(&o);
    }
  }
  return found;
}

} // namespace reckon
