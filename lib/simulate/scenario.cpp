// SPDX-License-Identifier: Apache-2.0
#include "simulate/scenario.hpp"

#include "core/error.hpp"
#include "core/json.hpp"
#include "core/units.hpp"
#include "simulate/build.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>
#include <string_view>

namespace reckon {
namespace {

constexpr double k_least_factor = 1e-6, k_greatest_factor = 1e6;

template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return !text.empty() && error == std::errc{} && end == text.data() + text.size()
             ? std::optional(value)
             : std::nullopt;
}

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
    const std::optional<double> value = number<double>(text);
    if (!value || !(*value >= k_least_factor) || *value > k_greatest_factor) {
      refuse(
          fmt::format("'{}' is no factor from {} to {}", text, k_least_factor, k_greatest_factor));
    }
    return *value;
  }
  [[nodiscard]] std::uint32_t rank(std::string_view text, std::size_t ranks) const {
    const std::optional<std::uint32_t> value = number<std::uint32_t>(text);
    if (!value || *value >= ranks) {
      refuse(fmt::format("'{}' is no rank; the plan has 0 to {}", text, ranks - 1));
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

void add_slow(Scenario& scenario, const std::string& text, const SimNetwork& network) {
  const Wish wish("--slow", text, "link=NAME:FACTOR or rank=NUMBER:FACTOR, e.g. rank=3:0.5");
  const auto [what, factor_text] = wish.split(text, ":");
  const double factor = wish.factor(factor_text);
  if (what.starts_with("rank=")) {
    const std::uint32_t rank = wish.rank(what.substr(5), network.stations.paths.size());
    const std::vector<std::uint32_t> port = port_of(network.stations, rank);
    if (port.empty()) {
      wish.refuse(fmt::format("rank {} has no link to others", rank));
    }
    for (const std::uint32_t station : port) {
      scenario.slow_stations.emplace_back(station, factor);
    }
    scenario.texts.push_back(fmt::format("the port of rank {} at {} of its rate", rank, factor));
    return;
  }
  if (!what.starts_with("link=")) {
    wish.refuse("it names neither a link nor a rank");
  }
  const std::string name(what.substr(5));
  const auto found = std::find(network.names.begin(), network.names.end(), name);
  if (found == network.names.end()) {
    const std::string near = did_you_mean(name, network.names);
    wish.refuse(fmt::format("there is no link '{}'{}; there are {}", name,
                            near.empty() ? "" : fmt::format(", did you mean '{}'?", near),
                            listed(network.names)));
  }
  scenario.slow_stations.emplace_back(static_cast<std::uint32_t>(found - network.names.begin()),
                                      factor);
  scenario.texts.push_back(fmt::format("{} at {} of its rate", name, factor));
}

void add_straggler(Scenario& scenario, const std::string& text, const SimNetwork& network) {
  const Wish wish("--straggler", text, "rank=NUMBER:FACTOR or NUMBER=FACTORx, e.g. rank=3:2");
  std::string_view what = text;
  const bool as_run = !what.starts_with("rank=") && what.ends_with("x");
  if (as_run) {
    what.remove_suffix(1);
  } else if (what.starts_with("rank=")) {
    what.remove_prefix(5);
  } else {
    wish.refuse("it names no rank");
  }
  const auto [rank_text, factor_text] = wish.split(what, as_run ? "=" : ":");
  const std::uint32_t rank = wish.rank(rank_text, network.stations.paths.size());
  const double factor = wish.factor(factor_text);
  scenario.stragglers.emplace_back(rank, factor);
  scenario.texts.push_back(
      fmt::format("rank {} takes {} times as long for its ops and passes", rank, factor));
}

void add_background(Scenario& scenario, const std::string& text, const SimNetwork& network) {
  const Wish wish("--background", text,
                  "FROM->TO:RATE or FROM->TO:RATE@START with ranks, e.g. 0->3:2GB/s@5ms");
  std::string_view what = text;
  Scenario::Background background;
  if (const std::size_t at = what.rfind('@'); at != std::string_view::npos) {
    background.start_s = parse_seconds(what.substr(at + 1), "--background").count();
    what = what.substr(0, at);
  }
  const auto [ends, rate] = wish.split(what, ":");
  const auto [from, to] = wish.split(ends, "->");
  const std::size_t ranks = network.stations.paths.size();
  background.from = wish.rank(from, ranks);
  background.to = wish.rank(to, ranks);
  background.bytes_per_s = parse_bandwidth(rate, "--background").as_bytes_per_s();
  if (network.stations.paths[background.from][background.to].empty()) {
    wish.refuse(
        fmt::format("there is no link between ranks {} and {}", background.from, background.to));
  }
  scenario.backgrounds.push_back(background);
  scenario.texts.push_back(
      fmt::format("traffic from rank {} to {} of up to {}{}", background.from, background.to,
                  to_text(Bandwidth::bytes_per_s(background.bytes_per_s)),
                  background.start_s > 0 ? " after " + to_text(Seconds(background.start_s)) : ""));
}

} // namespace

std::vector<std::uint32_t> port_of(const StationNetwork& network, std::uint32_t rank) {
  std::vector<std::uint32_t> port;
  const auto add = [&](std::uint32_t station) {
    if (std::find(port.begin(), port.end(), station) == port.end()) {
      port.push_back(station);
    }
  };
  for (std::size_t peer = 0; peer < network.paths.size(); ++peer) {
    if (const auto& out = network.paths[rank][peer]; !out.empty()) {
      add(out.front());
    }
    if (const auto& in = network.paths[peer][rank]; !in.empty()) {
      add(in.back());
    }
  }
  return port;
}

Scenario scenario_of(const std::vector<std::string>& slow,
                     const std::vector<std::string>& stragglers,
                     const std::vector<std::string>& backgrounds, const SimNetwork& network) {
  Scenario scenario;
  for (const std::string& text : slow) {
    add_slow(scenario, text, network);
  }
  for (const std::string& text : stragglers) {
    add_straggler(scenario, text, network);
  }
  for (const std::string& text : backgrounds) {
    add_background(scenario, text, network);
  }
  return scenario;
}

} // namespace reckon
