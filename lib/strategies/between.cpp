// SPDX-License-Identifier: Apache-2.0
#include "strategies/between.hpp"

#include "core/units.hpp"
#include "documents/cells.hpp"
#include "strategies/lane_places.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <type_traits>
#include <utility>

namespace reckon {

bool knows_pairs(const Profile& profile, const CostModel& model, const CostModel::WhatIf& what_if) {
  return !model.one_machine() && !what_if.worker_port_bytes_per_s && model.ports() == 1 &&
         std::any_of(profile.cells.begin(), profile.cells.end(), [&](const Cell& cell) {
           return (cell.key.test == k_pair_write || cell.key.test == k_pair_bandwidth ||
                   cell.key.test == k_pair_latency) &&
                  cell.key.transport == model.transport();
         });
}

Network network_between_ranks(const Profile& profile, const CostModel& model,
                              const CostModel::WhatIf& what_if) {
  const bool pairs = knows_pairs(profile, model, what_if);
  const bool made_up = what_if.worker_port_bytes_per_s.has_value();
  std::vector<OpenMachine> machines;
  for (const RankModel& rank : model.ranks()) {
    OpenMachine& machine = machines.emplace_back();
    machine.group = rank.machine;
    machine.number = rank.number;
    machine.works = rank.worker;
    if (!pairs) {
      machine.name = fmt::format("rank {}", machines.size() - 1);
    }
    if (made_up || rank.ports.size() > 1) {
      MachinePort& port = machine.port.emplace();
      port.together = {rank.port_bytes_per_s * rank.port_share.lo, rank.port_bytes_per_s,
                       rank.port_bytes_per_s * rank.port_share.hi};
      port.made_up = made_up;
      for (std::size_t i = 0; i < rank.ports.size(); ++i) {
        port.each.emplace_back(port_name(profile.topology, rank.ports[i]),
                               rank.single_port_bytes_per_s[i]);
      }
    }
  }
  return network_between_machines(profile, machines, model.transport());
}

std::vector<std::size_t> places_of_ranks(const Network& network) {
  std::vector<std::size_t> places(network.places.size());
  for (std::size_t v = 0; v < network.places.size(); ++v) {
    places[network.places[v].machine] = v;
  }
  return places;
}

namespace {

/// A copy that uses a station twice passes it twice.
StationPaths paths_of(const WaysBetween& ways, std::span<const std::size_t> places) {
  StationPaths paths(places.size(), std::vector<std::vector<std::uint32_t>>(places.size()));
  for (std::size_t u = 0; u < places.size(); ++u) {
    for (std::size_t v = 0; v < places.size(); ++v) {
      const auto& uses = ways[places[u]][places[v]];
      if (u == v || !uses) {
        continue;
      }
      for (const Use& use : *uses) {
        for (long times = std::lround(use.amount); times > 0; --times) {
          paths[u][v].push_back(static_cast<std::uint32_t>(use.station));
        }
      }
    }
  }
  return paths;
}

} // namespace

Between between_places(const Network& network, std::span<const std::size_t> places) {
  Between between;
  PlayNetwork& out = between.network;
  const auto has_curve = [](const Station& station) { return !station.busy.empty(); };
  const bool curves = std::any_of(network.stations.begin(), network.stations.end(), has_curve);
  for (const Station& station : network.stations) {
    out.station_bytes_per_s.push_back(station.bytes_per_second);
    between.names.push_back(station.name);
    if (curves) {
      out.station_busy.push_back(station.busy);
    }
  }
  out.paths = paths_of(network.ways, places);
  for (const WaysBetween& ways : network.lane_ways) {
    out.lane_paths.push_back(paths_of(ways, places));
  }
  const auto latency = [&](std::size_t u, std::size_t v) {
    return network.latency_of(places[u], places[v]);
  };
  bool alike = true;
  out.latency_s = places.size() > 1 ? latency(0, 1) : 0;
  out.path_latency_s.assign(places.size(), std::vector<double>(places.size(), 0));
  for (std::size_t u = 0; u < places.size(); ++u) {
    for (std::size_t v = 0; v < places.size(); ++v) {
      out.path_latency_s[u][v] = latency(u, v);
      alike = alike && (u == v || latency(u, v) == out.latency_s);
    }
  }
  if (alike) {
    out.path_latency_s.clear();
  }
  between.sources = network.pair_sources;
  return between;
}

Between without_idle_stations(Between between) {
  PlayNetwork& network = between.network;
  const std::size_t stations = network.station_bytes_per_s.size();
  std::vector<StationPaths*> all{&network.paths};
  for (StationPaths& paths : network.lane_paths) {
    all.push_back(&paths);
  }
  const auto for_each_passed = [&](const auto& what) {
    for (StationPaths* const paths : all) {
      for (auto& row : *paths) {
        for (std::vector<std::uint32_t>& path : row) {
          std::for_each(path.begin(), path.end(), what);
        }
      }
    }
  };
  std::vector<bool> passed(stations, false);
  for_each_passed([&](std::uint32_t s) { passed[s] = true; });
  std::vector<std::uint32_t> now(stations, 0);
  std::uint32_t count = 0;
  for (std::size_t s = 0; s < stations; ++s) {
    if (passed[s]) {
      now[s] = count++;
    }
  }
  const auto keep_passed = [&](auto& values) {
    std::remove_reference_t<decltype(values)> out;
    for (std::size_t s = 0; s < values.size(); ++s) {
      if (passed[s]) {
        out.push_back(std::move(values[s]));
      }
    }
    values = std::move(out);
  };
  keep_passed(network.station_bytes_per_s);
  keep_passed(network.station_busy);
  keep_passed(between.names);
  for_each_passed([&](std::uint32_t& s) { s = now[s]; });
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
  std::vector<std::size_t> order = between.named_first;
  if (order.empty()) {
    order.resize(bytes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
  }
  const auto seconds = [&](std::size_t s) { return bytes[s] / between.network.rate_of(s); };
  BusiestStation busiest;
  for (const std::size_t s : order) {
    busiest.seconds = std::max(busiest.seconds, seconds(s));
  }
  // By trees' shares stations are equally busy that whole parts make differ by some.
  const double alike = between.named_first.empty() ? 1e-9 : 1e-3;
  const auto named = std::ranges::find_if(
      order, [&](std::size_t s) { return seconds(s) >= busiest.seconds * (1 - alike); });
  if (busiest.seconds > 0 && named != order.end()) {
    busiest.station = *named;
    busiest.bytes = bytes[*named];
  }
  return busiest;
}

std::string carried_text(const Between& between, std::size_t station, double bytes) {
  return fmt::format("{}: {} at {}", between.names[station],
                     to_text(Bytes(static_cast<std::uint64_t>(bytes))),
                     to_text(Bandwidth::bytes_per_s(between.network.rate_of(station))));
}

bool raise_bound(Prediction& p, const Schedule& schedule, const Between& between) {
  const BusiestStation busiest = busiest_station(schedule, between);
  constexpr double k_rounding = 1e-6;
  if (busiest.seconds <= p.bound_seconds * (1 + k_rounding)) {
    return false;
  }
  p.bound_seconds = busiest.seconds;
  p.bound_by = carried_text(between, busiest.station, busiest.bytes);
  const double longer = p.mid_seconds > 0 ? std::max(1.0, p.bound_seconds / p.mid_seconds) : 1;
  p.mid_seconds = std::max(p.mid_seconds, p.bound_seconds);
  p.lo_seconds = std::clamp(p.lo_seconds * longer, p.bound_seconds, p.mid_seconds);
  p.hi_seconds = std::max(p.hi_seconds * longer, p.mid_seconds);
  return true;
}

PlayNetwork in_pieces(PlayNetwork network, double bytes, double most_pieces) {
  if (const double longest = bytes / most_pieces;
      longest > static_cast<double>(network.quantum_bytes)) {
    constexpr double k_longest = std::uint64_t{1} << 31U; // a piece's bytes are 32 bits
    network.cut_evenly(std::bit_ceil(static_cast<std::uint64_t>(std::min(longest, k_longest))));
  }
  return network;
}

} // namespace reckon
