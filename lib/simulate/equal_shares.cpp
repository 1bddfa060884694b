// SPDX-License-Identifier: Apache-2.0
#include "simulate/equal_shares.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

namespace reckon {
namespace {

template <class T>
using EarliestFirst = std::priority_queue<T, std::vector<T>, std::greater<>>;

constexpr double k_never = std::numeric_limits<double>::infinity();

class EqualShares final : public FlowEngine {
public:
  explicit EqualShares(const SimGraph& graph)
      : m_graph(graph), m_stations(graph.station_bytes_per_s.size()) {}

  void start_flow(std::uint32_t flow, std::uint32_t path, std::uint32_t hop,
                  double bytes) override {
    const std::vector<std::uint32_t>& on = m_graph.paths[path].hops[hop];
    Station& station = m_stations[on.front()];
    go_on(on.front());
    const auto times = static_cast<double>(on.size()); // it is on its station
    station.flows.push({station.given + bytes, m_number++, flow, times});
    station.takers += times;
    look_out(on.front());
  }

  void start_background(std::uint32_t) override {
    fail(ErrorKind::internal, "equal shares have no traffic beside the plan's");
  }
  [[nodiscard]] double background_bytes(std::uint32_t) const override { return 0; }

  void call_at(double seconds) override { m_calls.push(seconds); }
  [[nodiscard]] double now() const override { return m_now; }

  void run(Listener listener) override {
    while (!m_stopped && !(m_calls.empty() && m_looks.empty())) {
      if (m_looks.empty() || (!m_calls.empty() && m_calls.top() <= m_looks.top().first)) {
        m_now = m_calls.top();
        m_calls.pop();
        listener.called();
        continue;
      }
      const auto [seconds, number] = m_looks.top();
      m_looks.pop();
      Station& station = m_stations[number];
      if (seconds != station.look_s) {
        continue; // an earlier one came between
      }
      m_now = seconds;
      station.look_s = k_never;
      if (end_s(number) > m_now) { // others have come since, and it has less
        look_out(number);
        continue;
      }
      const Flow ended = station.flows.top();
      station.flows.pop();
      station.takers -= ended.times;
      station.given = station.flows.empty() ? 0 : ended.until;
      station.at_s = m_now;
      look_out(number);
      listener.flow_ended(ended.number);
    }
  }
  void stop() override { m_stopped = true; }

private:
  struct Flow {
    double until = 0;        ///< what has been given at its station when it ends
    std::uint64_t order = 0; ///< breaks ties in the order of their starts
    std::uint32_t number = 0;
    double times = 1; ///< that it is on its station
    bool operator>(const Flow& other) const {
      return std::tie(until, order) > std::tie(other.until, other.order);
    }
  };
  struct Station {
    EarliestFirst<Flow> flows;
    double takers = 0; ///< flows, each as often as it is on the station
    double given = 0;  ///< bytes that each flow has been given until `at_s`, since it was last idle
    double at_s = 0;
    double look_s = k_never; ///< not later than its first flow's end
  };

  void go_on(std::uint32_t number) {
    Station& station = m_stations[number];
    if (!station.flows.empty()) {
      station.given +=
          (m_now - station.at_s) * m_graph.station_bytes_per_s[number] / station.takers;
    }
    station.at_s = m_now;
  }

  /// When its first flow ends if no other comes.
  [[nodiscard]] double end_s(std::uint32_t number) const {
    const Station& station = m_stations[number];
    const double left = std::max(0.0, station.flows.top().until - station.given);
    return station.at_s + left * station.takers / m_graph.station_bytes_per_s[number];
  }

  void look_out(std::uint32_t number) {
    Station& station = m_stations[number];
    if (station.flows.empty()) {
      return;
    }
    const double end = std::max(m_now, end_s(number));
    if (end < station.look_s) {
      station.look_s = end;
      m_looks.push({end, number});
    }
  }

  const SimGraph& m_graph;
  std::vector<Station> m_stations;
  EarliestFirst<std::pair<double, std::uint32_t>> m_looks; ///< (time, station)
  EarliestFirst<double> m_calls;                           ///< asked for
  std::uint64_t m_number = 0;
  double m_now = 0;
  bool m_stopped = false;
};

} // namespace

bool stations_are_apart(const SimGraph& graph) {
  const auto one_station = [](const std::vector<std::uint32_t>& hop) {
    return std::all_of(hop.begin(), hop.end(), [&](std::uint32_t s) { return s == hop.front(); });
  };
  return graph.backgrounds.empty() &&
         std::all_of(graph.paths.begin(), graph.paths.end(), [&](const SimGraph::Path& path) {
           return std::all_of(path.hops.begin(), path.hops.end(), one_station);
         });
}

std::unique_ptr<FlowEngine> make_equal_shares_engine(const SimGraph& graph) {
  return std::make_unique<EqualShares>(graph);
}

} // namespace reckon
