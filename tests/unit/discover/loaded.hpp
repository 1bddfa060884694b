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

using Loaded = HwlocTopology;

inline Loaded loaded(const std::function<int(hwloc_topology_t)>& choose) {
  return load_hwloc("choice", choose, [](const char* step) { throw std::runtime_error(step); });
}

/// A machine after hwloc's synthetic description, "package:2 numa:2 core:4 pu:1".
inline Loaded synthetic(const char* description) {
  return loaded([=](hwloc_topology_t t) { return hwloc_topology_set_synthetic(t, description); });
}

/// A machine recorded as hwloc's XML.
inline Loaded from_xml(const std::string& xml) {
  return loaded([&](hwloc_topology_t t) {
    return hwloc_topology_set_xmlbuffer(t, xml.c_str(), static_cast<int>(xml.size() + 1));
  });
}

/// A machine with these files, by path, and no others.
inline SystemFile files(std::map<std::string, std::string> content) {
  return [content = std::move(content)](const std::string& path) -> std::optional<std::string> {
    const auto it = content.find(path);
    return it == content.end() ? std::nullopt : std::optional(it->second);
  };
}

} // namespace reckon::test
