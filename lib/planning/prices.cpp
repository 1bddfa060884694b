// SPDX-License-Identifier: Apache-2.0
#include "planning/prices.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/json.hpp"
#include "core/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace reckon {
namespace {

/// A machine as a plan uses it.
struct Machine {
  bool works = false;
  double port_bytes_per_s = 0; ///< 0: the plan does not say
};

/// Ranks with ports are machines of their own; others share those that they name.
std::map<std::string, Machine> machines_of(const Plan& plan) {
  std::map<std::string, Machine> machines;
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    const PlanRank& rank = plan.ranks[r];
    const bool own = rank.endpoint.empty() && rank.port_bytes_per_second > 0;
    Machine& machine = machines[own ? fmt::format("rank {}", r) : rank.machine_name()];
    machine.works = machine.works || rank.worker;
    machine.port_bytes_per_s = std::max(machine.port_bytes_per_s, rank.port_bytes_per_second);
  }
  return machines;
}

/// The slowest listed one that carries this speed. Precondition: ports are listed.
std::pair<double, double> port_for(double bytes_per_s, const Prices& prices) {
  constexpr double k_rounding = 1e-6;
  const auto port = prices.ports.lower_bound(bytes_per_s * (1 - k_rounding));
  if (bytes_per_s == 0 || port == prices.ports.end()) {
    fail(ErrorKind::input,
         bytes_per_s == 0
             ? fmt::format("{}: /ports: the plan's machines have no ports of known speed; leave "
                           "\"ports\" out, or plan with --port-bandwidth",
                           prices.file)
             : fmt::format("{}: /ports: no port carries {}; add one that does", prices.file,
                           to_text(Bandwidth::bytes_per_s(bytes_per_s))));
  }
  return *port;
}

} // namespace

Prices read_prices(const std::string& path) {
  const Json document = parse_json(read_file(path), path);
  const JsonView view(document, path);
  view.only({"currency", "per", "worker", "box", "server", "ports"});
  Prices prices{path, view.at("currency").name(), view.at("per").name(),
                view.at("worker").positive()}; // else shards on the workers would be free
  for (const auto& [key, to] :
       {std::pair("box", &prices.box), std::pair("server", &prices.server)}) {
    if (const auto price = view.find(key)) {
      *to = price->non_negative();
    }
  }
  if (const auto ports = view.find("ports")) {
    for (const auto& [speed, price] : ports->members()) {
      const double bytes_per_s = [&, &text = speed] {
        try {
          return parse_bandwidth(text, fmt::format("{}: /ports", path)).as_bytes_per_s();
        } catch (const Error& error) { // of a file, not of the command line
          fail(ErrorKind::input, error.what());
        }
      }();
      prices.ports[bytes_per_s] = price.non_negative();
    }
  }
  return prices;
}

double price_of(const Plan& plan, const Prices& prices) {
  double sum = 0;
  for (const auto& [name, machine] : machines_of(plan)) {
    if (!machine.works && !prices.server) {
      fail(ErrorKind::input, fmt::format("{}: /: has no \"server\", the price of a machine that "
                                         "only sums, and the plan has some; add it",
                                         prices.file));
    }
    sum += (machine.works ? prices.worker : *prices.server) +
           (prices.ports.empty() ? 0 : port_for(machine.port_bytes_per_s, prices).second);
  }
  return sum;
}

std::set<double> priced_ports(const Plan& plan, const Prices& prices) {
  std::set<double> out;
  for (const auto& [name, machine] : machines_of(plan)) {
    if (!prices.ports.empty()) {
      out.insert(port_for(machine.port_bytes_per_s, prices).first);
    }
  }
  return out;
}

double price_of_step(const Plan& plan, const Prices& prices) {
  constexpr double k_day = 86400;
  constexpr std::array<std::pair<std::string_view, double>, 6> k_spans{{{"second", 1},
                                                                        {"minute", 60},
                                                                        {"hour", 3600},
                                                                        {"day", k_day},
                                                                        {"month", 365 * k_day / 12},
                                                                        {"year", 365 * k_day}}};
  const auto* const span = std::find_if(
      k_spans.begin(), k_spans.end(), [&](const auto& known) { return known.first == prices.per; });
  if (span == k_spans.end()) {
    fail(ErrorKind::input, fmt::format("{}: /per: '{}' is no span of time; write second, minute, "
                                       "hour, day, month or year",
                                       prices.file, prices.per));
  }
  return price_of(plan, prices) * plan.prediction.mid_seconds / span->second;
}

} // namespace reckon
