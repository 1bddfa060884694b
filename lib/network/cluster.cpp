// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "core/interrupt.hpp"
#include "documents/cells.hpp"
#include "documents/profile.hpp"
#include "network/inside.hpp"
#include "network/pairs.hpp"
#include "network/rate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <string_view>
#include <tuple>

namespace reckon {
namespace {

const MachineGroup& group_of(const Profile& profile, const OpenMachine& machine) {
  const MachineGroup* const group = group_named(profile, machine.group);
  if (group == nullptr) {
    fail(ErrorKind::input,
         fmt::format("profile '{}' has no machines \"{}\"", profile.name, machine.group));
  }
  if (machine.number >= group->count && !(machine.port && machine.port->made_up)) {
    fail(ErrorKind::input, fmt::format("profile '{}' has {} machines \"{}\", fewer than are asked "
                                       "for: name fewer, or raise their count",
                                       profile.name, group->count, machine.group));
  }
  return *group;
}

/// Empty where the group's machines have no names.
std::string member_of(const MachineGroup& group, std::uint64_t number) {
  return number < group.members.size() ? group.members[number] : "";
}

std::string name_of(const MachineGroup& group, std::uint64_t number) {
  if (number < group.members.size()) {
    return group.members[number];
  }
  return group.count == 1 && number == 0 ? group.id : fmt::format("{}.{}", group.id, number);
}

/// A way between two machines that was measured.
struct Pair {
  std::optional<std::size_t> station; ///< absent: it is as fast as the ports
  double latency_s = 0;
  bool measured = false; ///< its rate is known
};

class Cluster {
public:
  Cluster(const Profile& profile, std::string transport)
      : m_profile(profile), m_index(profile), m_transport(std::move(transport)) {
    m_pairs_known = std::any_of(profile.cells.begin(), profile.cells.end(), [&](const Cell& cell) {
      return cell.has_value() && is_over(cell, m_transport) &&
             std::find(k_pair_cases.begin(), k_pair_cases.end(), cell.key.test) !=
                 k_pair_cases.end();
    });
  }

  [[nodiscard]] Network join(const std::vector<OpenMachine>& machines) {
    for (const OpenMachine& machine : machines) {
      add(machine);
    }
    number_places();
    uplinks();
    ways_inside();
    ways_between();
    name_pair_sources();
    m_out.nodes = m_nodes;
    m_out.transport = m_transport;
    return std::move(m_out);
  }

private:
  static constexpr std::array k_pair_cases{k_pair_write, k_pair_bandwidth, k_pair_latency};

  /// A machine in the cluster: what it looks like alone, and where its parts are now.
  struct Member {
    const OpenedMachine* opened = nullptr;
    std::string rack;
    std::string own_name;     ///< that cells of pairs have for it
    bool pairs_count = false; ///< whether what was measured of pairs is true of it
    std::size_t first_station = 0, first_node = 0;
    std::vector<std::size_t> place; ///< in the cluster, by place of its own
    /// By place: whose turn it is where several NICs serve, whichever other places are opened.
    std::vector<std::size_t> turn;
  };

  void add(const OpenMachine& machine) {
    const MachineGroup& group = group_of(m_profile, machine);
    const std::string own_name = member_of(group, machine.number);
    const MachinePort port = machine.port.value_or(MachinePort());
    const auto key =
        std::tuple(machine.group, own_name, machine.workers, machine.relays, machine.works,
                   machine.gpu_direct, machine.switches,
                   std::tuple(port.together.lo, port.together.mid, port.together.hi), port.each);
    auto known = m_opened.find(key);
    if (known == m_opened.end()) {
      known = m_opened.emplace(key, open_machine(m_index, machine, m_transport)).first;
      const Network& inner = known->second.network;
      for (const auto names : {&Network::unknown, &Network::at_least, &Network::pair_sources}) {
        (m_out.*names).insert((m_out.*names).end(), (inner.*names).begin(), (inner.*names).end());
      }
    }
    const OpenedMachine& opened = known->second;
    // One write between two machines, which is what was measured, passes one port.
    const bool pairs_count = m_pairs_known && !port.made_up && port.each.size() < 2;
    Member member{&opened,
                  group.rack,
                  own_name.empty() ? group.id : own_name,
                  pairs_count,
                  m_out.stations.size(),
                  m_nodes,
                  {},
                  {}};
    for (const Place& place : opened.network.places) {
      member.turn.push_back(machine.number + number_in_machine(group.id, place.id) +
                            place.process.value_or(0));
    }
    m_out.machines.push_back(
        {group.id, machine.number,
         machine.name.empty() ? name_of(group, machine.number) : machine.name});
    for (Station station : opened.network.stations) {
      const std::string whole = " " + group.id; // "sums m0": of the machine, whose name comes first
      const std::string_view name = station.name;
      station.name =
          fmt::format("{} {}", m_out.machines.back().name,
                      name.substr(0, name.size() - (name.ends_with(whole) ? whole.size() : 0)));
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
            m_out.exits.push_back(inner.exits[v]);
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
      std::vector<const Cell*> cells =
          member.rack.empty() ? std::vector<const Cell*>()
                              : m_profile.select({.test = k_uplink, .from = member.rack});
      std::erase_if(
          cells, [&](const Cell* cell) { return !is_over(*cell, m_transport) || cell->p50 <= 0; });
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
    m_out.latency_s.assign(n, std::vector<double>(n, 0));
    for (const Member& member : m_members) {
      const auto& ways = member.opened->network.ways;
      const auto& latency_s = member.opened->network.latency_s;
      for (std::size_t u = 0; u < ways.size(); ++u) {
        for (std::size_t v = 0; v < ways.size(); ++v) {
          if (ways[u][v]) {
            m_out.ways[member.place[u]][member.place[v]] = shifted(*ways[u][v], member);
            m_out.latency_s[member.place[u]][member.place[v]] = latency_s[u][v];
          }
        }
      }
    }
  }

  /// The slower of two machines' ports; infinite where neither is known.
  [[nodiscard]] static double port_rate(const Member& from, const Member& to) {
    double rate = std::numeric_limits<double>::infinity();
    for (const Member* const member : {&from, &to}) {
      double fastest = 0;
      for (const OpenedMachine::Port& port : member->opened->ports) {
        fastest = std::max(fastest, member->opened->network.stations[port.out].bytes_per_second);
      }
      rate = fastest > 0 ? std::min(rate, fastest) : rate;
    }
    return rate;
  }

  /// What the profile says of the way from a machine to another.
  Pair measured(std::size_t a, std::size_t b) {
    const Member &from = m_members[a], &to = m_members[b];
    const bool counts = from.pairs_count && to.pairs_count && from.own_name != to.own_name;
    PairWay way = counts ? pair_way(m_index, from.own_name, to.own_name, m_transport) : PairWay();
    Pair pair;
    pair.measured = way.measured();
    pair.latency_s = way.latency_s.value_or(group_latency(m_out.machines[a].group));
    if (pair.measured) {
      ++m_pair_sources[way.source];
    }
    if (pair.measured && std::isfinite(way.rate.mid) && way.slower_than(port_rate(from, to))) {
      pair.station = m_out.stations.size();
      m_out.stations.push_back(
          {fmt::format("{} -> {}", m_out.machines[a].name, m_out.machines[b].name), way.rate.mid,
           way.source, 0, std::min(way.rate.lo, way.rate.mid), std::max(way.rate.hi, way.rate.mid),
           std::move(way.busy)});
    }
    return pair;
  }

  /// Of an empty write from a machine of a group to any other.
  double group_latency(const std::string& group) {
    const auto [at, added] = m_latency.try_emplace(group, 0);
    if (added) {
      for (const Cell* const cell : m_profile.select({.test = k_fabric_latency, .from = group})) {
        if (is_over(*cell, m_transport)) {
          at->second = std::max(at->second, cell->p50);
        }
      }
    }
    return at->second;
  }

  /// Throws Error{input} where nothing is known between two machines.
  void check_known(const Pair& pair, std::size_t a, std::size_t b) const {
    for (const std::size_t end : {a, b}) {
      if (!pair.measured && m_members[end].opened->ports.empty()) {
        const std::string over =
            m_transport.empty() ? "" : fmt::format(" over transport {}", m_transport);
        fail(
            ErrorKind::input,
            fmt::format("profile '{}': no rate of a network port of machine {} is known{}, nor how "
                        "long a write from {} to {} takes; measure it with `reckon probe "
                        "--cluster`, or add a port_bandwidth cell or the link_bytes_per_second of "
                        "its NICs",
                        m_profile.name, m_members[end].own_name, over, m_out.machines[a].name,
                        m_out.machines[b].name));
      }
    }
  }

  void ways_between() {
    const std::size_t machines = m_members.size();
    int lanes = 1;
    for (const Member& member : m_members) {
      lanes = common_lanes(lanes, static_cast<int>(member.opened->leave_by_port.size()));
    }
    if (lanes > 1) {
      m_out.lane_ways.assign(static_cast<std::size_t>(lanes), m_out.ways);
    }
    for (std::size_t a = 0; a < machines; ++a) {
      stop_if_interrupted();
      for (std::size_t b = 0; b < machines; ++b) {
        if (a == b) {
          continue;
        }
        const Member &from = m_members[a], &to = m_members[b];
        const Pair pair = measured(a, b);
        check_known(pair, a, b);
        Uses middle;
        if (from.rack != to.rack && m_racks.contains(from.rack)) {
          middle.push_back({m_racks.at(from.rack).out, 1});
        }
        if (pair.station) {
          middle.push_back({*pair.station, 1});
        }
        if (from.rack != to.rack && m_racks.contains(to.rack)) {
          middle.push_back({m_racks.at(to.rack).in, 1});
        }
        const auto joined = [&](const Uses& leave, const Uses& enter) {
          Uses uses = shifted(leave, from);
          uses.insert(uses.end(), middle.begin(), middle.end());
          const Uses last = shifted(enter, to);
          uses.insert(uses.end(), last.begin(), last.end());
          return uses;
        };
        for (std::size_t u = 0; u < from.place.size(); ++u) {
          for (std::size_t v = 0; v < to.place.size(); ++v) {
            const std::vector<Uses>&leave = from.opened->leave[u], &enter = to.opened->enter[v];
            if (leave.empty() || enter.empty()) {
              continue;
            }
            const Uses &out = leave[to.turn[v] % leave.size()],
                       &in = enter[from.turn[u] % enter.size()];
            m_out.ways[from.place[u]][to.place[v]] = joined(out, in);
            m_out.latency_s[from.place[u]][to.place[v]] = pair.latency_s;
            for (std::size_t lane = 0; lane < m_out.lane_ways.size(); ++lane) {
              m_out.lane_ways[lane][from.place[u]][to.place[v]] =
                  joined(by_port(from.opened->leave_by_port, lane, out),
                         by_port(to.opened->enter_by_port, lane, in));
            }
          }
        }
      }
    }
  }

  static const Uses& by_port(const std::vector<Uses>& ports, std::size_t lane, const Uses& one) {
    return ports.empty() ? one : ports[lane % ports.size()];
  }

  void name_pair_sources() {
    for (const auto& [test, ways] : m_pair_sources) {
      m_out.pair_sources.push_back(fmt::format("{}: {} ways between machines", test, ways));
    }
  }

  struct Rack {
    std::size_t out = 0, in = 0, node = 0;
  };

  const Profile& m_profile;
  CellIndex m_index;
  std::string m_transport;
  Network m_out;
  using Key =
      std::tuple<std::string, std::string, std::vector<std::string>, std::vector<std::string>, bool,
                 bool, bool, std::tuple<double, double, double>,
                 std::vector<std::pair<std::string, double>>>;
  std::map<Key, OpenedMachine> m_opened;
  std::vector<Member> m_members;
  std::map<std::string, Rack> m_racks;
  bool m_pairs_known = false;
  std::map<std::string, std::size_t> m_pair_sources; ///< case: ways that it is known of
  std::map<std::string, double> m_latency;           ///< by group
  std::size_t m_nodes = 0;
};

} // namespace

std::string fastest_transport(const Profile& profile, const std::set<PortOwner>& machines) {
  std::map<std::string, std::map<std::string, double>> ports; // by transport, then id
  for (const Cell* const cell : profile.select({.test = k_port_bandwidth})) {
    if (!cell->key.transport.empty()) {
      double& rate = ports[cell->key.transport][cell->key.from];
      rate = std::max(rate, cell->p50);
    }
  }
  std::string fastest;
  double most = -1;
  for (auto& [transport, rates] : ports) {
    double slowest = std::numeric_limits<double>::infinity();
    for (const PortOwner& machine : machines) {
      double nics = 0;
      for (const std::string& nic : profile.topology.ids_in(machine.group, ObjectKind::nic)) {
        nics += rates[nic];
      }
      slowest = std::min(slowest, std::max({rates[machine.member], rates[machine.group], nics}));
    }
    if (slowest > most) {
      most = slowest;
      fastest = transport;
    }
  }
  return fastest;
}

Network network_between_machines(const Profile& profile, const std::vector<OpenMachine>& machines,
                                 const std::string& transport) {
  if (!transport.empty()) {
    return Cluster(profile, transport).join(machines);
  }
  std::set<PortOwner> owners;
  for (const OpenMachine& machine : machines) {
    const MachineGroup& group = group_of(profile, machine);
    owners.insert({member_of(group, machine.number), group.id});
  }
  return Cluster(profile, fastest_transport(profile, owners)).join(machines);
}

} // namespace reckon
