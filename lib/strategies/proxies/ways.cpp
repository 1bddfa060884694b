// SPDX-License-Identifier: Apache-2.0
#include "strategies/proxies/ways.hpp"

#include "core/error.hpp"
#include "documents/cells.hpp"
#include "strategies/forest/bound.hpp"
#include "strategies/forest/planner.hpp"
#include "strategies/pair_network.hpp"
#include "strategies/predict.hpp"
#include "strategies/proxies/routes.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace reckon {

ProxyWays::ProxyWays(const PlanInputs& inputs, const PlanOptions& options)
    : m_profile(inputs.profile), m_inside(inside_of(inputs)),
      m_model(inputs.profile, inputs.roles, options.transport, what_if_of(m_inside, options)) {
  const auto bytes = static_cast<double>(inputs.workload.bytes());
  if (m_inside) {
    const NetworkBound bound = network_bound(m_inside->model);
    m_least = {bytes * bound.seconds_per_byte, bound.by + " (equation 27)"};
  } else {
    m_least = least_time(m_model, bytes);
    m_pairs = measured_pairs(inputs.profile, m_model, options.what_if);
  }
}

std::optional<ProxyWays::Inside> ProxyWays::inside_of(const PlanInputs& inputs) {
  Inside inside;
  InsideOptions& options = inside.options;
  options.relays.emplace();
  std::string machine;
  for (const RoleGroup& group : inputs.roles.groups) {
    if (group.endpoints.empty() != inputs.roles.groups.front().endpoints.empty() ||
        (!machine.empty() && group.machine != machine && !group.endpoints.empty())) {
      fail(ErrorKind::input,
           fmt::format("roles '{}': either all groups name endpoints of one machine or none does",
                       inputs.roles.name));
    }
    machine = group.machine;
    for (const std::string& id : group.endpoints) {
      inside.endpoints.push_back(id);
      (group.worker ? options.workers : *options.relays).push_back(id);
    }
  }
  if (inside.endpoints.empty()) {
    return std::nullopt;
  }
  inside.model = network_inside_machine(inputs.profile, machine, options);
  for (const std::string& id : inside.endpoints) {
    const auto it = std::find_if(inside.model.places.begin(), inside.model.places.end(),
                                 [&](const Place& e) { return e.id == id; });
    inside.index.push_back(static_cast<std::size_t>(it - inside.model.places.begin()));
  }
  inside.network = network_of(inside.model, inside.index);
  return inside;
}

/// Inside a machine nothing is asked of ports.
CostModel::WhatIf ProxyWays::what_if_of(const std::optional<Inside>& inside,
                                        const PlanOptions& options) {
  CostModel::WhatIf what_if = options.what_if;
  for (std::size_t r = 0; inside && r < inside->model.stations.size(); ++r) {
    what_if.worker_port_bytes_per_s = std::max(what_if.worker_port_bytes_per_s.value_or(0),
                                               inside->model.stations[r].bytes_per_second);
  }
  return what_if;
}

Curve ProxyWays::curve(std::size_t from, std::size_t to, std::string* source) const {
  return m_inside ? copy_curve(m_profile, m_inside->network, m_inside->endpoints, from, to, source)
                  : write_curve(m_profile, m_model, from, to, source);
}

Between ProxyWays::between(double part_bytes) const {
  Between between;
  if (m_inside) {
    between.network = m_inside->network;
    for (const Station& resource : m_inside->model.stations) {
      between.names.push_back(resource.name);
    }
  } else {
    between = m_pairs ? *m_pairs : ports_between(m_model, part_bytes);
  }
  between.network.cut_evenly(between.network.quantum_bytes);
  return between;
}

OpCost ProxyWays::op_cost(double part_bytes) const {
  return m_inside ? reckon::op_cost(m_inside->model, m_inside->index)
                  : reckon::op_cost(m_model, part_bytes);
}

double ProxyWays::efficiency(double part_bytes) const {
  return m_inside || m_pairs ? 1 : m_model.port_efficiency(part_bytes);
}

std::pair<double, double> ProxyWays::port_spread() const {
  double slow = 1, fast = 1;
  CellKey pattern;
  pattern.test = k_port_bandwidth;
  for (const Cell* cell : m_profile.select(pattern)) {
    if (cell->samples.size() < 3 || cell->p50 <= 0 || cell->key.transport != m_model.transport()) {
      continue;
    }
    const auto [low, high] = std::minmax_element(cell->samples.begin(), cell->samples.end());
    slow = std::min(slow, *low / cell->p50);
    fast = std::max(fast, *high / cell->p50);
  }
  constexpr double k_least = 0.5, k_most = 2; // one disturbed sample says no more
  return {std::max(slow, k_least), std::min(fast, k_most)};
}

PlanRank ProxyWays::place_of(std::size_t r) const {
  const RankModel& model = m_model.ranks()[r];
  PlanRank rank =
      m_inside ? rank_at(m_profile.topology, model.machine, m_inside->endpoints[r]) : PlanRank();
  rank.machine = model.machine;
  rank.rack = model.rack;
  rank.worker = model.worker;
  rank.port_bytes_per_second = m_inside ? 0 : model.port_bytes_per_s;
  return rank;
}

std::size_t ProxyWays::guessed_curves(const std::vector<std::size_t>& clients,
                                      const std::vector<std::size_t>& devices) const {
  if (!m_pairs) {
    return 0;
  }
  std::vector<std::string> machines;
  for (const RankModel& r : m_model.ranks()) {
    machines.push_back(r.machine);
  }
  const std::vector<std::string> names = pair_names(m_profile, machines);
  std::size_t guessed = 0;
  for (const std::size_t client : clients) {
    for (const std::size_t device : devices) {
      CellKey pattern;
      pattern.transport = m_model.transport();
      pattern.from = names[client];
      pattern.to = names[device];
      pattern.test = k_pair_write;
      const bool written = !m_profile.select(pattern).empty();
      pattern.test = k_pair_bandwidth;
      const std::vector<const Cell*> rates = m_profile.select(pattern);
      guessed += !written && !rates.empty() && rates.front()->status != CellStatus::published;
    }
  }
  return guessed;
}

} // namespace reckon
