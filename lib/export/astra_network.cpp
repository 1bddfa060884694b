// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "export/export.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>

namespace reckon {
namespace {

constexpr double k_gib = 1024.0 * 1024.0 * 1024.0; // what ASTRA-sim's analytical backend calls GB

[[noreturn]] void refuse(const std::string& why) {
  fail(ErrorKind::input,
       fmt::format("{}; ASTRA-sim's analytical network has one topology, bandwidth and latency for "
                   "all of a dimension. Plans over equal machines with a port each fit, or over "
                   "racks of equally many; `--format simgrid` takes any network",
                   why));
}

/// What is the same on all ways of one kind.
struct Same {
  const char* what;
  double value = -1;
  void see(double v) {
    if (value >= 0 && v != value) {
      refuse(fmt::format("the ranks' {} differ: {} and {}", what, value, v));
    }
    value = v;
  }
};

struct Dimensions {
  Same port{"ports in bytes per second"}, uplink{"racks' uplinks in bytes per second"},
      latency{"latencies in seconds"};
};

/// A way's stations that can slow it.
std::vector<double> rates_of(const StationNetwork& network, std::size_t from, std::size_t to) {
  std::vector<double> rates;
  for (const std::uint32_t station : network.paths[from][to]) {
    if (!network.station_busy.empty() && !network.station_busy[station].empty()) {
      refuse("the profile has a curve of its own for each pair of machines");
    }
    if (std::isfinite(network.station_bytes_per_s[station])) {
      rates.push_back(network.station_bytes_per_s[station]);
    }
  }
  return rates;
}

Dimensions dimensions_of(const StationNetwork& network, std::size_t ranks) {
  Dimensions found;
  for (std::size_t from = 0; from < ranks; ++from) {
    for (std::size_t to = 0; to < ranks; ++to) {
      if (from == to) {
        continue;
      }
      const std::vector<double> rates = rates_of(network, from, to);
      if (rates.size() != 2 && rates.size() != 4) {
        refuse("the ranks are not machines with a port each");
      }
      found.port.see(rates.front());
      found.port.see(rates.back());
      if (rates.size() == 4) {
        found.uplink.see(rates[1]);
        found.uplink.see(rates[2]);
      }
      found.latency.see(network.latency_of(from, to));
    }
  }
  return found;
}

/// Machines of each rack; their ranks must be neighbours, for ASTRA-sim numbers them so.
std::size_t rack_size(const Plan& plan) {
  std::map<std::string, std::size_t> size;
  for (const PlanRank& rank : plan.ranks) {
    ++size[rank.rack];
  }
  const std::size_t one = size.begin()->second;
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    if (size[plan.ranks[r].rack] != one || plan.ranks[r].rack != plan.ranks[r - r % one].rack) {
      refuse("the racks hold unequal numbers of ranks, or ranks that are not neighbours");
    }
  }
  return one;
}

} // namespace

std::string astra_network_yml(const Plan& plan, const ExportNetwork& network) {
  const std::size_t ranks = plan.ranks.size();
  if (ranks < 2 || !plan.ranks.front().endpoint.empty()) {
    refuse(ranks < 2 ? "the plan has one rank" : "the ranks are places inside a machine");
  }
  const Dimensions found = dimensions_of(network.network, ranks);
  const double hop_ns = found.latency.value * 1e9 / 2;
  std::string text =
      fmt::format("# {} on {}: {} ranks\n", plan.workload.name, plan.profile.name, ranks);
  text += "# bandwidth: GB/s of one direction, GB = 2^30 bytes. latency: ns of one of the two "
          "links of a way\n# through a switch, half of the profile's.\n";
  if (found.uplink.value < 0) {
    return text + fmt::format("topology: [ Switch ]\nnpus_count: [ {} ]\nbandwidth: [ {} ]\n"
                              "latency: [ {} ]\n",
                              ranks, found.port.value / k_gib, hop_ns);
  }
  const std::size_t rack = rack_size(plan);
  if (rack < 2) {
    refuse("each rack holds one rank");
  }
  text += fmt::format("# The second dimension is the racks: each rank's part of its rack's uplink, "
                      "{} bytes/s for {} ranks.\n",
                      found.uplink.value, rack);
  return text +
         fmt::format("topology: [ Switch, Switch ]\nnpus_count: [ {}, {} ]\nbandwidth: [ {}, {} ]\n"
                     "latency: [ {}, {} ]\n",
                     rack, ranks / rack, found.port.value / k_gib,
                     found.uplink.value / static_cast<double>(rack) / k_gib, hop_ns, hop_ns);
}

} // namespace reckon
