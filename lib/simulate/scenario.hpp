// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/stations.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace reckon {

/// What is different from what the plan was made for.
struct Scenario {
  struct Background {
    std::uint32_t from = 0, to = 0; ///< ranks
    double bytes_per_s = 0, start_s = 0;
  };
  std::vector<std::pair<std::uint32_t, double>> slow_stations; ///< and what their rate times
  std::vector<std::pair<std::uint32_t, double>> stragglers;    ///< ranks, and what their ops take
  std::vector<Background> backgrounds;
  std::vector<std::string> texts; ///< each in words
};

struct SimNetwork;

/// A rank's port: the first and last stations of all ways from and to it.
[[nodiscard]] std::vector<std::uint32_t> port_of(const StationNetwork& network, std::uint32_t rank);

/// What the options ask for:
/// - `slow`: "link=NAME:FACTOR" or "rank=NUMBER:FACTOR" (both ways of its port): FACTOR of its
/// rate;
/// - `stragglers`: "rank=NUMBER:FACTOR" (or "NUMBER=FACTORx"): its ops and passes take FACTOR times
///   as long;
/// - `backgrounds`: "FROM->TO:RATE" between two ranks, with "@SECONDS" when it begins later.
/// Throws Error{usage} that shows what there is.
[[nodiscard]] Scenario scenario_of(const std::vector<std::string>& slow,
                                   const std::vector<std::string>& stragglers,
                                   const std::vector<std::string>& backgrounds,
                                   const SimNetwork& network);

} // namespace reckon
