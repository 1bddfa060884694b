// SPDX-License-Identifier: Apache-2.0
#include "strategies/shares/stars.hpp"

#include "documents/plan.hpp"
#include "strategies/strategy.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace reckon {
namespace {

std::vector<std::size_t> ranks_that(const Plan& plan, bool work) {
  std::vector<std::size_t> ranks;
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    if (plan.ranks[r].worker == work && (work || plan.ranks[r].server)) {
      ranks.push_back(r);
    }
  }
  return ranks;
}

} // namespace

Stars::Stars(std::vector<std::size_t> workers, std::vector<std::size_t> servers, std::size_t groups,
             bool servers_head)
    : m_workers(std::move(workers)), m_servers(std::move(servers)), m_groups(groups),
      m_servers_head(servers_head) {
  for (const bool works : {true, false}) {
    const std::vector<std::size_t>& ranks = works ? m_workers : m_servers;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      m_places.resize(std::max(m_places.size(), ranks[i] + 1));
      m_places[ranks[i]] = {works, !works, i};
    }
  }
}

Stars::Stars(const Plan& plan)
    : Stars(ranks_that(plan, true), ranks_that(plan, false), plan.groups) {}

Stars::Place Stars::place_of(std::size_t rank) const {
  return rank < m_places.size() ? m_places[rank] : Place();
}

/// Its first worker; of the one after the last: how many workers there are.
std::size_t Stars::first_of(std::size_t group, std::size_t groups) const {
  return group * m_workers.size() / groups;
}
std::size_t Stars::size_of(std::size_t group, std::size_t groups) const {
  return first_of(group + 1, groups) - first_of(group, groups);
}
std::size_t Stars::group_of(std::size_t worker, std::size_t groups) const {
  return ((worker + 1) * groups - 1) / m_workers.size();
}

std::size_t Stars::served_groups() const {
  return m_servers.empty() || !m_servers_head ? 0 : std::min(m_groups, m_servers.size() - 1);
}
std::size_t Stars::groups_for(const Place& root) const {
  return root.worker ? m_groups : served_groups();
}

std::size_t Stars::head(const Place& root, std::size_t group) const {
  if (!root.worker) {
    return m_servers[(root.number + steps_to_head(group)) % m_servers.size()];
  }
  return m_workers[first_of(group, m_groups) +
                   place_of_head(root.number, size_of(group, m_groups))];
}

/// From a root that only serves to a group's head, as evenly spaced as can be: what follows one
/// part has other heads.
std::size_t Stars::steps_to_head(std::size_t group) const {
  return 1 + group * (m_servers.size() - 1) / served_groups();
}

/// In a group of that size, the head's place for the parts of a worker. Groups may be smaller than
/// the worker's own by one: the last of that one has all of them as heads in turn.
std::size_t Stars::place_of_head(std::size_t worker, std::size_t size) const {
  const std::size_t groups = std::max<std::size_t>(1, m_groups);
  const std::size_t within = worker - first_of(group_of(worker, groups), groups);
  return within < size ? within : worker % size;
}

std::optional<std::size_t> Stars::parent(std::size_t root, std::size_t rank) const {
  const Place place = place_of(rank), of_root = place_of(root);
  const std::size_t groups = groups_for(of_root);
  if (rank == root || (place.worker && groups == 0)) {
    return root;
  }
  if (place.worker) {
    const std::size_t above = head(of_root, group_of(place.number, groups));
    return above == rank ? root : above;
  }
  const std::size_t servers = m_servers.size();
  if (!place.server || !of_root.server || groups == 0) {
    return std::nullopt;
  }
  const std::size_t steps = (place.number + servers - of_root.number) % servers;
  const std::size_t group = ((steps - 1) * groups + servers - 2) / (servers - 1); // rounded up
  return group < groups && steps_to_head(group) == steps ? std::optional(root) : std::nullopt;
}

std::vector<std::size_t> Stars::children(std::size_t root, std::size_t rank) const {
  const Place of_root = place_of(root);
  const std::size_t groups = groups_for(of_root);
  std::vector<std::size_t> out;
  if (groups == 0) {
    if (rank == root) {
      out = m_workers;
      std::erase(out, root);
    }
    return out;
  }
  for (std::size_t group = 0; group < groups; ++group) {
    const std::size_t above = head(of_root, group);
    if (rank == root && above != root) {
      out.push_back(above);
    }
    for (std::size_t i = first_of(group, groups); rank == above && i < first_of(group + 1, groups);
         ++i) {
      if (m_workers[i] != rank) {
        out.push_back(m_workers[i]);
      }
    }
  }
  std::ranges::sort(out);
  return out;
}

/// A worker sends all of its gradient but what it is the root of, and gets as much back; it sums
/// what the others have of that, or, as the head of a group, what the others there have of the
/// parts of roots with its place, and as a root what the other heads have.
void Stars::add_workers(Load& load, std::span<const double> loads) const {
  const double total = std::accumulate(loads.begin(), loads.end(), 0.0);
  const std::size_t groups = std::max<std::size_t>(1, m_groups);
  std::map<std::size_t, std::vector<double>> headed; // by size of a group and place in it
  for (const std::size_t group : {std::size_t{0}, groups - 1}) {
    const std::size_t size = size_of(group, groups);
    std::vector<double>& of_place = headed[size];
    of_place.assign(size, 0);
    for (std::size_t i = 0; i < m_workers.size(); ++i) {
      of_place[place_of_head(i, size)] += loads[m_workers[i]];
    }
  }
  for (std::size_t i = 0; i < m_workers.size(); ++i) {
    const std::size_t rank = m_workers[i], group = group_of(i, groups);
    const std::size_t size = size_of(group, groups);
    load.summed_bytes[rank] =
        static_cast<double>(size - 1) * headed.at(size)[i - first_of(group, groups)] +
        static_cast<double>(groups - 1) * loads[rank];
    load.egress_bytes[rank] = total - loads[rank] + load.summed_bytes[rank];
  }
}

void Stars::add_servers(Load& load, std::span<const double> loads) const {
  const std::size_t groups = served_groups();
  const auto children = static_cast<double>(groups == 0 ? m_workers.size() : groups);
  for (std::size_t i = 0; i < m_servers.size(); ++i) {
    const double own = loads[m_servers[i]];
    load.egress_bytes[m_servers[i]] += children * own;
    load.summed_bytes[m_servers[i]] += (children - 1) * own;
    for (std::size_t group = 0; own > 0 && group < groups; ++group) {
      const std::size_t at = m_servers[(i + steps_to_head(group)) % m_servers.size()];
      const auto size = static_cast<double>(size_of(group, groups));
      load.egress_bytes[at] += (size + 1) * own;
      load.summed_bytes[at] += (size - 1) * own;
    }
  }
}

Load Stars::load_of(std::span<const double> loads) const {
  Load load;
  load.egress_bytes.assign(loads.size(), 0);
  load.summed_bytes.assign(loads.size(), 0);
  add_workers(load, loads);
  add_servers(load, loads);
  load.ingress_bytes = load.egress_bytes;
  const std::size_t n = m_workers.size(), groups = served_groups();
  if (m_groups == 0) {
    load.operands = std::max<std::size_t>(2, n);
    // A server waits for one part from each worker, and a worker for all services.
    load.parts_of_fill = static_cast<double>(load.operands) +
                         static_cast<double>(std::ranges::count_if(
                             load.summed_bytes, [](double bytes) { return bytes > 0; }));
    return load;
  }
  std::size_t in_group = size_of(m_groups - 1, m_groups), all = m_groups + in_group;
  load.operands = std::max(m_groups, in_group);
  if (!m_servers.empty()) {
    in_group = groups == 0 ? n : size_of(groups - 1, groups);
    all = std::max(all, groups + in_group);
    load.operands = std::max(load.operands, in_group);
  }
  load.parts_of_fill = 2 * static_cast<double>(all);
  load.levels = 2;
  return load;
}

} // namespace reckon
