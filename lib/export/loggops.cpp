// SPDX-License-Identifier: Apache-2.0
#include "export/loggops.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace reckon {
namespace {

/// The ranks whose writes pass a station.
struct Users {
  std::set<std::size_t> senders, receivers;
};

/// The ways that a schedule's writes take.
class UsedWays {
public:
  UsedWays(const StationNetwork& network, const Schedule& schedule)
      : m_network(network), m_users(network.station_bytes_per_s.size()) {
    for (std::size_t from = 0; from < schedule.ranks.size(); ++from) {
      for (const LaneProgram& lane : schedule.ranks[from].lanes) {
        for (const Op& op : lane.ops()) {
          if (op.kind == OpKind::write) {
            add(from, op.peer);
          }
        }
      }
    }
  }

  /// What makes LogGOPS unable to express them; empty: nothing does.
  [[nodiscard]] std::string why_not() const {
    if (m_network.ways() > 1) {
      return "ranks have several ports";
    }
    if (m_stations.empty()) {
      return "nothing is sent";
    }
    for (const auto& [way, stations] : m_stations) {
      std::string difference =
          stations.empty() ? fmt::format("ranks {} and {} share memory", way.first, way.second)
                           : difference_of(way.first, way.second, stations);
      if (!difference.empty()) {
        return difference;
      }
    }
    return {};
  }

  /// Of the first way.
  [[nodiscard]] double port_bytes_per_s() const {
    return m_network.station_bytes_per_s[m_stations.begin()->second.front()];
  }
  [[nodiscard]] double latency_s() const {
    const auto [from, to] = m_stations.begin()->first;
    return m_network.latency_of(from, to);
  }

private:
  void add(std::size_t from, std::size_t to) {
    const auto [way, is_new] = m_stations.try_emplace({from, to});
    if (!is_new) {
      return;
    }
    for (const std::uint32_t station : m_network.paths[from][to]) {
      if (std::isfinite(m_network.rate_of(station))) {
        way->second.push_back(station);
        m_users[station].senders.insert(from);
        m_users[station].receivers.insert(to);
      }
    }
  }

  /// A way's first station must be its sender's own and the last its receiver's, both at the port's
  /// rate; those between them must have room for all who may meet there.
  [[nodiscard]] std::string difference_of(std::size_t from, std::size_t to,
                                          const std::vector<std::uint32_t>& stations) const {
    if (m_network.latency_of(from, to) != latency_s()) {
      return fmt::format("latencies of {:g} and {:g} us", 1e6 * latency_s(),
                         1e6 * m_network.latency_of(from, to));
    }
    for (const std::uint32_t station : stations) {
      if (!m_network.station_busy.empty() && !m_network.station_busy[station].empty()) {
        return fmt::format("a curve of its own from rank {} to {}", from, to);
      }
      const Users& users = m_users[station];
      const bool own = (station == stations.front() && users.senders.size() == 1) ||
                       (station == stations.back() && users.receivers.size() == 1);
      const double rate = m_network.station_bytes_per_s[station];
      if (own && rate != port_bytes_per_s()) {
        return fmt::format("ports of {:g} and {:g} GB/s", 1e-9 * port_bytes_per_s(), 1e-9 * rate);
      }
      const std::size_t meet = std::min(users.senders.size(), users.receivers.size());
      if (!own && rate < static_cast<double>(meet) * port_bytes_per_s()) {
        return fmt::format("{:g} GB/s that {} ranks share", 1e-9 * rate, meet);
      }
    }
    return {};
  }

  const StationNetwork& m_network;
  std::map<std::pair<std::size_t, std::size_t>, std::vector<std::uint32_t>> m_stations;
  std::vector<Users> m_users; ///< by station
};

} // namespace

std::string LogGops::line() const {
  return fmt::format("LogGOPS in ns: L={:.6g} o=0 g={:.6g} G={:.6g} O=0", 1e9 * latency_s,
                     1e9 * write_overhead_s, 1e9 * seconds_per_byte);
}

std::optional<LogGops> loggops_of(const ExportNetwork& network, const Schedule& schedule,
                                  std::string& why_not) {
  const UsedWays ways(network.network, schedule);
  why_not = ways.why_not();
  if (!why_not.empty()) {
    return std::nullopt;
  }
  return LogGops{ways.latency_s(), network.write_overhead_s, 1 / ways.port_bytes_per_s()};
}

} // namespace reckon
