// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace reckon {

/// Lanes are threads of one rank; a number above any machine's is an error.
inline constexpr int k_max_lanes = 4096;

/// `count` equal ranks on machines of one group, or inside one machine.
struct RoleGroup {
  std::string machine; ///< id of a MachineGroup of the profile
  std::uint64_t count = 1;
  bool worker = false; ///< has gradients and needs their sum
  bool server = false; ///< may sum (summation service)
  int lanes = 0;       ///< 0: the planner chooses
  /// For plans inside a machine: the GPUs, NUMA nodes or memory devices of the ranks, `count` of
  /// them; otherwise empty.
  std::vector<std::string> endpoints{};
  bool operator==(const RoleGroup&) const = default;
};

/// The roles of all ranks, numbered in the order of the groups.
struct Roles {
  std::string name;
  std::vector<RoleGroup> groups;
  /// Whether some of the ranks are places inside machines.
  [[nodiscard]] bool names_endpoints() const {
    return std::any_of(groups.begin(), groups.end(),
                       [](const RoleGroup& group) { return !group.endpoints.empty(); });
  }
  bool operator==(const Roles&) const = default;
};

} // namespace reckon
