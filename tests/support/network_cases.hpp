// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "network/network.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace reckon::test {

/// All of a network that is no name, as text: equal if and only if two networks differ in names
/// only.
inline std::string text_of(const Network& network) {
  const auto uses = [](const Uses& all) {
    std::string text;
    for (const Use& use : all) {
      text += fmt::format(" {}*{}", use.station, use.amount);
    }
    return text;
  };
  std::string out = fmt::format("workers {} machines {} nodes {} network {} latency {} root {}\n",
                                network.workers, network.machines.size(), network.nodes,
                                network.network, network.latency_s, network.root);
  for (const Station& s : network.stations) {
    out += fmt::format("station {} {} {} {}\n", s.bytes_per_second, s.background,
                       s.low_bytes_per_second, s.high_bytes_per_second);
  }
  for (std::size_t u = 0; u < network.places.size(); ++u) {
    const Place& place = network.places[u];
    out += fmt::format("place {} {} {} node {} add{}\n", place.worker, place.memory, place.machine,
                       network.node_of[u], uses(network.add[u]));
    for (const Exit& exit : network.exits[u]) {
      out += fmt::format("exit{}\n", uses(exit.uses));
    }
    for (const std::optional<Uses>& way : network.ways[u]) {
      out += way ? fmt::format("way{}\n", uses(*way)) : "none\n";
    }
  }
  for (const std::vector<std::size_t>& group : network.groups) {
    out += fmt::format("group {}\n", fmt::join(group, " "));
  }
  for (const GraphLink& link : network.links) {
    out += fmt::format("link {} {} {}\n", link.from, link.to,
                       link.station ? fmt::format("{}", *link.station) : "-");
  }
  return out + fmt::format("nics {}\n", fmt::join(network.nic_nodes, " "));
}

/// The same network with all its numbers dealt anew (workers stay first), and other names.
/// `place_now`, if given, is told the new number of every place.
inline Network renumbered(const Network& old, std::mt19937_64& random,
                          std::vector<std::size_t>* place_now = nullptr) {
  const auto dealt = [&](std::size_t size, std::size_t apart) {
    std::vector<std::size_t> now(size);
    std::iota(now.begin(), now.end(), std::size_t{0});
    std::shuffle(now.begin(), now.begin() + static_cast<std::ptrdiff_t>(apart), random);
    std::shuffle(now.begin() + static_cast<std::ptrdiff_t>(apart), now.end(), random);
    return now;
  };
  const std::vector<std::size_t> place = dealt(old.places.size(), old.workers);
  const std::vector<std::size_t> machine = dealt(old.machines.size(), 0);
  const std::vector<std::size_t> node = dealt(old.nodes, 0);
  const std::vector<std::size_t> station = dealt(old.stations.size(), 0);
  const auto moved = [&](Uses uses) {
    for (Use& use : uses) {
      use.station = station[use.station];
    }
    return uses;
  };
  Network out = old;
  for (std::size_t m = 0; m < old.machines.size(); ++m) {
    out.machines[machine[m]] = {"other", machine[m], fmt::format("other.{}", machine[m])};
  }
  for (std::size_t s = 0; s < old.stations.size(); ++s) {
    out.stations[station[s]] = old.stations[s];
    out.stations[station[s]].name = fmt::format("other {}", station[s]);
  }
  for (std::size_t u = 0; u < old.places.size(); ++u) {
    Place& there = out.places[place[u]] = old.places[u];
    there.machine = machine[there.machine];
    there.id = fmt::format("other{}", place[u]);
    out.node_of[place[u]] = node[old.node_of[u]];
    out.add[place[u]] = moved(old.add[u]);
    out.exits[place[u]] = old.exits[u];
    for (Exit& exit : out.exits[place[u]]) {
      exit.uses = moved(exit.uses);
    }
    for (std::size_t v = 0; v < old.places.size(); ++v) {
      const std::optional<Uses>& way = old.ways[u][v];
      out.ways[place[u]][place[v]] = way ? std::optional(moved(*way)) : std::nullopt;
      if (!old.latency_s.empty()) {
        out.latency_s[place[u]][place[v]] = old.latency_s[u][v];
      }
    }
  }
  for (std::vector<std::size_t>& group : out.groups) {
    for (std::size_t& member : group) {
      member = place[member];
    }
  }
  std::shuffle(out.groups.begin(), out.groups.end(), random);
  for (GraphLink& link : out.links) {
    link.from = node[link.from];
    link.to = node[link.to];
    link.station = link.station ? std::optional(station[*link.station]) : std::nullopt;
  }
  std::shuffle(out.links.begin(), out.links.end(), random);
  for (std::size_t& nic : out.nic_nodes) {
    nic = node[nic];
  }
  if (has_root(old.collective)) {
    out.root = place[old.root];
  }
  if (place_now != nullptr) {
    *place_now = place;
  }
  return out;
}

/// Machines of equal GPUs, each GPU with a port into its machine's switch and one out of the
/// machine: what nothing tells apart.
inline Network equal_machines(std::size_t machines, std::size_t gpus, double inside = 450e9,
                              double outside = 50e9) {
  Network out;
  const auto station = [&](double rate) {
    out.stations.push_back(
        {fmt::format("s{}", out.stations.size()), rate, "described", 0, rate, rate});
    return out.stations.size() - 1;
  };
  struct Ports {
    std::size_t out, in, leave, enter;
  };
  std::vector<Ports> ports;
  const std::size_t places = machines * gpus;
  for (std::size_t m = 0; m < machines; ++m) {
    out.machines.push_back({"m", m, fmt::format("m.{}", m)});
    for (std::size_t g = 0; g < gpus; ++g) {
      ports.push_back({station(inside), station(inside), station(outside), station(outside)});
      out.places.push_back({fmt::format("gpu{}", g), true, false, m});
      out.add.push_back({{station(1e12), 2}});
      out.exits.push_back({Exit{}});
      out.node_of.push_back(m * gpus + g);
      // Switches are the nodes behind the GPUs', and one between all machines.
      const std::size_t own = m * gpus + g, hub = places + m, core = places + machines;
      out.links.push_back({own, hub, ports.back().out});
      out.links.push_back({hub, own, ports.back().in});
      out.links.push_back({own, core, ports.back().leave});
      out.links.push_back({core, own, ports.back().enter});
    }
  }
  out.workers = places;
  out.nodes = places + machines + 1;
  out.ways.assign(places, std::vector<std::optional<Uses>>(places));
  for (std::size_t u = 0; u < places; ++u) {
    for (std::size_t v = 0; v < places; ++v) {
      if (u != v) {
        out.ways[u][v] = u / gpus == v / gpus ? Uses{{ports[u].out, 1}, {ports[v].in, 1}}
                                              : Uses{{ports[u].leave, 1}, {ports[v].enter, 1}};
      }
    }
  }
  return out;
}

} // namespace reckon::test
