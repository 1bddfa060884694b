// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/profile.hpp"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace reckon {

/// Machines that are in one group of each of two profiles: what is said of their groups can be
/// compared. A probe makes groups of machines that were alike that day, so members are followed by
/// their names; profiles whose groups name no members, by the groups' ids.
struct SameMachines {
  std::string name; ///< "w2", "w0..w3", or the group's id where that names no members
  std::vector<std::string> members;                       ///< the group, where that names none
  const MachineGroup *before = nullptr, *after = nullptr; ///< null: not there
  bool whole = true;                                      ///< both groups have no other machines
};
[[nodiscard]] std::vector<SameMachines> same_machines(const Profile& before, const Profile& after);

/// Why two profiles are of other machines; nothing when they are of the same, or when nothing
/// tells. The hosts decide: what changed on a host does not make it another one.
[[nodiscard]] std::optional<std::string> other_machines(const Profile& before,
                                                        const Profile& after);

/// Finds the machine that an id of one profile belongs to.
class MachineOf {
public:
  explicit MachineOf(const Profile& profile);
  struct Place {
    std::string group; ///< empty: a member, a rack or another id that is in no group
    std::string rest;  ///< what is behind the group: "/numa0"; empty: the machine itself
  };
  [[nodiscard]] Place of(const std::string& id) const;

private:
  std::map<std::string, std::string, std::less<>> m_root; ///< object or group -> group
};

} // namespace reckon
