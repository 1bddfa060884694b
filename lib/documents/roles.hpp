// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace reckon {

/// Lanes are threads of one rank; more than any machine has is a slip.
inline constexpr int k_max_lanes = 4096;

/// `count` equal ranks on machines of one group, or inside one machine.
struct RoleGroup {
  std::string machine; ///< id of a MachineGroup of the profile
  std::uint64_t count = 1;
  bool worker = false; ///< has gradients and wants their sum
  bool server = false; ///< may sum (summation service)
  int lanes = 0;       ///< 0: the planner chooses
  /// For plans inside a machine: the GPUs, NUMA nodes or memory devices that they are, `count` of
  /// them; empty otherwise.
  std::vector<std::string> endpoints{};
  bool operator==(const RoleGroup&) const = default;
};

/// Who does what. Ranks are numbered in the order of the groups.
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
