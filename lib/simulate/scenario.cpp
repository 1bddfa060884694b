// SPDX-License-Identifier: Apache-2.0
#include "simulate/scenario.hpp"

#include "core/error.hpp"
#include "core/json.hpp"
#include "core/units.hpp"
#include "core/whole_number.hpp"
#include "simulate/build.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <string_view>

namespace reckon {
namespace {

constexpr double k_least_factor = 1e-6;

/// An option's text with what to say when it is wrong.
class Wish {
public:
  Wish(const char* option, const std::string& text, const char* form)
      : m_option(option), m_text(text), m_form(form) {}

  [[noreturn]] void refuse(const std::string& problem) const {
    fail(ErrorKind::usage,
         fmt::format("{} {}: {}; write {}", m_option, one_line(m_text), problem, m_form));
  }
  /// What stands before and after the last `between`.
  [[nodiscard]] std::pair<std::string_view, std::string_view>
  split(std::string_view text, std::string_view between) const {
    const std::size_t at = text.rfind(between);
    if (at == std::string_view::npos) {
      refuse(fmt::format("there is no '{}'", between));
    }
    return {text.substr(0, at), text.substr(at + between.size())};
  }
  [[nodiscard]] double factor(std::string_view text) const {
    const double value =
        parse_factor(text, fmt::format("{} {}", m_option, one_line(m_text)), k_least_factor);
    if (value > 1) {
      refuse(fmt::format("{} is faster, not slower: the factor must be at most 1", text));
    }
    return value;
  }
  [[nodiscard]] std::uint32_t rank(std::string_view text, std::size_t ranks) const {
    const std::optional<std::uint32_t> value = whole_number<std::uint32_t>(text);
    if (!value || *value >= ranks) {
      refuse(fmt::format("'{}' is not a rank; the plan has ranks 0 to {}", text, ranks - 1));
    }
    return *value;
  }

private:
  const char* m_option;
  const std::string& m_text;
  const char* m_form;
};

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t k_most = 12;
  const std::span<const std::string> shown(names.data(), std::min(names.size(), k_most));
  return fmt::format("{}{}", fmt::join(shown, ", "),
                     names.size() > k_most ? fmt::format(", ... ({} in all)", names.size()) : "");
}

/// The first and last stations of all ways from and to it.
std::vector<std::uint32_t> ports_of(const StationNetwork& network, std::uint32_t rank) {
  std::vector<std::uint32_t> ports;
  const auto add = [&](std::uint32_t station) {
    if (std::find(ports.begin(), ports.end(), station) == ports.end()) {
      ports.push_back(station);
    }
  };
  for (std::size_t way = 0; way < network.ways(); ++way) {
    for (std::size_t peer = 0; peer < network.paths.size(); ++peer) {
      if (const auto& out = network.path(way, rank, peer); !out.empty()) {
        add(out.front());
      }
      if (const auto& in = network.path(way, peer, rank); !in.empty()) {
        add(in.back());
      }
    }
  }
  return ports;
}

/// Names of the stations that some way passes; the others' are empty.
std::vector<std::string> links_of(const SimNetwork& network) {
  std::vector<std::string> names(network.names.size());
  for (std::size_t way = 0; way < network.stations.ways(); ++way) {
    for (std::size_t from = 0; from < network.stations.paths.size(); ++from) {
      for (std::size_t to = 0; to < network.stations.paths.size(); ++to) {
        for (const std::uint32_t station : network.stations.path(way, from, to)) {
          names[station] = network.names[station];
        }
      }
    }
  }
  return names;
}

/// Whether all that any two ranks send passes it: the memory of one machine.
bool serves_all(const StationNetwork& network, std::uint32_t station) {
  for (std::size_t from = 0; from < network.paths.size(); ++from) {
    for (std::size_t to = 0; to < network.paths.size(); ++to) {
      const auto& path = network.path(0, from, to);
      if (from != to && std::find(path.begin(), path.end(), station) == path.end()) {
        return false;
      }
    }
  }
  return true;
}

void add_slow_station(Scenario& scenario, const Wish& wish, const SimNetwork& network,
                      std::uint32_t station, double factor) {
  for (const auto& slowed : scenario.slow_stations) {
    if (slowed.first == station) {
      wish.refuse(fmt::format("{} is slower already", network.names[station]));
    }
  }
  scenario.slow_stations.emplace_back(station, factor);
}

void add_slow(Scenario& scenario, const std::string& text, const SimNetwork& network) {
  const Wish wish("--slow", text, "link=NAME:FACTOR or rank=NUMBER:FACTOR, e.g. rank=3:0.5");
  const auto [what, factor_text] = wish.split(text, ":");
  const double factor = wish.factor(factor_text);
  if (what.starts_with("rank=")) {
    const std::uint32_t rank = wish.rank(what.substr(5), network.stations.paths.size());
    const std::vector<std::uint32_t> ports = ports_of(network.stations, rank);
    if (ports.empty()) {
      wish.refuse(fmt::format("rank {} has no link to others", rank));
    }
    for (const std::uint32_t station : ports) {
      if (serves_all(network.stations, station)) {
        wish.refuse(fmt::format("rank {} has no link of its own: {} serves all ranks, which is "
                                "link={}",
                                rank, network.names[station], network.names[station]));
      }
      add_slow_station(scenario, wish, network, station, factor);
    }
    constexpr std::size_t k_one_port = 2; // both ways
    scenario.texts.push_back(
        ports.size() > k_one_port
            ? fmt::format("the ports of rank {} at {} of their rates", rank, factor)
            : fmt::format("the port of rank {} at {} of its rate", rank, factor));
    return;
  }
  if (!what.starts_with("link=")) {
    wish.refuse("it names no link and no rank");
  }
  const std::string name(what.substr(5));
  std::vector<std::string> links = links_of(network);
  // A machine's ports may have the same name: then all of them are meant.
  const auto count = name.empty() ? 0 : std::count(links.begin(), links.end(), name);
  if (count == 0) {
    std::erase(links, "");
    const std::string near = did_you_mean(name, links);
    wish.refuse(fmt::format("there is no link '{}'{}; there are {}", name,
                            near.empty() ? "" : fmt::format(", did you mean '{}'?", near),
                            listed(links)));
  }
  for (std::uint32_t station = 0; station < links.size(); ++station) {
    if (links[station] == name) {
      add_slow_station(scenario, wish, network, station, factor);
    }
  }
  scenario.texts.push_back(
      count > 1 ? fmt::format("the {} links {} at {} of their rates", count, name, factor)
                : fmt::format("{} at {} of its rate", name, factor));
}

void add_background(Scenario& scenario, const std::string& text, const SimNetwork& network) {
  const Wish wish("--background", text,
                  "FROM->TO:RATE or FROM->TO:RATE@START with ranks, e.g. 0->3:2GB/s@5ms");
  std::string_view what = text;
  Scenario::Background background;
  if (const std::size_t at = what.rfind('@'); at != std::string_view::npos) {
    background.start_s = parse_seconds(what.substr(at + 1), "--background " + text).count();
    what = what.substr(0, at);
  }
  const auto [ends, rate] = wish.split(what, ":");
  const auto [from, to] = wish.split(ends, "->");
  const std::size_t ranks = network.stations.paths.size();
  background.from = wish.rank(from, ranks);
  background.to = wish.rank(to, ranks);
  background.bytes_per_s = parse_bandwidth(rate, "--background " + text).as_bytes_per_s();
  std::set<std::vector<std::uint32_t>> passed;
  std::vector<std::uint32_t> lanes; // one for each way between the two
  for (std::uint32_t lane = 0; lane < network.stations.ways(); ++lane) {
    const auto& way = network.stations.path(lane, background.from, background.to);
    if (!way.empty() && passed.insert(way).second) {
      lanes.push_back(lane);
    }
  }
  if (lanes.empty()) {
    wish.refuse(
        fmt::format("there is no link between ranks {} and {}", background.from, background.to));
  }
  background.text = scenario.texts.size();
  scenario.texts.push_back(
      fmt::format("traffic from rank {} to {} of up to {}{}{}", background.from, background.to,
                  to_text(Bandwidth::bytes_per_s(background.bytes_per_s)),
                  lanes.size() > 1 ? fmt::format(" over {} ways", lanes.size()) : "",
                  background.start_s > 0 ? " after " + to_text(Seconds(background.start_s)) : ""));
  background.bytes_per_s /= static_cast<double>(lanes.size());
  for (const std::uint32_t lane : lanes) {
    background.lane = lane;
    scenario.backgrounds.push_back(background);
  }
}

} // namespace

std::vector<double> Scenario::kept_rates(std::size_t stations) const {
  std::vector<double> kept(stations, 1);
  for (const auto& [station, factor] : slow_stations) {
    kept[station] *= factor;
  }
  return kept;
}

std::vector<double> Scenario::op_factors(std::size_t ranks) const {
  std::vector<double> factors(ranks, 1);
  for (const auto& [rank, factor] : stragglers) {
    factors[rank] *= factor;
  }
  return factors;
}

Scenario scenario_of(const ScenarioOptions& options, const SimNetwork& network) {
  Scenario scenario;
  for (const std::string& text : options.slow) {
    add_slow(scenario, text, network);
  }
  scenario.stragglers = parse_stragglers(options.stragglers, network.stations.paths.size());
  for (const auto& [rank, factor] : scenario.stragglers) {
    scenario.texts.push_back(
        fmt::format("rank {} takes {} times as long for its operations and passes", rank, factor));
  }
  for (const std::string& text : options.backgrounds) {
    add_background(scenario, text, network);
  }
  if (options.no_buffers) {
    scenario.no_buffers = true;
    scenario.texts.emplace_back("no buffers between links");
  }
  return scenario;
}

} // namespace reckon
