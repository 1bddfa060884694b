// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "documents/cells.hpp"
#include "documents/profile.hpp"
#include "network/inside.hpp"
#include "network/rate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace reckon {
namespace {

const MachineGroup& group_of(const Profile& profile, const OpenMachine& machine) {
  const auto it = std::find_if(profile.machines.begin(), profile.machines.end(),
                               [&](const MachineGroup& g) { return g.id == machine.group; });
  if (it == profile.machines.end()) {
    fail(ErrorKind::input,
         fmt::format("profile '{}' has no machines \"{}\"", profile.name, machine.group));
  }
  if (machine.number >= it->count) {
    fail(ErrorKind::input, fmt::format("profile '{}' has {} machines \"{}\", fewer than are asked "
                                       "for: name fewer, or raise their count",
                                       profile.name, it->count, machine.group));
  }
  return *it;
}

std::string name_of(const MachineGroup& group, std::uint64_t number) {
  if (number < group.members.size()) {
    return group.members[number];
  }
  return group.count == 1 ? group.id : fmt::format("{}.{}", group.id, number);
}

class Cluster {
public:
  Cluster(const Profile& profile, std::string transport)
      : m_profile(profile), m_transport(std::move(transport)) {}

  [[nodiscard]] Network join(const std::vector<OpenMachine>& machines) {
    for (const OpenMachine& machine : machines) {
      add(machine);
    }
    number_places();
    uplinks();
    ways_inside();
    ways_between();
    latency();
    m_out.nodes = m_nodes;
    return std::move(m_out);
  }

private:
  /// A machine in the cluster: what it looks like alone, and where its parts are now.
  struct Member {
    const OpenedMachine* opened = nullptr;
    std::string rack;
    std::size_t first_station = 0, first_node = 0;
    std::vector<std::size_t> place; ///< in the cluster, by place of its own
    /// By place: whose turn it is where several NICs serve, whichever other places are opened.
    std::vector<std::size_t> turn;
  };

  void add(const OpenMachine& machine) {
    const MachineGroup& group = group_of(m_profile, machine);
    const std::string own_name =
        machine.number < group.members.size() ? group.members[machine.number] : "";
    const auto key =
        std::tuple(machine.group, own_name, machine.workers, machine.relays, machine.works);
    auto known = m_opened.find(key);
    if (known == m_opened.end()) {
      known = m_opened.emplace(key, open_machine(m_profile, machine, m_transport)).first;
      const std::vector<std::string>& unknown = known->second.network.unknown;
      m_out.unknown.insert(m_out.unknown.end(), unknown.begin(), unknown.end());
    }
    const OpenedMachine& opened = known->second;
    Member member{&opened, group.rack, m_out.stations.size(), m_nodes, {}, {}};
    for (const Place& place : opened.network.places) {
      member.turn.push_back(machine.number + number_in_machine(group.id, place.id));
    }
    m_out.machines.push_back({group.id, machine.number, name_of(group, machine.number)});
    for (Station station : opened.network.stations) {
      station.name = fmt::format("{} {}", m_out.machines.back().name, station.name);
      m_out.stations.push_back(std::move(station));
    }
    for (const GraphLink& link : opened.network.links) {
      m_out.links.push_back(
          {link.from + m_nodes, link.to + m_nodes, shifted(link.station, member)});
    }
    m_nodes += opened.network.nodes;
    m_members.push_back(std::move(member));
  }

  /// Of a GPU or a NUMA node among its like; 0 of a whole machine.
  [[nodiscard]] std::size_t number_in_machine(const std::string& group,
                                              const std::string& id) const {
    const TopologyObject* const object = m_profile.topology.find(id);
    if (object == nullptr || id == group) {
      return 0;
    }
    const std::vector<std::string> alike = m_profile.topology.ids_in(group, object->kind);
    return static_cast<std::size_t>(std::find(alike.begin(), alike.end(), id) - alike.begin());
  }

  static std::optional<std::size_t> shifted(std::optional<std::size_t> station, const Member& to) {
    return station ? std::optional(*station + to.first_station) : std::nullopt;
  }
  static Uses shifted(Uses uses, const Member& to) {
    for (Use& use : uses) {
      use.station += to.first_station;
    }
    return uses;
  }

  /// Workers first, machine by machine, then what only sums.
  void number_places() {
    for (Member& member : m_members) {
      member.place.resize(member.opened->network.places.size());
    }
    for (const bool worker : {true, false}) {
      for (std::size_t m = 0; m < m_members.size(); ++m) {
        const Network& inner = m_members[m].opened->network;
        for (std::size_t v = 0; v < inner.places.size(); ++v) {
          if (inner.places[v].worker == worker) {
            m_members[m].place[v] = m_out.places.size();
            m_out.places.push_back(inner.places[v]);
            m_out.places.back().machine = m;
            m_out.add.push_back(shifted(inner.add[v], m_members[m]));
            m_out.exits.push_back({Exit{}});
            m_out.node_of.push_back(inner.node_of[v] + m_members[m].first_node);
            m_out.workers += worker ? 1 : 0;
          }
        }
        for (const std::vector<std::size_t>& group : inner.groups) {
          if (worker) {
            std::vector<std::size_t>& numbered = m_out.groups.emplace_back();
            for (const std::size_t v : group) {
              numbered.push_back(m_members[m].place[v]);
            }
          }
        }
      }
    }
  }

  /// Racks whose uplinks are known, and the graph's way from every machine to every other.
  void uplinks() {
    const std::size_t core = m_nodes++;
    for (const Member& member : m_members) {
      std::size_t hub = core;
      CellKey pattern;
      pattern.test = k_uplink;
      pattern.from = member.rack;
      const std::vector<const Cell*> cells =
          member.rack.empty() ? std::vector<const Cell*>() : m_profile.select(pattern);
      if (!cells.empty() && !m_racks.contains(member.rack)) {
        const Rate rate = measured_rate(*cells.front());
        Rack rack{m_out.stations.size(), m_out.stations.size() + 1, m_nodes++};
        for (const char* const direction : {"out", "in"}) {
          m_out.stations.push_back({fmt::format("rack {} {}", member.rack, direction), rate.mid,
                                    k_uplink, 0, std::min(rate.lo, rate.mid),
                                    std::max(rate.hi, rate.mid)});
        }
        m_out.links.push_back({rack.node, core, rack.out});
        m_out.links.push_back({core, rack.node, rack.in});
        m_racks.emplace(member.rack, rack);
      }
      if (const auto rack = m_racks.find(member.rack); rack != m_racks.end()) {
        hub = rack->second.node;
      }
      for (const OpenedMachine::Port& port : member.opened->ports) {
        m_out.links.push_back(
            {port.node + member.first_node, hub, port.out + member.first_station});
        m_out.links.push_back({hub, port.node + member.first_node, port.in + member.first_station});
      }
    }
  }

  void ways_inside() {
    const std::size_t n = m_out.places.size();
    m_out.ways.assign(n, std::vector<std::optional<Uses>>(n));
    for (const Member& member : m_members) {
      const auto& ways = member.opened->network.ways;
      for (std::size_t u = 0; u < ways.size(); ++u) {
        for (std::size_t v = 0; v < ways.size(); ++v) {
          if (ways[u][v]) {
            m_out.ways[member.place[u]][member.place[v]] = shifted(*ways[u][v], member);
          }
        }
      }
    }
  }

  /// A pair of machines that was measured and is slower than their ports.
  std::optional<std::size_t> pair_station(std::size_t from, std::size_t to, double ports) {
    const std::pair key(from, to);
    if (const auto known = m_pairs.find(key); known != m_pairs.end()) {
      return known->second;
    }
    CellKey pattern;
    pattern.test = k_pair_bandwidth;
    pattern.from = m_out.machines[from].name;
    pattern.to = m_out.machines[to].name;
    std::optional<std::size_t> out;
    for (const Cell* const cell : m_profile.select(pattern)) {
      if (is_over(*cell, m_transport) && cell->key.direction != "two_way" && cell->p50 > 0 &&
          cell->p50 < ports && !out) {
        const Rate rate = measured_rate(*cell);
        out = m_out.stations.size();
        m_out.stations.push_back({fmt::format("{} -> {}", pattern.from, pattern.to), rate.mid,
                                  k_pair_bandwidth, 0, std::min(rate.lo, rate.mid),
                                  std::max(rate.hi, rate.mid)});
      }
    }
    m_pairs.emplace(key, out);
    return out;
  }

  void ways_between() {
    for (std::size_t a = 0; a < m_members.size(); ++a) {
      for (std::size_t b = 0; b < m_members.size(); ++b) {
        if (a == b) {
          continue;
        }
        const Member &from = m_members[a], &to = m_members[b];
        double ports = 0;
        for (const OpenedMachine::Port& port : from.opened->ports) {
          ports = std::max(ports, from.opened->network.stations[port.out].bytes_per_second);
        }
        Uses middle;
        if (from.rack != to.rack && m_racks.contains(from.rack)) {
          middle.push_back({m_racks.at(from.rack).out, 1});
        }
        if (const auto pair = pair_station(a, b, ports)) {
          middle.push_back({*pair, 1});
        }
        if (from.rack != to.rack && m_racks.contains(to.rack)) {
          middle.push_back({m_racks.at(to.rack).in, 1});
        }
        for (std::size_t u = 0; u < from.place.size(); ++u) {
          for (std::size_t v = 0; v < to.place.size(); ++v) {
            const std::vector<Uses>&leave = from.opened->leave[u], &enter = to.opened->enter[v];
            Uses uses = shifted(leave[to.turn[v] % leave.size()], from);
            uses.insert(uses.end(), middle.begin(), middle.end());
            const Uses last = shifted(enter[from.turn[u] % enter.size()], to);
            uses.insert(uses.end(), last.begin(), last.end());
            m_out.ways[from.place[u]][to.place[v]] = std::move(uses);
          }
        }
      }
    }
  }

  void latency() {
    CellKey pattern;
    pattern.test = k_fabric_latency;
    for (const NetworkMachine& machine : m_out.machines) {
      pattern.from = machine.group;
      for (const Cell* const cell : m_profile.select(pattern)) {
        if (is_over(*cell, m_transport)) {
          m_out.latency_s = std::max(m_out.latency_s, cell->p50);
        }
      }
    }
  }

  struct Rack {
    std::size_t out = 0, in = 0, node = 0;
  };

  const Profile& m_profile;
  std::string m_transport;
  Network m_out;
  using Key = std::tuple<std::string, std::string, std::vector<std::string>,
                         std::vector<std::string>, bool>;
  std::map<Key, OpenedMachine> m_opened;
  std::vector<Member> m_members;
  std::map<std::string, Rack> m_racks;
  std::map<std::pair<std::size_t, std::size_t>, std::optional<std::size_t>> m_pairs;
  std::size_t m_nodes = 0;
};

} // namespace

Network network_between_machines(const Profile& profile, const std::vector<OpenMachine>& machines,
                                 const std::string& transport) {
  return Cluster(profile, transport).join(machines);
}

} // namespace reckon
