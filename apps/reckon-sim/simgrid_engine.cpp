// SPDX-License-Identifier: Apache-2.0
#include "simgrid_engine.hpp"

#include <fmt/format.h>

#include <simgrid/engine.h>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>
#include <simgrid/version.h>
#include <xbt/log.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace reckon {
namespace {

namespace s4u = simgrid::s4u;

/// SimGrid counts whole units of payload. So many for a byte make what rounding takes from the
/// smallest write too little to see.
constexpr double k_units_per_byte = 1024;
/// Longer than any iteration.
constexpr double k_forever_s = 1e6;
/// SimGrid wants a speed of hosts; nothing is computed on them.
constexpr double k_unused_speed = 1e9;

class SimgridEngine final : public FlowEngine {
public:
  explicit SimgridEngine(const SimGraph& graph) : m_graph(graph) {
    // Before the engine: it would write each setting to standard error.
    xbt_log_control_set("root.thres:error");
    m_engine = std::make_unique<s4u::Engine>("reckon-sim");
    for (const auto& [name, value] : simgrid_settings(graph)) {
      s4u::Engine::set_config(name + ":" + value);
    }
    m_zone = s4u::create_empty_zone("network");
    std::vector<s4u::Link*> stations;
    for (std::size_t s = 0; s < graph.station_bytes_per_s.size(); ++s) {
      stations.push_back(add_link(fmt::format("s{}", s), graph.station_bytes_per_s[s]));
    }
    // Hosts of its own for each hop, as SimGrid knows one route between two.
    std::map<std::vector<std::uint32_t>, std::size_t> hops;
    for (const SimGraph::Path& path : graph.paths) {
      m_hops.emplace_back();
      for (const std::vector<std::uint32_t>& hop : path.hops) {
        const auto [found, added] = hops.emplace(hop, m_hosts.size());
        if (added) {
          m_hosts.push_back(add_way(fmt::format("h{}", m_hosts.size()), links_of(hop, stations)));
        }
        m_hops.back().push_back(found->second);
      }
    }
    for (std::size_t b = 0; b < graph.backgrounds.size(); ++b) {
      // A link of its own keeps the traffic to its rate.
      const SimGraph::Background& background = graph.backgrounds[b];
      std::vector<s4u::LinkInRoute> links;
      for (const std::vector<std::uint32_t>& hop : graph.paths[background.path].hops) {
        const std::vector<s4u::LinkInRoute> more = links_of(hop, stations);
        links.insert(links.end(), more.begin(), more.end());
      }
      links.emplace_back(add_link(fmt::format("b{}", b), background.bytes_per_s));
      m_backgrounds.emplace_back(); // until it starts
      m_background_hosts.push_back(add_way(fmt::format("b{}", b), links));
    }
    m_zone->seal();
  }

  void start_flow(std::uint32_t flow, std::uint32_t path, std::uint32_t hop,
                  double bytes) override {
    if (flow >= m_flows.size()) {
      m_flows.resize(flow + 1);
    }
    m_flows[flow] = start(m_hosts[m_hops[path][hop]], bytes, flow);
  }

  void start_background(std::uint32_t background) override {
    m_backgrounds[background] =
        start(m_background_hosts[background], background_total(background), k_no_flow);
  }

  [[nodiscard]] double background_bytes(std::uint32_t background) const override {
    const s4u::CommPtr& comm = m_backgrounds[background];
    return comm ? background_total(background) - comm->get_remaining() / k_units_per_byte : 0;
  }

  void call_at(double seconds) override {
    simgrid::kernel::timer::Timer::set(seconds, [this] {
      if (!m_stopped) {
        m_listener.called();
      }
    });
  }

  [[nodiscard]] double now() const override { return s4u::Engine::get_clock(); }

  void run(Listener listener) override {
    m_listener = std::move(listener);
    s4u::Activity::on_completion_cb([this](const s4u::Activity& activity) {
      const auto number = reinterpret_cast<std::uintptr_t>(activity.get_data<void>());
      if (m_stopped || number == k_no_flow) {
        return;
      }
      const auto flow = static_cast<std::uint32_t>(number);
      m_ended.push_back(std::move(m_flows[flow])); // it must outlive its own callback
      m_listener.flow_ended(flow);
    });
    s4u::Engine::on_time_advance_cb([this](double) { m_ended.clear(); });
    m_engine->run();
  }

  void stop() override {
    m_stopped = true;
    simgrid::kernel::timer::Timer::set(now(), [this] {
      for (const s4u::CommPtr& background : m_backgrounds) {
        if (background) {
          background->cancel();
        }
      }
    });
  }

private:
  static constexpr std::uintptr_t k_no_flow = UINTPTR_MAX;
  using Ends = std::pair<s4u::Host*, s4u::Host*>; ///< hosts that only lead from and to links

  /// More than it will carry, and no more than SimGrid can count.
  [[nodiscard]] double background_total(std::uint32_t background) const {
    constexpr double k_most_bytes = 4e15;
    return std::min(m_graph.backgrounds[background].bytes_per_s * k_forever_s, k_most_bytes);
  }
  static s4u::Host* add_host(s4u::NetZone& zone, const std::string& name) {
    s4u::Host* const host = zone.create_host(name, k_unused_speed);
    host->seal();
    return host;
  }
  /// Without latency: what a flow gets of a link would depend on it. The player adds it.
  s4u::Link* add_link(const std::string& name, double bytes_per_s) {
    s4u::Link* const link = m_zone->create_link(name, bytes_per_s * k_units_per_byte);
    link->set_latency(0.0);
    link->seal();
    return link;
  }
  static std::vector<s4u::LinkInRoute> links_of(const std::vector<std::uint32_t>& hop,
                                                const std::vector<s4u::Link*>& stations) {
    std::vector<s4u::LinkInRoute> links;
    for (const std::uint32_t station : hop) {
      links.emplace_back(stations[station]);
    }
    return links;
  }
  /// In a zone of its own, as SimGrid keeps a table of all pairs of a zone's hosts.
  Ends add_way(const std::string& name, const std::vector<s4u::LinkInRoute>& links) {
    s4u::NetZone* const zone = s4u::create_full_zone(name)->set_parent(m_zone);
    const Ends ends{add_host(*zone, name + "from"), add_host(*zone, name + "to")};
    zone->add_route(ends.first->get_netpoint(), ends.second->get_netpoint(), nullptr, nullptr,
                    links, false);
    zone->seal();
    return ends;
  }

  static s4u::CommPtr start(const Ends& ends, double bytes, std::uintptr_t number) {
    s4u::CommPtr comm = s4u::Comm::sendto_init(ends.first, ends.second);
    comm->set_payload_size(std::max<std::uint64_t>(
        1, static_cast<std::uint64_t>(std::llround(bytes * k_units_per_byte))));
    comm->set_data(reinterpret_cast<void*>(number));
    comm->start();
    return comm;
  }

  const SimGraph& m_graph;
  std::unique_ptr<s4u::Engine> m_engine;
  s4u::NetZone* m_zone = nullptr;
  std::vector<Ends> m_hosts, m_background_hosts;
  std::vector<std::vector<std::size_t>> m_hops; ///< [path][hop]: number in m_hosts
  std::vector<s4u::CommPtr> m_flows;            ///< by number
  std::vector<s4u::CommPtr> m_backgrounds;      ///< by number, once it has started
  std::vector<s4u::CommPtr> m_ended;
  Listener m_listener;
  bool m_stopped = false;
};

} // namespace

std::unique_ptr<FlowEngine> make_simgrid_engine(const SimGraph& graph) {
  return std::make_unique<SimgridEngine>(graph);
}

std::string simgrid_version() {
  int major = 0, minor = 0, patch = 0;
  sg_version_get(&major, &minor, &patch);
  return fmt::format("SimGrid {}.{}.{}", major, minor, patch);
}

std::map<std::string, std::string> simgrid_settings(const SimGraph& graph) {
  return {
      // Rates and latencies as they are; the default model has factors for TCP.
      {"network/model", "CM02"},
      // What comes back does not slow down what goes.
      {"network/crosstraffic", "0"},
      // No limit by the window of a TCP connection.
      {"network/TCP-gamma", "1e18"},
      {"surf/precision", fmt::format("{}", graph.precision_s)},
  };
}

} // namespace reckon
