// SPDX-License-Identifier: Apache-2.0
#include "strategies/pair_network.hpp"

#include "core/error.hpp"
#include "documents/cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace reckon {
namespace {

/// Cells of a case from one machine to another with a value, in order of size; of the first
/// transport that there is when `transport` is empty.
std::vector<const Cell*> pair_cells(const Profile& profile, const char* test,
                                    const std::string& from, const std::string& to,
                                    std::string_view transport, const char* direction) {
  CellKey pattern;
  pattern.test = test;
  pattern.from = from;
  pattern.to = to;
  pattern.transport = std::string(transport);
  pattern.direction = direction;
  std::vector<const Cell*> cells = profile.select(pattern);
  std::sort(cells.begin(), cells.end(), [](const Cell* a, const Cell* b) {
    return a->key.transport != b->key.transport ? a->key.transport < b->key.transport
                                                : a->key.bytes < b->key.bytes;
  });
  std::erase_if(cells, [first = cells.empty() ? "" : cells.front()->key.transport](
                           const Cell* cell) { return cell->key.transport != first; });
  return cells;
}

const Cell* latency_cell(const Profile& profile, const std::string& from, const std::string& to,
                         std::string_view transport) {
  for (const auto& [a, b] : {std::pair(&from, &to), std::pair(&to, &from)}) {
    const std::vector<const Cell*> cells =
        pair_cells(profile, k_pair_latency, *a, *b, transport, "");
    if (!cells.empty()) {
      return cells.front();
    }
  }
  return nullptr;
}

const Cell* bandwidth_cell(const Profile& profile, const std::string& from, const std::string& to,
                           std::string_view transport) {
  for (const char* direction : {"one_way", "two_way", ""}) {
    const std::vector<const Cell*> cells =
        pair_cells(profile, k_pair_bandwidth, from, to, transport, direction);
    if (!cells.empty()) {
      return cells.back(); // the longest writes: what comes beside the bytes is the latency's
    }
  }
  return nullptr;
}

const MachineGroup* group_of(const Profile& profile, const std::string& name) {
  for (const MachineGroup& group : profile.machines) {
    if (group.id == name ||
        std::find(group.members.begin(), group.members.end(), name) != group.members.end()) {
      return &group;
    }
  }
  return nullptr;
}

/// Of an empty write to any other machine; 0 where the profile does not say.
double machine_latency(const Profile& profile, const std::string& name,
                       std::string_view transport) {
  CellKey pattern;
  pattern.test = k_fabric_latency;
  pattern.from = group_of(profile, name)->id;
  pattern.transport = std::string(transport);
  const std::vector<const Cell*> cells = profile.select(pattern);
  return cells.empty() ? 0 : cells.front()->p50;
}

const Cell* port_cell(const Profile& profile, const std::string& name, std::string_view transport) {
  CellKey pattern;
  pattern.test = k_port_bandwidth;
  pattern.transport = std::string(transport);
  for (const std::string& id : {name, group_of(profile, name)->id}) {
    pattern.from = id;
    const std::vector<const Cell*> cells = profile.select(pattern);
    if (!cells.empty()) {
      return cells.front();
    }
  }
  return nullptr;
}

} // namespace

std::vector<std::string> pair_names(const Profile& profile,
                                    const std::vector<std::string>& machines) {
  std::map<std::string, std::size_t> used;
  std::vector<std::string> names;
  for (const std::string& machine : machines) {
    const MachineGroup* const group = group_of(profile, machine);
    if (group == nullptr) {
      fail(ErrorKind::input,
           fmt::format("profile '{}' has no machine '{}'; give the profile that the plan was made "
                       "from, or one with machines of these names",
                       profile.name, machine));
    }
    if (group->id != machine || group->members.empty()) {
      names.push_back(machine);
      continue;
    }
    const std::size_t number = used[machine]++;
    if (number >= group->members.size()) {
      fail(ErrorKind::input,
           fmt::format("profile '{}' has {} machines of group '{}' and the ranks need more",
                       profile.name, group->members.size(), machine));
    }
    names.push_back(group->members[number]);
  }
  return names;
}

std::optional<double> pair_latency(const Profile& profile, const std::string& from,
                                   const std::string& to, std::string_view transport) {
  if (const Cell* const cell = latency_cell(profile, from, to, transport)) {
    return cell->p50;
  }
  const std::vector<const Cell*> cells =
      pair_cells(profile, k_pair_write, from, to, transport, "one_way");
  if (cells.empty()) {
    return std::nullopt;
  }
  if (cells.size() == 1) {
    return 0;
  }
  const auto bytes = [&](std::size_t i) { return static_cast<double>(cells[i]->key.bytes); };
  const double slope = std::max(0.0, cells[1]->p50 - cells[0]->p50) / (bytes(1) - bytes(0));
  return std::max(0.0, cells[0]->p50 - slope * bytes(0));
}

std::optional<Curve> pair_curve(const Profile& profile, const std::string& from,
                                const std::string& to, std::string_view transport,
                                std::string* source) {
  const auto say = [&](std::string text) {
    if (source != nullptr) {
      *source = std::move(text);
    }
  };
  std::vector<CurvePoint> points;
  const std::vector<const Cell*> writes =
      pair_cells(profile, k_pair_write, from, to, transport, "one_way");
  if (!writes.empty()) {
    for (const Cell* cell : writes) {
      points.push_back({static_cast<double>(cell->key.bytes), cell->p50});
    }
    say(fmt::format("pair_write {} -> {}, {} sizes", from, to, writes.size()));
    return Curve(std::move(points));
  }
  const Cell* const latency = latency_cell(profile, from, to, transport);
  const Cell* const rate = bandwidth_cell(profile, from, to, transport);
  if (rate == nullptr || latency == nullptr) {
    return std::nullopt;
  }
  constexpr std::array<double, 7> k_sizes{4096, 16384, 65536, 262144, 1048576, 4194304, 16777216};
  for (const double bytes : k_sizes) {
    points.push_back({bytes, latency->p50 + bytes / rate->p50});
  }
  say(fmt::format("pair_latency and pair_bandwidth {} -> {}", from, to));
  return Curve(std::move(points));
}

PairNetwork pair_network(const Profile& profile, const std::vector<std::string>& machines,
                         std::string_view transport) {
  PairNetwork pairs;
  pairs.names = pair_names(profile, machines);
  const std::size_t ranks = machines.size();
  PlayNetwork& network = pairs.network;
  network.cut_evenly(network.quantum_bytes);
  const auto use = [&](const std::string& source) {
    if (std::find(pairs.sources.begin(), pairs.sources.end(), source) == pairs.sources.end()) {
      pairs.sources.push_back(source);
    }
  };
  const auto add = [&](std::string name, double bytes_per_s, BusyCurve busy) {
    network.station_bytes_per_s.push_back(bytes_per_s);
    network.station_busy.push_back(std::move(busy));
    pairs.stations.push_back(std::move(name));
    return static_cast<std::uint32_t>(pairs.stations.size() - 1);
  };
  struct Port {
    std::uint32_t out = 0, in = 0;
  };
  std::map<std::string, std::optional<Port>> ports; // ranks of one machine share them
  for (const std::string& name : pairs.names) {
    const auto [port, added] = ports.try_emplace(name);
    const Cell* const cell = added ? port_cell(profile, name, transport) : nullptr;
    if (cell != nullptr) {
      port->second = Port{add(name + " out", cell->p50, {}), add(name + " in", cell->p50, {})};
      use(cell->key.text());
    }
  }
  network.paths.assign(ranks, std::vector<std::vector<std::uint32_t>>(ranks));
  network.path_latency_s.assign(ranks, std::vector<double>(ranks, 0));
  std::map<std::pair<std::string, std::string>, std::uint32_t> between;
  for (std::size_t a = 0; a < ranks; ++a) {
    for (std::size_t b = 0; b < ranks; ++b) {
      const std::string &from = pairs.names[a], &to = pairs.names[b];
      if (from == to) {
        continue; // they share memory
      }
      const std::optional<Port>&out = ports.at(from), &in = ports.at(to);
      std::string source;
      const std::optional<Curve> curve = pair_curve(profile, from, to, transport, &source);
      if (!curve && (!out || !in)) {
        fail(ErrorKind::input,
             fmt::format("profile '{}' does not say how long a write from {} to {} takes: it has "
                         "neither pair_write nor pair_latency and pair_bandwidth of them, nor "
                         "port_bandwidth of both; `reckon probe --cluster` measures these",
                         profile.name, from, to));
      }
      double latency = pair_latency(profile, from, to, transport)
                           .value_or(curve ? 0 : machine_latency(profile, from, transport));
      auto& path = network.paths[a][b];
      if (out) {
        path.push_back(out->out);
      }
      if (curve) {
        latency = std::min(latency, curve->points().front().seconds);
        const auto [station, added] = between.try_emplace({from, to});
        if (added) {
          std::vector<std::pair<double, double>> busy;
          for (const CurvePoint& point : curve->points()) {
            busy.emplace_back(point.bytes, std::max(0.0, point.seconds - latency));
          }
          BusyCurve own(std::move(busy));
          const double rate = own.bytes_per_s();
          station->second = add(fmt::format("{} -> {}", from, to), rate, std::move(own));
          use(source);
        }
        path.push_back(station->second);
      }
      if (in) {
        path.push_back(in->in);
      }
      network.path_latency_s[a][b] = latency;
    }
  }
  return pairs;
}

} // namespace reckon
