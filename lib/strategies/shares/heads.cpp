// SPDX-License-Identifier: Apache-2.0
#include "strategies/shares/heads.hpp"

#include "documents/plan.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace reckon {

Heads::Heads(const Plan& plan) : m_above(plan.machine_trees) {
  std::map<std::pair<std::string, std::uint64_t>, std::size_t> numbers;
  std::vector<std::size_t> working, serving;
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    const PlanRank& rank = plan.ranks[r];
    std::size_t machine = m_members.size();
    if (rank.worker) {
      machine = numbers.emplace(std::pair(rank.machine, rank.machine_number.value_or(0)), machine)
                    .first->second;
    }
    if (machine == m_members.size()) { // each that only serves by itself, too
      m_members.emplace_back();
      (rank.worker ? working : serving).push_back(machine);
    }
    m_machine.push_back(machine);
    m_place.push_back(m_members[machine].size());
    m_members[machine].push_back(r);
  }
  for (const std::vector<std::uint64_t>& above : m_above) {
    std::size_t head = 0;
    while (above[head] != head) {
      ++head;
    }
    m_head.push_back(head);
  }
  m_stars.emplace(std::move(working), std::move(serving), plan.groups, false);
}

/// Of one that only serves: itself.
std::size_t Heads::head_of(std::size_t machine, std::size_t way) const {
  const std::vector<std::size_t>& members = m_members[machine];
  return members[members.size() == 1 ? 0 : m_head[way]];
}

std::optional<std::size_t> Heads::parent(std::size_t root, std::size_t way,
                                         std::size_t rank) const {
  const std::size_t machine = m_machine[rank];
  if (head_of(machine, way) != rank) {
    return m_members[machine][m_above[way][m_place[rank]]];
  }
  const std::optional<std::size_t> above = m_stars->parent(m_machine[root], machine);
  return above ? std::optional(head_of(*above, way)) : std::nullopt;
}

std::vector<std::size_t> Heads::children(std::size_t root, std::size_t way,
                                         std::size_t rank) const {
  const std::size_t machine = m_machine[rank];
  const std::vector<std::size_t>& members = m_members[machine];
  std::vector<std::size_t> out;
  for (std::size_t i = 0; members.size() > 1 && i < members.size(); ++i) {
    if (i != m_place[rank] && m_above[way][i] == m_place[rank]) {
      out.push_back(members[i]);
    }
  }
  if (head_of(machine, way) == rank) {
    for (const std::size_t below : m_stars->children(m_machine[root], machine)) {
      out.push_back(head_of(below, way));
    }
  }
  std::ranges::sort(out);
  return out;
}

} // namespace reckon
