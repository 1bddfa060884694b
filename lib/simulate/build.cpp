// SPDX-License-Identifier: Apache-2.0
#include "simulate/build.hpp"

#include "core/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <unordered_map>
#include <utility>

namespace reckon {
namespace {

constexpr std::uint32_t k_none = std::numeric_limits<std::uint32_t>::max();

class Builder {
public:
  Builder(const Schedule& schedule, const SimNetwork& network, const Scenario& scenario)
      : m_schedule(schedule), m_network(network), m_scenario(scenario),
        m_op_factor(scenario.op_factors(schedule.ranks.size())),
        m_stations(network.stations.station_bytes_per_s.size()),
        m_kept(scenario.kept_rates(m_stations.size())), m_path_of(network.stations.ways()) {}

  SimGraph build() {
    m_graph.hosts = static_cast<std::uint32_t>(m_schedule.ranks.size());
    number_lanes();
    find_longest();
    add_stations();
    for (const Scenario::Background& b : m_scenario.backgrounds) {
      m_graph.backgrounds.push_back({path_of(b.lane, b.from, b.to), b.bytes_per_s, b.start_s});
    }
    for (std::uint32_t rank = 0; rank < m_schedule.ranks.size(); ++rank) {
      for (std::uint32_t lane = 0; lane < m_schedule.ranks[rank].lanes.size(); ++lane) {
        add_lane(rank, lane);
      }
    }
    leave_out_hops();
    set_precision();
    return std::move(m_graph);
  }

private:
  /// Where each lane's ops begin in the graph, and its awaits by tag.
  void number_lanes() {
    std::uint64_t next = 0;
    for (const RankProgram& rank : m_schedule.ranks) {
      m_lanes.emplace_back();
      for (const LaneProgram& lane : rank.lanes) {
        Lane& numbered = m_lanes.back().emplace_back();
        numbered.first = static_cast<std::uint32_t>(next);
        for (std::uint32_t i = 0; i < lane.ops().size(); ++i) {
          const Op& op = lane.ops()[i];
          if (op.kind == OpKind::await) {
            numbered.awaits.emplace_back(op.tag, numbered.first + i);
          }
        }
        std::sort(numbered.awaits.begin(), numbered.awaits.end());
        next += lane.ops().size();
      }
    }
    if (next >= k_none) {
      fail(ErrorKind::input,
           fmt::format("the plan's schedule has {} ops, too many for 32-bit numbers; merge parts "
                       "with --coarsen",
                       next));
    }
  }

  /// One that limits nothing is left out.
  [[nodiscard]] bool limits(std::uint32_t station) const {
    const bool curve = station < m_network.stations.station_busy.size() &&
                       !m_network.stations.station_busy[station].empty();
    return curve || std::isfinite(m_network.stations.station_bytes_per_s[station]);
  }
  [[nodiscard]] double busy_seconds(std::uint32_t station, double bytes, double writes,
                                    bool first) const {
    return m_network.busy_seconds(station, bytes, writes, first) / m_kept[station];
  }

  template <class Visit>
  void for_each_write(Visit visit) const {
    for (std::size_t rank = 0; rank < m_schedule.ranks.size(); ++rank) {
      const std::vector<LaneProgram>& lanes = m_schedule.ranks[rank].lanes;
      for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
        for (const Op& op : lanes[lane].ops()) {
          if (op.kind == OpKind::write && op.bytes > 0) {
            visit(lane, rank, op);
          }
        }
      }
    }
  }

  void find_longest() {
    for_each_write([&](std::size_t lane, std::size_t rank, const Op& op) {
      const std::vector<std::uint32_t>& stations = m_network.stations.path(lane, rank, op.peer);
      for (std::size_t hop = 0; hop < stations.size(); ++hop) {
        Station& station = m_stations[stations[hop]];
        const auto bytes = static_cast<double>(op.bytes);
        if (bytes > station.longest) {
          station.longest = bytes;
          station.longest_writes = m_network.writes_in(op);
        }
        station.first = station.first || hop == 0;
        station.bytes += bytes;
        ++station.writes;
        station.unit = std::gcd(station.unit, m_network.flows_at(lane, rank, op.peer, hop));
      }
    });
  }

  void add_stations() {
    // Traffic beside the plan's may use a station that the plan does not.
    constexpr double k_long_write = 1 << 20;
    for (const Scenario::Background& b : m_scenario.backgrounds) {
      for (const std::uint32_t s : m_network.stations.path(b.lane, b.from, b.to)) {
        if (m_stations[s].longest == 0) {
          m_stations[s].longest = k_long_write;
        }
        m_stations[s].unit = 1;
      }
    }
    for (std::uint32_t s = 0; s < m_stations.size(); ++s) {
      Station& station = m_stations[s];
      const double seconds =
          station.longest > 0
              ? busy_seconds(s, station.longest, station.longest_writes, station.first)
              : 0;
      if (limits(s) && seconds > 0) {
        station.rate = station.longest / seconds;
        station.number = static_cast<std::uint32_t>(m_graph.station_bytes_per_s.size());
        // Where all that passes stands for several, so does its rate.
        m_graph.station_bytes_per_s.push_back(station.rate / station.unit);
      }
    }
  }

  /// What is ended too early, write after write, is less than a thousandth of what the busiest
  /// station takes: a write of 64 bytes may take 3 ns.
  void set_precision() {
    double busiest_s = 0, most_writes = 1;
    for (const Station& station : m_stations) {
      busiest_s = std::max(busiest_s, station.bytes / station.rate);
      most_writes = std::max(most_writes, station.writes);
    }
    if (busiest_s > 0) {
      m_graph.precision_s = std::min(m_graph.precision_s, 1e-3 * busiest_s / most_writes);
    }
  }

  std::uint32_t path_of(std::uint32_t lane, std::uint32_t from, std::uint32_t to) {
    const auto [found, added] = m_path_of[lane % m_path_of.size()].emplace(
        std::uint64_t{from} << 32U | to, static_cast<std::uint32_t>(m_graph.paths.size()));
    if (added) {
      SimGraph::Path path;
      path.from = from;
      path.to = to;
      path.latency_s = m_network.stations.latency_of(from, to);
      const std::vector<std::uint32_t>& stations = m_network.stations.path(lane, from, to);
      for (std::size_t hop = 0; hop < stations.size(); ++hop) {
        const Station& station = m_stations[stations[hop]];
        if (station.number != k_none) {
          if (path.hops.empty() || !m_scenario.no_buffers) {
            path.hops.emplace_back();
          }
          path.hops.back().insert(path.hops.back().end(),
                                  m_network.flows_at(lane, from, to, hop) / station.unit,
                                  station.number);
        }
      }
      m_graph.paths.push_back(std::move(path));
    }
    return found->second;
  }

  /// Nothing ever waits before a station that is as fast as the one before it and serves no others
  /// than that one sends: it is left out, which is one flow instead of two.
  void leave_out_hops() {
    std::vector<std::size_t> passing(m_graph.station_bytes_per_s.size(), 0);
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> passing_both;
    for (const SimGraph::Path& path : m_graph.paths) {
      for (std::size_t h = 0; h < path.hops.size(); ++h) {
        ++passing[path.hops[h].front()];
        if (h > 0) {
          ++passing_both[{path.hops[h - 1].front(), path.hops[h].front()}];
        }
      }
    }
    const auto never_waits = [&](const std::vector<std::uint32_t>& hop,
                                 const std::vector<std::uint32_t>& next) {
      const std::uint32_t a = hop.back(), b = next.front();
      return hop.size() == 1 && next.size() == 1 && passing_both[{a, b}] == passing[b] &&
             m_graph.station_bytes_per_s[b] >= m_graph.station_bytes_per_s[a];
    };
    for (SimGraph::Path& path : m_graph.paths) {
      for (std::size_t h = path.hops.size(); h-- > 1;) {
        if (never_waits(path.hops[h - 1], path.hops[h])) {
          path.hops.erase(path.hops.begin() + static_cast<std::ptrdiff_t>(h));
        }
      }
    }
  }

  /// Bytes that take as long on the path's stations, alone, as the write's do.
  [[nodiscard]] double counted_bytes(std::size_t lane, std::size_t from, const Op& op) const {
    const auto bytes = static_cast<double>(op.bytes);
    double slowest = 0, rate = std::numeric_limits<double>::infinity();
    bool first = true;
    for (const std::uint32_t station : m_network.stations.path(lane, from, op.peer)) {
      if (m_stations[station].number != k_none) {
        slowest = std::max(slowest, busy_seconds(station, bytes, m_network.writes_in(op), first));
        rate = std::min(rate, m_stations[station].rate);
      }
      first = false;
    }
    return slowest > 0 ? std::max(bytes, slowest * rate) : bytes;
  }

  [[nodiscard]] std::uint32_t await_of(std::uint32_t rank, std::uint32_t lane, const Op& op) const {
    if (op.peer < m_lanes.size() && lane < m_lanes[op.peer].size()) {
      const auto& awaits = m_lanes[op.peer][lane].awaits;
      const auto found = std::lower_bound(awaits.begin(), awaits.end(), std::pair(op.tag, 0U));
      if (found != awaits.end() && found->first == op.tag) {
        return found->second;
      }
    }
    fail(ErrorKind::input, fmt::format("the schedule is wrong: no op of rank {} lane {} awaits tag "
                                       "{} of rank {}",
                                       op.peer, lane, op.tag, rank));
  }

  void add_lane(std::uint32_t rank, std::uint32_t number) {
    const LaneProgram& lane = m_schedule.ranks[rank].lanes[number];
    std::vector<std::uint32_t> before;
    for (std::uint32_t i = 0; i < lane.ops().size(); ++i) {
      const Op& op = lane.ops()[i];
      SimGraph::Op out;
      switch (op.kind) {
      case OpKind::write:
        out.kind = SimGraph::Kind::write;
        out.target = path_of(number, rank, op.peer);
        out.awaited = await_of(rank, number, op);
        out.amount = counted_bytes(number, rank, op);
        break;
      case OpKind::await:
        out.kind = SimGraph::Kind::await;
        break;
      case OpKind::delay:
        out.kind = SimGraph::Kind::delay;
        out.amount = static_cast<double>(op.duration_ns) * 1e-9 * m_op_factor[rank];
        break;
      default:
        out.kind = SimGraph::Kind::compute;
        out.amount = m_network.seconds_of(rank, lane, i) * m_op_factor[rank];
        break;
      }
      before.clear();
      for (const std::uint32_t d : lane.dependencies(i)) {
        before.push_back(m_lanes[rank][number].first + d);
      }
      m_graph.append(out, before);
    }
    m_graph.end_lane();
  }

  struct Lane {
    std::uint32_t first = 0;                                     ///< op of the graph
    std::vector<std::pair<std::uint32_t, std::uint32_t>> awaits; ///< (tag, op), sorted
  };

  const Schedule& m_schedule;
  const SimNetwork& m_network;
  const Scenario& m_scenario;
  std::vector<double> m_op_factor; ///< by rank
  struct Station {
    double longest = 0, longest_writes = 1; ///< bytes of its longest write, which is so many
    double bytes = 0, writes = 0;           ///< of all
    double rate = std::numeric_limits<double>::infinity();
    std::uint32_t unit = 0;        ///< common divisor of the flows that a write stands for there
    bool first = false;            ///< of some path
    std::uint32_t number = k_none; ///< in the graph; k_none: limits nothing
  };
  std::vector<Station> m_stations;                                         ///< of the network
  std::vector<double> m_kept;                                              ///< of each one's rate
  std::vector<std::vector<Lane>> m_lanes;                                  ///< [rank][lane]
  std::vector<std::unordered_map<std::uint64_t, std::uint32_t>> m_path_of; ///< [way]
  SimGraph m_graph;
};

} // namespace

double SimNetwork::seconds_of(std::size_t rank, const LaneProgram& lane, std::size_t i) const {
  if (copies.empty()) {
    return op_seconds(rank, lane.ops()[i]);
  }
  Op op = lane.ops()[i];
  for (const std::uint32_t before : lane.dependencies(i)) {
    const Op& source = lane.ops()[before];
    if (op.kind == OpKind::reduce && source.kind == OpKind::await) {
      op.source_count += static_cast<std::uint32_t>(copies[source.peer] - 1);
    }
  }
  return op_seconds(rank, op);
}

SimGraph build_graph(const Schedule& schedule, const SimNetwork& network,
                     const Scenario& scenario) {
  return Builder(schedule, network, scenario).build();
}

} // namespace reckon
