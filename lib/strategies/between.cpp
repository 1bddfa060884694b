// SPDX-License-Identifier: Apache-2.0
#include "strategies/between.hpp"

#include "core/units.hpp"
#include "documents/cells.hpp"
#include "strategies/pair_network.hpp"
#include "strategies/port_network.hpp"
#include "strategies/predict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <utility>

namespace reckon {
namespace {

/// Puts the racks' uplinks, where their rates are known, into the paths that leave a rack.
void add_uplinks(Between& between, const CostModel& model) {
  std::map<std::string, std::uint32_t> out; // the way in is the next station
  for (const std::string& rack : model.racks()) {
    const double rate = model.uplink_bytes_per_s(rack);
    if (std::isfinite(rate)) {
      out[rack] = static_cast<std::uint32_t>(between.names.size());
      for (const char* way : {"out of", "into"}) {
        between.network.station_bytes_per_s.push_back(rate);
        between.network.station_busy.emplace_back();
        between.names.push_back(fmt::format("the uplink {} rack {}", way, rack));
      }
    }
  }
  const std::vector<RankModel>& ranks = model.ranks();
  for (std::size_t a = 0; a < ranks.size(); ++a) {
    for (std::size_t b = 0; b < ranks.size(); ++b) {
      std::vector<std::uint32_t>& path = between.network.paths[a][b];
      const auto from = out.find(ranks[a].rack), to = out.find(ranks[b].rack);
      if (ranks[a].rack == ranks[b].rack || path.empty()) {
        continue;
      }
      auto at = path.begin() + 1;
      if (from != out.end()) {
        at = path.insert(at, from->second) + 1;
      }
      if (to != out.end()) {
        path.insert(at, to->second + 1);
      }
    }
  }
}

} // namespace

std::optional<Between> measured_pairs(const Profile& profile, const CostModel& model,
                                      const CostModel::WhatIf& what_if) {
  const bool known = std::any_of(profile.cells.begin(), profile.cells.end(), [&](const Cell& cell) {
    return (cell.key.test == k_pair_write || cell.key.test == k_pair_bandwidth ||
            cell.key.test == k_pair_latency) &&
           cell.key.transport == model.transport();
  });
  if (!known || model.one_machine() || what_if.worker_port_bytes_per_s || model.ports() > 1) {
    return std::nullopt;
  }
  std::vector<std::string> machines;
  for (const RankModel& r : model.ranks()) {
    machines.push_back(r.machine);
  }
  PairNetwork pairs = pair_network(profile, machines, model.transport());
  Between between{std::move(pairs.network), std::move(pairs.stations)};
  std::map<std::string, std::size_t> cases;
  for (const std::string& source : pairs.sources) {
    if (source.starts_with("pair_")) {
      ++cases[source.substr(0, source.find(' '))];
    }
  }
  for (const auto& [name, count] : cases) {
    between.sources.push_back(fmt::format("{}: {} ways between machines", name, count));
  }
  add_uplinks(between, model);
  return between;
}

Between ports_between(const CostModel& model, double part_bytes) {
  Between between{single_port_network(model, part_bytes), {}};
  for (const PortStations& stations : port_stations(model)) {
    const std::size_t r = stations.rank;
    std::string name;
    switch (stations.of) {
    case PortStations::Of::rank:
      name = fmt::format("the port{} of rank {}", model.ranks()[r].ports.size() > 1 ? "s" : "", r);
      break;
    case PortStations::Of::rack:
      name = fmt::format("the uplink of rack {}", stations.name);
      break;
    case PortStations::Of::port:
      name = fmt::format("port {} of rank {}", stations.name, r);
      break;
    }
    between.names.insert(between.names.end(), 2, name); // out and in
  }
  return between;
}

std::vector<double> station_bytes(const Schedule& schedule, const Between& between) {
  const PlayNetwork& network = between.network;
  std::vector<double> bytes(network.station_bytes_per_s.size(), 0);
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    double added = 0;
    for (std::size_t lane = 0; lane < schedule.ranks[r].lanes.size(); ++lane) {
      for (const Op& op : schedule.ranks[r].lanes[lane].ops()) {
        if (op.kind == OpKind::write) {
          for (const std::uint32_t station : network.path(lane, r, op.peer)) {
            bytes[station] += static_cast<double>(op.bytes);
          }
        } else if (op.kind == OpKind::reduce) {
          added += static_cast<double>(op.bytes) * (op.source_count - 1);
        }
      }
    }
    if (!between.add.empty()) {
      add_uses(bytes, between.add[r], added);
    }
  }
  return bytes;
}

BusiestStation busiest_station(const Schedule& schedule, const Between& between) {
  const std::vector<double> bytes = station_bytes(schedule, between);
  BusiestStation busiest;
  for (std::size_t s = 0; s < bytes.size(); ++s) {
    const double carries = between.network.rate_of(s);
    constexpr double k_alike = 1e-9; // of stations that are, the first is named
    if (bytes[s] / carries > busiest.seconds * (1 + k_alike)) {
      busiest = {s, bytes[s], carries, bytes[s] / carries};
    }
  }
  return busiest;
}

bool raise_bound(Prediction& p, const Schedule& schedule, const Between& between) {
  const BusiestStation busiest = busiest_station(schedule, between);
  constexpr double k_rounding = 1e-6;
  if (busiest.seconds <= p.bound_seconds * (1 + k_rounding)) {
    return false;
  }
  p.bound_seconds = busiest.seconds;
  p.bound_by = fmt::format("{}: {} at {}", between.names[busiest.station],
                           to_text(Bytes(static_cast<std::uint64_t>(busiest.bytes))),
                           to_text(Bandwidth::bytes_per_s(busiest.bytes_per_s)));
  const double longer = p.mid_seconds > 0 ? std::max(1.0, p.bound_seconds / p.mid_seconds) : 1;
  p.mid_seconds = std::max(p.mid_seconds, p.bound_seconds);
  p.lo_seconds = std::clamp(p.lo_seconds * longer, p.bound_seconds, p.mid_seconds);
  p.hi_seconds = std::max(p.hi_seconds * longer, p.mid_seconds);
  return true;
}

PlayNetwork in_pieces(PlayNetwork network, double bytes, double most_pieces) {
  if (const double longest = bytes / most_pieces;
      longest > static_cast<double>(network.quantum_bytes)) {
    network.cut_evenly(std::bit_ceil(static_cast<std::uint64_t>(longest)));
  }
  return network;
}

} // namespace reckon
