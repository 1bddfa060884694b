// SPDX-License-Identifier: Apache-2.0
#include "compare/members.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace reckon {
namespace {

bool names_members(const Profile& profile) {
  return std::none_of(profile.machines.begin(), profile.machines.end(),
                      [](const MachineGroup& group) { return group.members.empty(); });
}

/// The names that tell machines apart; none: not known.
std::set<std::string> hosts_of(const Profile& profile) {
  std::set<std::string> hosts;
  if (names_members(profile)) {
    for (const MachineGroup& group : profile.machines) {
      hosts.insert(group.members.begin(), group.members.end());
    }
  } else if (const auto host = profile.context.find("host"); host != profile.context.end()) {
    hosts.insert(host->second);
  } else if (profile.machines.size() == 1 && profile.machines[0].count == 1 &&
             !profile.machines[0].name.empty()) {
    hosts.insert(profile.machines[0].name);
  }
  return hosts;
}

} // namespace

std::vector<SameMachines> same_machines(const Profile& before, const Profile& after) {
  const bool by_name = names_members(before) && names_members(after);
  using Groups = std::pair<const MachineGroup*, const MachineGroup*>;
  std::map<std::string, Groups> groups_of; // by member, or by group
  std::vector<std::string> order;
  const auto add = [&](const Profile& profile, const MachineGroup* Groups::*side) {
    for (const MachineGroup& group : profile.machines) {
      for (const std::string& name : by_name ? group.members : std::vector{group.id}) {
        const auto [it, fresh] = groups_of.try_emplace(name);
        it->second.*side = &group;
        if (fresh) {
          order.push_back(name);
        }
      }
    }
  };
  add(before, &Groups::first);
  add(after, &Groups::second);
  // What both profiles name comes in one order whichever is first.
  std::sort(order.begin(), order.end(), [](const std::string& a, const std::string& b) {
    return std::pair(a.size(), a) < std::pair(b.size(), b); // w2 before w10
  });
  std::map<Groups, std::vector<std::string>> together;
  for (const std::string& name : order) {
    together[groups_of[name]].push_back(name);
  }
  std::vector<SameMachines> all;
  for (const auto& [groups, names] : together) {
    const auto [a, b] = groups;
    const auto all_of = [&, count = names.size()](const MachineGroup* group) {
      return !by_name || (group != nullptr && group->members.size() == count);
    };
    all.push_back({names.size() == 1 ? names[0] : names.front() + ".." + names.back(), names, a, b,
                   all_of(a) && all_of(b)});
  }
  std::sort(all.begin(), all.end(),
            [](const SameMachines& a, const SameMachines& b) { return a.name < b.name; });
  return all;
}

std::optional<std::string> other_machines(const Profile& before, const Profile& after) {
  const std::set<std::string> a = hosts_of(before), b = hosts_of(after);
  const bool common =
      std::any_of(a.begin(), a.end(), [&](const std::string& host) { return b.contains(host); });
  if (before.fingerprint == after.fingerprint || common) {
    return std::nullopt;
  }
  const auto text = [](const std::set<std::string>& hosts) {
    return hosts.empty()      ? std::string("an unknown host")
           : hosts.size() > 3 ? fmt::format("{} .. {}", *hosts.begin(), *hosts.rbegin())
                              : fmt::format("{}", fmt::join(hosts, ", "));
  };
  const std::string x = text(a), y = text(b);
  return fmt::format("the profiles come from different machines ({} and {}, different "
                     "fingerprints), so a difference does not mean that something got slower",
                     std::min(x, y), std::max(x, y));
}

MachineOf::MachineOf(const Profile& profile) {
  for (const MachineGroup& group : profile.machines) {
    m_root.emplace(group.id, group.id);
  }
  for (const TopologyObject& object : profile.topology.objects) {
    if (const auto above = m_root.find(object.parent); above != m_root.end()) {
      m_root.emplace(object.id, above->second);
    }
  }
}

MachineOf::Place MachineOf::of(const std::string& id) const {
  const auto root = m_root.find(id);
  if (root == m_root.end()) {
    return {"", id};
  }
  const std::string& group = root->second;
  return {group, id.starts_with(group) ? id.substr(group.size()) : "/" + id};
}

} // namespace reckon
