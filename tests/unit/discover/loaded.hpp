// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "discover/hwloc_tree.hpp"

#include <hwloc.h>

#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace reckon::test {

struct Destroy {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using Loaded = std::unique_ptr<hwloc_topology, Destroy>;

inline Loaded init() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) {
    throw std::runtime_error("hwloc_topology_init");
  }
  hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  return Loaded(raw);
}

/// A machine after hwloc's synthetic description, "package:2 numa:2 core:4 pu:1".
inline Loaded synthetic(const std::string& description) {
  Loaded topology = init();
  if (hwloc_topology_set_synthetic(topology.get(), description.c_str()) != 0 ||
      hwloc_topology_load(topology.get()) != 0) {
    throw std::runtime_error("not a synthetic description: " + description);
  }
  return topology;
}

/// A machine recorded as hwloc's XML.
inline Loaded from_xml(const std::string& xml) {
  Loaded topology = init();
  if (hwloc_topology_set_xmlbuffer(topology.get(), xml.c_str(), static_cast<int>(xml.size() + 1)) !=
          0 ||
      hwloc_topology_load(topology.get()) != 0) {
    throw std::runtime_error("not hwloc's XML");
  }
  return topology;
}

/// A machine with these files, by path, and no others.
inline SystemFile files(std::map<std::string, std::string> content) {
  return [content = std::move(content)](const std::string& path) -> std::optional<std::string> {
    const auto it = content.find(path);
    return it == content.end() ? std::nullopt : std::optional(it->second);
  };
}

} // namespace reckon::test
