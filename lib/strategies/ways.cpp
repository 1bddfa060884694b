// SPDX-License-Identifier: Apache-2.0
#include "strategies/ways.hpp"

#include "core/error.hpp"
#include "documents/cells.hpp"
#include "documents/own_machines.hpp"
#include "network/pairs.hpp"
#include "strategies/forest/bound.hpp"
#include "strategies/predict.hpp"
#include "strategies/proxies/routes.hpp"
#include "topology/numa.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace reckon {
Ways::Ways(const PlanInputs& inputs, const PlanOptions& options)
    : Ways(inputs.profile, inputs.roles, options.transport, options.what_if) {
  m_least = least_time(*m_model, static_cast<double>(inputs.workload.bytes()));
}

Ways::Ways(const Profile& profile, const Roles& roles, const std::string& transport,
           const CostModel::WhatIf& what_if)
    : m_profile(profile), m_model(std::in_place, profile, roles, transport, what_if) {
  connect_machines(what_if);
}

Ways::Ways(const Profile& profile, Places places)
    : m_profile(profile), m_places(std::move(places)) {}

Ways::Ways(const Profile& profile, Places places, double bytes) : Ways(profile, std::move(places)) {
  const NetworkBound bound = network_bound(*m_places->network);
  const char* const none = "no link that every way to sum must pass has a known rate";
  m_least = {bytes * bound.seconds_per_byte,
             (bound.by.empty() ? none : bound.by) + " (equation 27)"};
}

Ways::Ways(const Profile& profile, Between links, LeastTime least)
    : m_profile(profile), m_least(std::move(least)), m_links(std::move(links)) {}

std::vector<std::size_t> Ways::ranks_that(bool work) const {
  std::vector<std::size_t> ranks;
  for (std::size_t r = 0; r < m_places->of_rank.size(); ++r) {
    if (m_places->network->places[m_places->of_rank[r]].worker == work) {
      ranks.push_back(r);
    }
  }
  return ranks;
}

std::vector<std::size_t> Ways::workers() const {
  return m_model ? m_model->workers() : ranks_that(true);
}

std::vector<std::size_t> Ways::servers() const {
  return m_model ? m_model->servers() : ranks_that(false);
}

void Ways::set_lanes(int lanes) {
  m_lanes = lanes;
  if (m_model) {
    m_model->set_lanes(lanes);
  }
}

CurveOf Ways::curves() const {
  return m_places ? place_curves(m_profile, *m_places, between(0).network)
                  : write_curves(m_profile, *m_model);
}

void Ways::connect_machines(const CostModel::WhatIf& what_if) {
  m_what_if = what_if;
  if (!m_model->one_machine()) {
    m_by_ports = !knows_pairs(m_profile, *m_model, m_what_if);
    if (!m_by_ports) {
      m_links = between_machines();
    }
  }
}

Between Ways::between_machines() const {
  const Network network = network_between_ranks(m_profile, *m_model, m_what_if);
  return without_idle_stations(between_places(network, places_of_ranks(network)));
}

Between Ways::between(double part_bytes) const {
  Between between;
  if (m_places) {
    between = between_places(*m_places->network, m_places->of_rank);
    for (const std::size_t place : m_places->of_rank) {
      between.add.push_back(m_places->network->add[place]);
    }
    between.named_first = m_named_first;
  } else {
    if (!m_links) {
      m_links = between_machines();
    }
    between = *m_links;
  }
  if (m_by_ports) {
    const auto slowest =
        std::ranges::min_element(m_model->ranks(), {}, &RankModel::port_bytes_per_s);
    between.network.write_overhead_s =
        part_bytes / slowest->port_bytes_per_s * (1 / m_model->port_efficiency(part_bytes) - 1);
  }
  between.network.cut_evenly(between.network.quantum_bytes);
  return between;
}

OpCost Ways::op_cost(double part_bytes) const {
  if (m_places) {
    return [network = m_places->network,
            cost = reckon::op_cost(*m_places->network, m_places->of_rank)](
               std::size_t rank, const Op& op) { return cost(rank, op); };
  }
  return m_model ? reckon::op_cost(*m_model, part_bytes)
                 : OpCost([](std::size_t, const Op&) { return 0.0; });
}

double Ways::efficiency(double part_bytes) const {
  return m_places || m_links ? 1 : m_model->port_efficiency(part_bytes);
}

std::pair<double, double> Ways::spread(const std::vector<double>& station_bytes) const {
  double slow = 1, fast = 1;
  if (m_places) {
    const auto busiest = [&](double Station::*capacity) {
      double longest = 0;
      for (std::size_t s = 0; s < station_bytes.size(); ++s) {
        longest = std::max(longest, station_bytes[s] / m_places->network->stations[s].*capacity);
      }
      return longest;
    };
    const double middle = busiest(&Station::bytes_per_second);
    return middle > 0 ? std::pair(middle / busiest(&Station::low_bytes_per_second),
                                  middle / busiest(&Station::high_bytes_per_second))
                      : std::pair(slow, fast);
  }
  if (!m_model) {
    return {slow, fast};
  }
  for (const Cell* cell :
       m_profile.select({.test = k_port_bandwidth, .transport = m_model->transport()})) {
    if (cell->samples.size() < 3 || cell->p50 <= 0) {
      continue;
    }
    const auto [low, high] = std::minmax_element(cell->samples.begin(), cell->samples.end());
    slow = std::min(slow, *low / cell->p50);
    fast = std::max(fast, *high / cell->p50);
  }
  constexpr double k_least = 0.5, k_most = 2; // one disturbed sample says no more
  return {std::max(slow, k_least), std::min(fast, k_most)};
}

PlanRank Ways::place_of(std::size_t r) const {
  PlanRank rank;
  if (m_places) {
    const Network& network = *m_places->network;
    const Place& place = network.places[m_places->of_rank[r]];
    const NetworkMachine& machine = network.machines[place.machine];
    if (place.id != machine.group) {
      rank = rank_at(m_profile.topology, machine.group, place.id);
      rank.process = place.process;
    }
    rank.machine = machine.group;
    rank.worker = place.worker;
    if (network.machines.size() > 1) {
      rank.machine_number = machine.number;
    }
    if (const MachineGroup* const group = group_named(m_profile, machine.group)) {
      rank.rack = group->rack;
      if (rank.machine_number && machine.number < group->members.size()) {
        rank.member = group->members[machine.number];
      }
    }
    return rank;
  }
  if (m_model) {
    const RankModel& model = m_model->ranks()[r];
    rank.machine = model.machine;
    rank.rack = model.rack;
    rank.worker = model.worker;
    rank.port_bytes_per_second = model.port_bytes_per_s;
  }
  return rank;
}

std::size_t Ways::guessed_curves(const std::vector<std::size_t>& clients,
                                 const std::vector<std::size_t>& devices) const {
  if (!m_links) {
    return 0;
  }
  std::vector<std::string> machines;
  for (const RankModel& r : m_model->ranks()) {
    machines.push_back(r.machine);
  }
  const std::vector<std::string> names = pair_names(m_profile, machines);
  const CellIndex index(m_profile);
  std::size_t guessed = 0;
  for (const std::size_t client : clients) {
    for (const std::size_t device : devices) {
      CellKey pattern{.test = k_pair_write,
                      .from = names[client],
                      .to = names[device],
                      .transport = m_model->transport()};
      const bool written = !index.select(pattern).empty();
      pattern.test = k_pair_bandwidth;
      const std::vector<const Cell*> rates = index.select(pattern);
      guessed += !written && !rates.empty() && rates.front()->status != CellStatus::published;
    }
  }
  return guessed;
}

std::string transport_between(const Profile& profile, const Network& network) {
  if (network.machines.size() > 1) {
    return network.transport.empty() ? std::string(k_unspecified_transport) : network.transport;
  }
  return transport_inside(profile, network);
}

InsideOptions endpoints_of(const Roles& roles) {
  InsideOptions options;
  options.relays.emplace();
  for (const RoleGroup& group : roles.groups) {
    std::vector<std::string>& ids = group.worker ? options.workers : *options.relays;
    for (const std::string& id : group.endpoints) {
      if (std::count(ids.begin(), ids.end(), id) > 0) {
        fail(ErrorKind::input,
             fmt::format("roles '{}': endpoint {} is named twice; --places N puts N ranks on each "
                         "machine",
                         roles.name, id));
      }
      ids.push_back(id);
    }
  }
  return options;
}

PlanRank rank_at(const Topology& topology, const std::string& machine,
                 const std::string& endpoint) {
  const TopologyObject* const object = topology.find(endpoint);
  if (object == nullptr) {
    fail(ErrorKind::input, fmt::format("the topology has no '{}'", endpoint));
  }
  PlanRank rank;
  rank.machine = machine;
  rank.endpoint = endpoint;
  rank.endpoint_kind = name_of(object->kind);
  rank.pci_address = object->pci_address;
  const TopologyObject* const node = numa_node_of(topology, endpoint);
  rank.cpus = node != nullptr ? node->cpus : std::vector<int>();
  return rank;
}

OpCost op_cost(const Network& model, std::vector<std::size_t> places) {
  return [&model, places = std::move(places)](std::size_t rank, const Op& op) {
    const bool converts = op.kind == OpKind::narrow || op.kind == OpKind::widen; // as it adds two
    if (op.kind != OpKind::reduce && !converts) {
      return 0.0;
    }
    const double added = static_cast<double>(op.bytes) * (converts ? 1.0 : op.source_count - 1.0);
    const double one_lane = model.places[places[rank]].lane_adds_per_s;
    double longest = one_lane > 0 ? added / one_lane : 0;
    for (const Use& use : model.add[places[rank]]) {
      const Station& station = model.stations[use.station];
      longest =
          std::max(longest, use.amount * (station.busy.empty() ? added / station.bytes_per_second
                                                               : station.busy.seconds(added)));
    }
    return longest;
  };
}

} // namespace reckon
