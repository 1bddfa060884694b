// SPDX-License-Identifier: Apache-2.0
#include "expect/ceilings.hpp"

#include "core/error.hpp"
#include "core/name_ranges.hpp"
#include "expect/routes.hpp"
#include "network/inside.hpp"
#include "strategies/forest/bound.hpp"
#include "strategies/forest/optimum.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace reckon {
namespace {

using expect_detail::best_mix;
using expect_detail::cheapest_order;
using expect_detail::Choice;
using expect_detail::Mix;

constexpr double k_impossible = std::numeric_limits<double>::infinity();
constexpr std::string_view k_all_reduce = "all_reduce";

using Stations = std::vector<Station>;
using Solve = std::function<Mix(const Stations&)>;

/// A way of a GPU out of its machine, and into it, through one NIC.
struct NicWay {
  Uses out, in;
};

void append(Uses& uses, const Uses& more, double factor = 1) {
  for (const Use& use : more) {
    uses.push_back({use.station, factor * use.amount});
  }
}

/// One of the machines; alone, it has no NICs.
OpenedMachine opened(const Profile& profile, const CollectiveJob& job, bool every_nic) {
  if (job.machines == 1) {
    return {.network = network_inside_machine(profile, job.machine,
                                              {.workers = job.gpus,
                                               .relays = std::vector<std::string>(),
                                               .only_known_rates = true,
                                               .switches = true})};
  }
  const MachineGroup* const group = group_named(profile, job.machine);
  const std::string member = group != nullptr && !group->members.empty() ? group->members[0] : "";
  OpenMachine machine;
  machine.group = job.machine;
  machine.workers = job.gpus;
  machine.only_known_rates = true;
  machine.every_nic = every_nic;
  machine.switches = true;
  return open_machine(CellIndex(profile), machine,
                      fastest_transport(profile, {{member, job.machine}}));
}

class Job {
public:
  Job(const Profile& profile, const CollectiveJob& job)
      : m_profile(profile), m_job(job), m_opened(opened(profile, job, false)),
        m_network(m_opened.network), m_gpus(m_network.workers), m_several(job.machines > 1),
        m_bounded(for_bound()) {
    for (std::size_t u = 0; u < m_gpus; ++u) {
      for (std::size_t v = 0; v < m_gpus; ++v) {
        if (u != v && !m_network.ways[u][v]) {
          fail(ErrorKind::input, fmt::format("profile '{}': nothing joins {} and {}", profile.name,
                                             m_network.name_of(u), m_network.name_of(v)));
        }
      }
    }
    if (m_several) {
      find_nics();
    }
    find_gpu_links();
  }

  [[nodiscard]] WayCeilings of(const TestedCollective& collective) {
    m_collective = &collective;
    WayCeilings out;
    // `amount`: bytes of each route for each byte of the collective.
    const auto add = [&](const char* way, double amount, const Solve& solve) {
      const Mix mix = solve(m_network.stations);
      if (mix.seconds_per_byte <= 0) {
        return;
      }
      const auto bus = [&](const Mix& m) { return factor() / (amount * m.seconds_per_byte); };
      out.ways.push_back({way, bus(mix), names(mix.by), {}});
      if (m_unknown_gpu) {
        return;
      }
      const Mix low = solve(usual_rates(way, &UsualShare::low)),
                high = solve(usual_rates(way, &UsualShare::high));
      if (low.seconds_per_byte > 0 && bus(high) <= out.ways.back().bus_bytes_per_second) {
        out.ways.back().usual = {bus(low), bus(high), *share_of(way, low.by.front())};
      }
    };
    const bool peers = m_collective->name == "alltoall" || m_collective->name == "sendrecv" ||
                       m_collective->name == "scatter" || m_collective->name == "gather";
    if (peers) {
      add("direct", 1, [&](const Stations& stations) { return direct(stations); });
    } else {
      add("ring", factor(), [&](const Stations& stations) { return rings(stations); });
      if (m_collective->name == k_all_reduce && m_several) {
        add("tree", 1,
            [&](const Stations& stations) { return chains(stations, two_trees(m_job.machines)); });
      }
      if (in_switch() && (m_several ? m_collective->name == k_all_reduce : factor() != 1)) {
        add(m_several ? "nvls_tree" : "nvls", 1, [&](const Stations& stations) {
          return sums_in_switch(stations, two_trees(m_job.machines));
        });
      }
      if (m_job.sharp && m_several && m_collective->name == k_all_reduce) {
        add("sharp", 1, [&](const Stations& stations) {
          return in_switch() ? sums_in_switch(stations, {1, 1}) : chains(stations, {1, 1});
        });
      }
      any(out.ways);
    }
    out.unknown = unknown_of(m_network);
    return out;
  }

private:
  [[nodiscard]] double factor() const {
    return m_collective->bus_factor(static_cast<double>(m_job.ranks()));
  }

  /// Of all GPUs those whose NICs are nearest: others reach the network by their own or through
  /// them. Behind a common PCIe switch all are equally near.
  void find_nics() {
    if (m_opened.ports.empty()) {
      fail(ErrorKind::input,
           fmt::format("profile '{}': no rate of a network port of machine {} is known; add the "
                       "link_bytes_per_second of its NICs, a port_bandwidth cell, or give "
                       "--nic-rate (8x400Gb/s where no NIC is listed)",
                       m_profile.name, m_job.machine));
    }
    const auto distance = [&](std::size_t u) {
      return m_opened.distance.empty() ? PathClass::self
                                       : std::max(m_opened.distance[u], PathClass::pxb);
    };
    PathClass nearest = PathClass::sys;
    for (std::size_t u = 0; u < m_gpus; ++u) {
      nearest = std::min(nearest, distance(u));
    }
    m_nics.resize(m_gpus);
    for (std::size_t u = 0; u < m_gpus; ++u) {
      m_near.push_back(distance(u) == nearest);
      for (std::size_t i = 0; i < m_opened.leave[u].size(); ++i) {
        m_nics[u].push_back({m_opened.leave[u][i], m_opened.enter[u][i]});
      }
    }
    for (std::size_t u = 0; u < m_gpus; ++u) {
      for (std::size_t via = 0; !m_near[u] && via < m_gpus; ++via) {
        for (std::size_t i = 0; m_near[via] && i < m_opened.leave[via].size(); ++i) {
          NicWay& way = m_nics[u].emplace_back();
          append(way.out, *m_network.ways[u][via]);
          append(way.out, m_opened.leave[via][i]);
          append(way.in, m_opened.enter[via][i]);
          append(way.in, *m_network.ways[via][u]);
        }
      }
    }
  }

  [[nodiscard]] std::optional<std::size_t> in_switch() const {
    return m_network.places.size() > m_gpus && m_gpus > 1 ? std::optional(m_gpus) : std::nullopt;
  }

  /// What people call it: of a link's two ends the one that hangs from the other.
  static std::string name_of(const Station& station) {
    static const std::map<std::string_view, const char*> words{{"nvlink", "NVLink "},
                                                               {"xgmi", "xgmi "},
                                                               {"socket", "socket "},
                                                               {"pcie", "PCIe "},
                                                               {"port", "port "}};
    const auto word = words.find(station.kind);
    return word == words.end()  ? station.name
           : station.of.empty() ? std::string(station.kind)
                                : word->second + station.of;
  }

  [[nodiscard]] std::vector<std::string> names(const std::vector<std::size_t>& stations) const {
    std::vector<std::string> out;
    for (const std::size_t s : stations) {
      const std::string name = name_of(m_network.stations[s]);
      if (std::ranges::find(out, name) == out.end()) {
        out.push_back(name);
      }
    }
    return name_ranges(out);
  }

  /// What is published of PCIe is of traffic between GPUs.
  [[nodiscard]] std::optional<UsualShare> share_of(std::string_view way,
                                                   std::size_t station) const {
    const std::string_view kind = m_network.stations[station].kind;
    if (kind == "pcie" && m_gpu_links.bytes_per_second > 0 && !m_between.contains(station)) {
      return std::nullopt;
    }
    return usual_share(way, kind, m_gpu_links);
  }

  /// The stations at the shares of their rates that the way usually reaches; those of which nothing
  /// is published limit nothing.
  [[nodiscard]] Stations usual_rates(std::string_view way, double UsualShare::*end) const {
    constexpr double k_no_limit = 1e9; // times as fast
    Stations stations = m_network.stations;
    for (std::size_t s = 0; s < stations.size(); ++s) {
      const std::optional<UsualShare> share = share_of(way, s);
      stations[s].bytes_per_second *= share ? (*share).*end : k_no_limit;
    }
    return stations;
  }

  /// What the links to other GPUs and their switches carry together, of the GPU with the least.
  void find_gpu_links() {
    for (std::size_t u = 0; u < m_gpus; ++u) {
      std::set<std::size_t> first;
      for (std::size_t v = 0; v < m_gpus; ++v) {
        if (u == v || m_network.ways[u][v]->empty()) {
          continue;
        }
        first.insert(m_network.ways[u][v]->front().station);
        for (const Use& use : *m_network.ways[u][v]) {
          m_between.insert(use.station);
        }
      }
      double rate = 0;
      for (const std::size_t s : first) {
        const Station& station = m_network.stations[s];
        rate += station.kind == "nvlink" || station.kind == "xgmi" ? station.bytes_per_second : 0;
      }
      m_gpu_links.bytes_per_second = u == 0 ? rate : std::min(m_gpu_links.bytes_per_second, rate);
    }
    m_gpu_links.gpus = m_gpus;
    const auto unknown = [&](const Network& inside) {
      return std::ranges::any_of(unknown_of(inside), [&](const std::string& link) {
        const TopologyObject* const from = object_named(link.substr(0, link.find(" > ")));
        return from == nullptr || from->kind != ObjectKind::numa_node;
      });
    };
    if (m_several && m_gpus > 1) { // where the network has ways to NICs, too
      CollectiveJob alone = m_job;
      alone.machines = 1;
      m_unknown_gpu = unknown(opened(m_profile, alone, false).network);
    } else if (m_gpus > 1) {
      m_unknown_gpu = unknown(m_network);
    }
  }

  /// A ring passes every GPU of a machine once. Between machines place 0 is outside.
  [[nodiscard]] Mix rings(const Stations& stations) const {
    return best_mix(stations, [&](const std::vector<double>& prices) {
      const std::size_t outside = m_several ? 1 : 0;
      std::vector<std::vector<double>> cost = costs(prices, false, outside);
      std::vector<const NicWay*> in(m_gpus, nullptr), out(m_gpus, nullptr);
      for (std::size_t u = 0; m_several && u < m_gpus; ++u) {
        for (const NicWay& nic : m_nics[u]) {
          keep_cheaper(cost[0][u + 1], in[u], nic, cost_of(nic.in, prices));
          keep_cheaper(cost[u + 1][0], out[u], nic, cost_of(nic.out, prices));
        }
      }
      const std::vector<std::size_t> order = cheapest_order(cost, true);
      Uses uses;
      for (std::size_t i = 0; i < order.size(); ++i) {
        const std::size_t from = order[i], to = order[(i + 1) % order.size()];
        if (outside == 1 && (from == 0 || to == 0)) {
          append(uses, from == 0 ? in[to - 1]->in : out[from - 1]->out);
        } else {
          append(uses, *m_network.ways[from - outside][to - outside]);
        }
      }
      return uses;
    });
  }

  /// In each machine a chain, up and down again, from a GPU beside a NIC, which joins the machines'
  /// trees.
  [[nodiscard]] Mix chains(const Stations& stations, const TreeTraffic& between) const {
    return best_mix(stations, [&](const std::vector<double>& prices) {
      std::vector<std::vector<double>> cost = costs(prices, true, 1);
      std::vector<const NicWay*> by(m_gpus, nullptr);
      for (std::size_t u = 0; u < m_gpus; ++u) {
        for (std::size_t i = 0; m_near[u] && i < m_nics[u].size(); ++i) {
          const NicWay& nic = m_nics[u][i];
          keep_cheaper(cost[0][u + 1], by[u], nic,
                       between.out * cost_of(nic.out, prices) +
                           between.in * cost_of(nic.in, prices));
        }
      }
      const std::vector<std::size_t> order = cheapest_order(cost, false);
      Uses uses = nic_uses(*by[order[1] - 1], between);
      for (std::size_t i = 2; i < order.size(); ++i) {
        append(uses, *m_network.ways[order[i - 1] - 1][order[i] - 1]);
        append(uses, *m_network.ways[order[i] - 1][order[i - 1] - 1]);
      }
      return uses;
    });
  }

  /// Each GPU in turn asks the switch for a part's sum, and gives it to all.
  [[nodiscard]] Mix sums_in_switch(const Stations& stations, const TreeTraffic& between) {
    m_network.collective = kind();
    Choice parts;
    for (std::size_t root = 0; root < m_gpus; ++root) {
      Tree tree;
      tree.up.assign(m_gpus, static_cast<std::int64_t>(*in_switch()));
      tree.up.resize(m_network.places.size(), -1);
      tree.up[root] = tree.up[*in_switch()] = static_cast<std::int64_t>(root);
      tree.down = tree.up;
      halve(m_network, tree);
      const Uses uses = uses_of(loads_of(m_network, tree));
      if (!m_several) {
        parts.routes.push_back(uses);
      }
      for (std::size_t i = 0; m_several && m_near[root] && i < m_nics[root].size(); ++i) {
        parts.routes.push_back(uses);
        append(parts.routes.back(), nic_uses(m_nics[root][i], between));
      }
    }
    return best_mix(stations, {}, {parts});
  }
  static Uses uses_of(const std::vector<double>& loads) {
    Uses uses;
    for (std::size_t s = 0; s < loads.size(); ++s) {
      uses.push_back({s, loads[s]});
    }
    return uses;
  }

  /// Ranks send to each other without help: to all, to the next, to the root or from it.
  [[nodiscard]] Mix direct(const Stations& stations) const {
    const auto ranks = static_cast<double>(m_job.ranks());
    const auto remote = (ranks - static_cast<double>(m_gpus)) / ranks;
    Uses base;
    std::vector<Choice> choices;
    const auto outward = [&](std::size_t u, double out, double in) {
      if (m_several) {
        choices.push_back(through_nics(u, out, in));
      }
    };
    for (std::size_t u = 0; u < m_gpus; ++u) {
      for (std::size_t v = 0; v < m_gpus; ++v) {
        const bool sends = m_collective->name == "alltoall" ||
                           (m_collective->name == "scatter" && u == 0) ||
                           (m_collective->name == "gather" && v == 0);
        if (u != v && sends) {
          append(base, *m_network.ways[u][v], 1 / ranks);
        }
      }
      if (m_collective->name == "alltoall") {
        outward(u, remote, remote);
      } else if (m_collective->name == "sendrecv") {
        if (u + 1 < m_gpus || (!m_several && m_gpus > 1)) {
          append(base, *m_network.ways[u][(u + 1) % m_gpus]);
        }
        outward(u, u + 1 == m_gpus ? 1 : 0, u == 0 ? 1 : 0);
      } else if (u == 0) {
        outward(u, m_collective->name == "scatter" ? remote : 0,
                m_collective->name == "gather" ? remote : 0);
      }
    }
    return best_mix(stations, base, choices);
  }

  [[nodiscard]] Choice through_nics(std::size_t gpu, double out, double in) const {
    Choice choice;
    for (const NicWay& nic : m_nics[gpu]) {
      choice.routes.push_back(nic_uses(nic, {out, in}));
    }
    return choice;
  }

  /// One of the machines with all its ways, and with what is outside of it.
  [[nodiscard]] Network for_bound() const {
    if (!m_several) {
      return m_network;
    }
    OpenedMachine machine = opened(m_profile, m_job, true);
    Network& network = machine.network;
    for (Station& station : network.stations) { // of a machine that is one place: "out"
      const bool whole = m_job.gpus.empty() && station.kind == "port" && station.of.empty();
      station.name = (whole ? "port " : "") + station.name;
    }
    network.elsewhere = static_cast<double>(m_job.machines) - 1;
    const std::size_t outside = network.nodes++;
    for (const OpenedMachine::Port& port : machine.ports) {
      network.links.push_back({port.node, outside, port.out});
      network.links.push_back({outside, port.node, port.in});
    }
    network.nic_nodes.assign(1, outside);
    return std::move(network);
  }

  /// Equation 27 for one of the machines, with what it has to exchange with the others; and (26)
  /// where it is alone.
  void any(std::vector<WayCeiling>& ways) {
    m_bounded.collective = kind();
    if (m_several) {
      const double once = m_bounded.elsewhere / (m_bounded.elsewhere + 1);
      m_bounded.network = m_bounded.collective == Collective::all_reduce ? 2 * once
                          : has_nths(m_bounded.collective)               ? once
                                                                         : 1;
    }
    NetworkBound bound = network_bound(m_bounded);
    if (bound.seconds_per_byte <= 0) {
      return;
    }
    constexpr double k_same = 1e-6;
    const auto best = std::ranges::max_element(ways, {}, &WayCeiling::bus_bytes_per_second);
    const auto reached = [&] {
      return best != ways.end() &&
             best->bus_bytes_per_second * bound.seconds_per_byte >= factor() * (1 - k_same);
    };
    std::vector<std::string> by{bound.by};
    if (!m_several && !reached()) {
      if (const double trees = least_of_trees(m_bounded); trees > bound.seconds_per_byte) {
        bound.seconds_per_byte = trees;
        by = reached() ? best->by : std::vector<std::string>{"no trees are faster (equation 26)"};
      }
    }
    ways.push_back({"any", factor() / bound.seconds_per_byte, std::move(by), {}});
  }

  [[nodiscard]] Collective kind() const {
    static const std::map<std::string_view, Collective> kinds{
        {"all_reduce", Collective::all_reduce},
        {"all_gather", Collective::all_gather},
        {"reduce_scatter", Collective::reduce_scatter},
        {"broadcast", Collective::broadcast},
        {"reduce", Collective::reduce}};
    return kinds.at(m_collective->name);
  }

  /// Between places of a route: `outside` more places come first. `both`: there and back.
  [[nodiscard]] std::vector<std::vector<double>> costs(const std::vector<double>& prices, bool both,
                                                       std::size_t outside) const {
    const std::size_t n = m_gpus + outside;
    std::vector<std::vector<double>> cost(n, std::vector<double>(n, k_impossible));
    for (std::size_t u = 0; u < m_gpus; ++u) {
      for (std::size_t v = 0; v < m_gpus; ++v) {
        if (u != v) {
          cost[u + outside][v + outside] = cost_of(*m_network.ways[u][v], prices) +
                                           (both ? cost_of(*m_network.ways[v][u], prices) : 0);
        }
      }
    }
    return cost;
  }

  static void keep_cheaper(double& least, const NicWay*& kept, const NicWay& nic, double cost) {
    if (cost < least) {
      least = cost;
      kept = &nic;
    }
  }
  static Uses nic_uses(const NicWay& nic, const TreeTraffic& between) {
    Uses uses;
    append(uses, nic.out, between.out);
    append(uses, nic.in, between.in);
    return uses;
  }
  /// By its id, or the rest of it after the machine's; nullptr: no object is called so.
  [[nodiscard]] const TopologyObject* object_named(const std::string& name) const {
    const TopologyObject* const found = m_profile.topology.find(
        name == m_job.machine ? name : fmt::format("{}/{}", m_job.machine, name));
    return found != nullptr ? found : m_profile.topology.find(name);
  }

  /// Links of unknown rate, without the ways from host bridges to their processor, which nothing
  /// describes.
  [[nodiscard]] std::vector<std::string> unknown_of(const Network& network) const {
    std::vector<std::string> links;
    for (const std::string& link : network.unknown) {
      const std::size_t arrow = link.find(" > ");
      const TopologyObject *const from = object_named(link.substr(0, arrow)),
                                  *const to = object_named(link.substr(arrow + 3));
      const auto hangs = [](const TopologyObject* bridge, const TopologyObject* from) {
        return bridge != nullptr && from != nullptr && bridge->kind == ObjectKind::host_bridge &&
               bridge->parent == from->id;
      };
      if (!hangs(from, to) && !hangs(to, from)) {
        links.push_back(link);
      }
    }
    return links;
  }

  const Profile& m_profile;
  const CollectiveJob& m_job;
  const TestedCollective* m_collective = nullptr;
  OpenedMachine m_opened;
  Network& m_network; ///< of one of the machines
  std::size_t m_gpus;
  bool m_several;
  Network m_bounded;                       ///< for_bound()
  std::vector<std::vector<NicWay>> m_nics; ///< by GPU
  std::vector<bool> m_near;                ///< by GPU
  GpuLinks m_gpu_links;
  std::set<std::size_t> m_between; ///< stations between two GPUs of a machine
  bool m_unknown_gpu =
      false; ///< whether a link between two of them has no known rate, but for sockets'
};

} // namespace

TreeTraffic two_trees(std::size_t machines) {
  std::vector<double> out(machines, 0), in(machines, 0);
  const auto number = [&](std::size_t place, bool second) {
    return !second ? place : machines % 2 == 0 ? machines - 1 - place : (place + 1) % machines;
  };
  for (const bool second : {false, true}) {
    for (std::size_t place = 1; place < machines; ++place) {
      const std::size_t bit = place & (~place + 1), without = place ^ bit,
                        with_next = without | bit << 1U;
      const std::size_t child = number(place, second),
                        parent = number(with_next < machines ? with_next : without, second);
      for (const std::size_t end : {child, parent}) { // a sum up, and the sum of all down
        out[end] += 0.5;
        in[end] += 0.5;
      }
    }
  }
  return {*std::ranges::max_element(out), *std::ranges::max_element(in)};
}

std::vector<WayCeilings> ceilings_of(const Profile& profile, const CollectiveJob& job,
                                     const std::vector<const TestedCollective*>& collectives) {
  if (job.machines < 1 || job.ranks() < 2) {
    fail(ErrorKind::usage, "one rank alone moves nothing: there is nothing to expect");
  }
  Job opened(profile, job);
  std::vector<WayCeilings> out;
  for (const TestedCollective* collective : collectives) {
    out.push_back(opened.of(*collective));
  }
  return out;
}

} // namespace reckon
