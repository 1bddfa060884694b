// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/stations.hpp"
#include "schedule/stragglers.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace reckon {

/// The differences from the plan's conditions.
struct Scenario {
  struct Background {
    std::uint32_t from = 0, to = 0; ///< ranks
    std::uint32_t lane = 0;         ///< index of the way between them
    double bytes_per_s = 0, start_s = 0;
    std::size_t text = 0; ///< of `texts`
  };
  std::vector<std::pair<std::uint32_t, double>> slow_stations; ///< and the factor on their rate
  std::vector<Straggler> stragglers;                           ///< of ops and passes
  std::vector<Background> backgrounds;
  bool no_buffers =
      false; ///< nothing waits between links: a write is on all links of its way at once
  std::vector<std::string> texts; ///< each difference in words

  /// The fraction of its rate that each station keeps.
  [[nodiscard]] std::vector<double> kept_rates(std::size_t stations) const;
  /// The factor on the time of each rank's ops.
  [[nodiscard]] std::vector<double> op_factors(std::size_t ranks) const;
};

struct SimNetwork;

/// What the options say:
/// - `slow`: "link=NAME:FACTOR" or "rank=NUMBER:FACTOR" (both ways of its port, of each where it
///   has several: the first and last stations of all ways from and to it): FACTOR of its rate;
/// - `stragglers`: "rank=NUMBER:FACTOR" (or "NUMBER=FACTORx"): its ops and passes take FACTOR times
///   as long;
/// - `backgrounds`: "FROM->TO:RATE" between two ranks, with "@SECONDS" when it begins later; in
///   equal parts over all ways that lanes have between them.
struct ScenarioOptions {
  std::vector<std::string> slow{}, stragglers{}, backgrounds{};
  bool no_buffers = false;
};

/// Applies the options. Throws Error{usage} that lists the known names.
[[nodiscard]] Scenario scenario_of(const ScenarioOptions& options, const SimNetwork& network);

} // namespace reckon
