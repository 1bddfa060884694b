// SPDX-License-Identifier: Apache-2.0
#include "strategies/port_network.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace reckon {

PlayNetwork port_network(const CostModel& model, double part_bytes) {
  const std::size_t ranks = model.ranks().size();
  PlayNetwork network;
  network.latency_s = model.latency_s();
  double slowest = std::numeric_limits<double>::infinity();
  for (const RankModel& r : model.ranks()) {
    network.station_bytes_per_s.push_back(r.port_bytes_per_s); // egress
    network.station_bytes_per_s.push_back(r.port_bytes_per_s); // ingress
    slowest = std::min(slowest, r.port_bytes_per_s);
  }
  const auto first_uplink = static_cast<std::uint32_t>(network.station_bytes_per_s.size());
  for (const std::string& rack : model.racks()) {
    network.station_bytes_per_s.push_back(model.uplink_bytes_per_s(rack)); // out
    network.station_bytes_per_s.push_back(model.uplink_bytes_per_s(rack)); // in
  }
  const std::vector<std::size_t>& rack_of = model.rack_of();
  network.write_overhead_s = part_bytes / slowest * (1 / model.port_efficiency(part_bytes) - 1);
  network.paths.assign(ranks, std::vector<std::vector<std::uint32_t>>(ranks));
  for (std::uint32_t from = 0; from < ranks; ++from) {
    for (std::uint32_t to = 0; to < ranks; ++to) {
      if (from == to) {
        continue;
      }
      const std::size_t out = rack_of[from], in = rack_of[to];
      network.paths[from][to] = {2 * from};
      if (out != in) {
        network.paths[from][to].push_back(first_uplink + 2 * static_cast<std::uint32_t>(out));
        network.paths[from][to].push_back(first_uplink + 2 * static_cast<std::uint32_t>(in) + 1);
      }
      network.paths[from][to].push_back(2 * to + 1);
    }
  }
  return network;
}

namespace {

/// The stations of one rank's ports.
struct RankPorts {
  std::array<std::vector<std::uint32_t>, 2> of_port; ///< [out or in][port]
  std::array<std::uint32_t, 2> together{};           ///< [out or in]
  bool bound_together = false;                       ///< all ports carry less than each alone
};

RankPorts add_ports(PlayNetwork& network, std::uint32_t r, const RankModel& rank) {
  constexpr std::uint32_t k_ways = 2;
  RankPorts ports;
  ports.together = {k_ways * r, k_ways * r + 1}; // as port_network() has them
  if (rank.ports.empty()) {
    for (std::size_t way = 0; way < k_ways; ++way) {
      ports.of_port[way] = {ports.together[way]};
    }
    return ports;
  }
  const double share = rank.port_bytes_per_s / static_cast<double>(rank.ports.size());
  double alone = 0;
  for (const double measured : rank.single_port_bytes_per_s) {
    const double rate = std::max(measured, share);
    alone += rate;
    for (std::size_t way = 0; way < k_ways; ++way) {
      ports.of_port[way].push_back(static_cast<std::uint32_t>(network.station_bytes_per_s.size()));
      network.station_bytes_per_s.push_back(rate);
    }
  }
  constexpr double k_rounding = 1e-9;
  ports.bound_together = rank.port_bytes_per_s < alone * (1 - k_rounding);
  return ports;
}

} // namespace

PlayNetwork single_port_network(const CostModel& model, double part_bytes) {
  PlayNetwork network = port_network(model, part_bytes);
  network.cut_evenly(network.quantum_bytes);
  if (model.ports() == 1) {
    return network;
  }
  std::vector<RankPorts> ports;
  for (std::uint32_t r = 0; r < model.ranks().size(); ++r) {
    ports.push_back(add_ports(network, r, model.ranks()[r]));
  }
  const auto port_of = [&](std::size_t rank, std::size_t lane, std::size_t way) {
    const std::vector<std::uint32_t>& stations = ports[rank].of_port[way];
    return stations[lane % stations.size()];
  };
  for (std::size_t lane = 0; lane < static_cast<std::size_t>(model.ports()); ++lane) {
    auto& paths = network.lane_paths.emplace_back(network.paths);
    for (std::size_t from = 0; from < ports.size(); ++from) {
      for (std::size_t to = 0; to < ports.size(); ++to) {
        if (from == to) {
          continue;
        }
        std::vector<std::uint32_t>& path = paths[from][to];
        // From: the port, then all of them together; to: the other way about.
        path.front() = port_of(from, lane, 0);
        if (ports[from].bound_together) {
          path.insert(path.begin() + 1, ports[from].together[0]);
        }
        path.back() = port_of(to, lane, 1);
        if (ports[to].bound_together) {
          path.insert(path.end() - 1, ports[to].together[1]);
        }
      }
    }
  }
  return network;
}

std::vector<PortStations> port_stations(const CostModel& model) {
  std::vector<PortStations> stations;
  for (std::size_t r = 0; r < model.ranks().size(); ++r) {
    stations.push_back({PortStations::Of::rank, r, ""});
  }
  for (const std::string& rack : model.racks()) {
    stations.push_back({PortStations::Of::rack, 0, rack});
  }
  for (std::size_t r = 0; model.ports() > 1 && r < model.ranks().size(); ++r) {
    for (const std::string& port : model.ranks()[r].ports) {
      stations.push_back({PortStations::Of::port, r, port});
    }
  }
  return stations;
}

} // namespace reckon
