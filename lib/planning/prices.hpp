// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>

namespace reckon {

/// What machines cost, all in one currency and for one span of time.
struct Prices {
  std::string file;          ///< that they were read from, for messages
  std::string currency, per; ///< "USD", "hour"
  double worker = 0;         ///< a machine that works; above 0
  std::optional<double> box{},
      server{}; ///< PHub's box of many interfaces; a machine that only sums
  /// A machine's network port, by its speed in bytes per second; empty: ports cost nothing more.
  std::map<double, double> ports{};
};

/// From a JSON file: {"currency": "USD", "per": "hour", "worker": 3, "server": 1, "box": 10,
/// "ports": {"25Gb/s": 0.2}}, the last three only if they are needed. Throws Error{input}.
[[nodiscard]] Prices read_prices(const std::string& path);

/// What a plan's machines cost together for Prices::per. A machine's port is the slowest listed one
/// that carries the plan's speed. Throws Error{input} that names what the prices lack.
[[nodiscard]] double price_of(const Plan& plan, const Prices& prices);

/// The speeds, in bytes per second, of the listed ports whose prices are in price_of(); none where
/// ports cost nothing. Throws as price_of().
[[nodiscard]] std::set<double> priced_ports(const Plan& plan, const Prices& prices);

/// What they cost for one iteration. Throws as price_of(), and where Prices::per is no known span
/// of time.
[[nodiscard]] double price_of_step(const Plan& plan, const Prices& prices);

} // namespace reckon
