// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/profile.hpp"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace reckon {

/// Machines that are in one group of each of two profiles, so that the facts of their groups can be
/// compared. A probe groups machines that were alike that day, so members are followed by their
/// names; in profiles whose groups name no members, by the groups' ids.
struct SameMachines {
  std::string name;                 ///< "w2", "w0..w3", or the id of a group without members
  std::vector<std::string> members; ///< the group, if it has no members
  const MachineGroup *before = nullptr, *after = nullptr; ///< null: absent
  bool whole = true;                                      ///< both groups have no other machines
};
[[nodiscard]] std::vector<SameMachines> same_machines(const Profile& before, const Profile& after);

/// Why two profiles are of different machines; absent when they are of the same, or when nothing
/// tells. The hosts decide: a changed host stays the same machine.
[[nodiscard]] std::optional<std::string> other_machines(const Profile& before,
                                                        const Profile& after);

/// Finds the machine that an id of one profile belongs to.
class MachineOf {
public:
  explicit MachineOf(const Profile& profile);
  struct Place {
    std::string group; ///< empty: a member, a rack or another id outside all groups
    std::string rest;  ///< the rest after the group: "/numa0"; empty: the machine itself
  };
  [[nodiscard]] Place of(const std::string& id) const;

private:
  std::map<std::string, std::string, std::less<>> m_root; ///< object or group -> group
};

} // namespace reckon
