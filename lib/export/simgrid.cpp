// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "export/export.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>

namespace reckon {
namespace {

constexpr std::size_t k_most_ranks = 1024;

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
    case '<':
      out += "&lt;";
      break;
    case '>':
      out += "&gt;";
      break;
    case '&':
      out += "&amp;";
      break;
    case '"':
      out += "&quot;";
      break;
    default:
      out += c;
    }
  }
  return out;
}

/// In a comment no two hyphens may stand side by side.
std::string in_comment(std::string text) {
  for (std::size_t at = text.find("--"); at != text.npos; at = text.find("--", at)) {
    text.replace(at, 2, "- ");
  }
  return text;
}

class SimgridWriter {
public:
  explicit SimgridWriter(const ExportNetwork& network)
      : m_net(network.network), m_names(unique(network.stations)) {}

  std::string write(const ExportNetwork& network, const std::string& title) {
    put("<?xml version='1.0'?>\n"
        "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
        "<!-- {} -->\n",
        in_comment(title));
    if (network.write_overhead_s > 0) {
      put("<!-- Left out: {} s that each write costs at its sender beside its bytes. -->\n",
          network.write_overhead_s);
    }
    // With these a flow of b bytes takes latency + b / rate: SimGrid's own factors are for TCP.
    put("<platform version=\"4.1\">\n"
        "  <config>\n"
        "    <prop id=\"network/model\" value=\"CM02\"/>\n"
        "    <prop id=\"network/crosstraffic\" value=\"0\"/>\n"
        "    <prop id=\"network/TCP-gamma\" value=\"1e18\"/>\n"
        "  </config>\n"
        "  <zone id=\"network\" routing=\"Full\">\n");
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
      put("    <host id=\"rank{}\" speed=\"1Gf\"/>\n", rank);
    }
    links();
    routes();
    put("  </zone>\n</platform>\n");
    return fmt::to_string(m_text);
  }

private:
  [[nodiscard]] std::size_t ranks() const { return m_net.paths.size(); }

  static std::vector<std::string> unique(const std::vector<std::string>& names) {
    std::vector<std::string> out;
    std::set<std::string> seen;
    for (std::size_t i = 0; i < names.size(); ++i) {
      std::string name = names[i];
      if (!seen.insert(name).second) {
        name = fmt::format("{} ({})", name, i);
        seen.insert(name);
      }
      out.push_back(escaped(name));
    }
    return out;
  }

  /// A station whose rate is not known delays nothing.
  [[nodiscard]] bool counts(std::uint32_t station) const {
    return std::isfinite(m_net.station_bytes_per_s[station]);
  }

  /// The latency of all ways that begin at a station, where it is one and no way crosses the
  /// station later.
  [[nodiscard]] std::vector<std::optional<double>> first_latency() const {
    enum class State { unused, one, several };
    std::vector<State> state(m_net.station_bytes_per_s.size(), State::unused);
    std::vector<double> latency(state.size(), 0);
    for_each_way([&](std::size_t from, std::size_t to) {
      const auto& path = m_net.paths[from][to];
      for (std::size_t hop = 0; hop < path.size(); ++hop) {
        State& s = state[path[hop]];
        if (hop > 0 || (s == State::one && latency[path[hop]] != m_net.latency_of(from, to))) {
          s = State::several;
        } else if (s == State::unused) {
          s = State::one;
          latency[path[hop]] = m_net.latency_of(from, to);
        }
      }
    });
    std::vector<std::optional<double>> found(state.size());
    for (std::uint32_t i = 0; i < state.size(); ++i) {
      if (state[i] == State::one && counts(i)) {
        found[i] = latency[i];
      }
    }
    return found;
  }

  void links() {
    m_latency = first_latency();
    std::vector<bool> used(m_names.size(), false); // single ports are on the ways of lanes only
    for_each_way([&](std::size_t from, std::size_t to) {
      for (const std::uint32_t station : m_net.paths[from][to]) {
        used[station] = true;
      }
    });
    for (std::uint32_t i = 0; i < m_names.size(); ++i) {
      if (used[i] && counts(i)) {
        link(m_names[i], m_net.station_bytes_per_s[i], m_latency[i].value_or(0), "SHARED");
      }
    }
    for_each_way([&](std::size_t from, std::size_t to) {
      if (has_own_link(from, to)) {
        constexpr double k_no_limit = 1e18;
        link(own_link(from, to), k_no_limit, m_net.latency_of(from, to), "FATPIPE");
      }
    });
  }

  /// Where no station carries a way's latency, or none is on it, it gets a link that only delays.
  [[nodiscard]] bool has_own_link(std::size_t from, std::size_t to) const {
    const auto& path = m_net.paths[from][to];
    const bool carried = !path.empty() && m_latency[path.front()].has_value();
    return !carried && (m_net.latency_of(from, to) > 0 ||
                        std::none_of(path.begin(), path.end(),
                                     [&](std::uint32_t station) { return counts(station); }));
  }
  [[nodiscard]] static std::string own_link(std::size_t from, std::size_t to) {
    return fmt::format("latency {} to {}", from, to);
  }

  void link(const std::string& id, double bytes_per_s, double latency_s, const char* policy) {
    put("    <link id=\"{}\" bandwidth=\"{}Bps\" latency=\"{}s\" sharing_policy=\"{}\"/>\n", id,
        bytes_per_s, latency_s, policy);
  }

  void routes() {
    for_each_way([&](std::size_t from, std::size_t to) {
      put("    <route src=\"rank{}\" dst=\"rank{}\" symmetrical=\"NO\">", from, to);
      if (has_own_link(from, to)) {
        put("<link_ctn id=\"{}\"/>", own_link(from, to));
      }
      for (const std::uint32_t station : m_net.paths[from][to]) {
        if (counts(station)) {
          put("<link_ctn id=\"{}\"/>", m_names[station]);
        }
      }
      put("</route>\n");
    });
  }

  template <class Function>
  void for_each_way(Function function) const {
    for (std::size_t from = 0; from < ranks(); ++from) {
      for (std::size_t to = 0; to < ranks(); ++to) {
        if (from != to) {
          function(from, to);
        }
      }
    }
  }

  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(m_text), format, std::forward<Args>(args)...);
  }

  const StationNetwork& m_net;
  std::vector<std::string> m_names;
  std::vector<std::optional<double>> m_latency; ///< by station: that it carries
  fmt::memory_buffer m_text;
};

} // namespace

std::string simgrid_xml(const ExportNetwork& network, const std::string& title) {
  const std::size_t ranks = network.network.paths.size();
  if (ranks > k_most_ranks) {
    fail(ErrorKind::input,
         fmt::format("the plan has {} ranks; a platform with a route for each pair is written for "
                     "at most {}. Play larger jobs with `reckon simulate`",
                     ranks, k_most_ranks));
  }
  return SimgridWriter(network).write(network, title);
}

} // namespace reckon
