// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "documents/profile.hpp"
#include "network/network.hpp"
#include "schedule/schedule.hpp"
#include "strategies/model.hpp"
#include "strategies/play.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace reckon {

/// The stations between the ranks of a plan that its writes pass. All planners play and bound their
/// plans on them.
struct Between {
  PlayNetwork network;
  std::vector<std::string> names; ///< by station: "w0 -> s1", "the port of rank 2"
  std::vector<std::string> sources{};
  /// What it keeps busy to add one more stream to the data of a rank, besides writes; by rank, or
  /// empty.
  std::vector<Uses> add{};
  /// All stations, in the order in which equally busy stations are named; empty: by number.
  std::vector<std::size_t> named_first{};
};

/// Whether measured pairs of the model's machines count: the profile has cells `pair_write`,
/// `pair_bandwidth` or `pair_latency` of the model's transport, no ports are made up, and no
/// machine has several ports. (A measured write between two machines passes one port, the lanes of
/// a plan use all.)
[[nodiscard]] bool knows_pairs(const Profile& profile, const CostModel& model,
                               const CostModel::WhatIf& what_if);

/// What lies between ranks that are machines: place.machine is the rank. Stations are called "w0
/// out" and "w0 -> s1" where pairs count (knows_pairs()), else "rank 3 out"; racks "rack r0 out".
/// Throws Error{input} as network_between_machines().
[[nodiscard]] Network network_between_ranks(const Profile& profile, const CostModel& model,
                                            const CostModel::WhatIf& what_if);

/// The stations of a network between these places.
[[nodiscard]] Between between_places(const Network& network, std::span<const std::size_t> places);

/// Removes the stations that no way passes.
[[nodiscard]] Between without_idle_stations(Between between);

/// The number of each rank's place, by rank, of network_between_ranks().
[[nodiscard]] std::vector<std::size_t> places_of_ranks(const Network& network);

/// The station that a schedule keeps busy longest: no iteration is shorter.
struct BusiestStation {
  std::size_t station = 0; ///< the one that is named first among equally busy stations
  double bytes = 0;
  double seconds = 0; ///< of the busiest station, exactly
};
[[nodiscard]] BusiestStation busiest_station(const Schedule& schedule, const Between& between);
/// The bytes that a schedule's writes and sums send through each station.
[[nodiscard]] std::vector<double> station_bytes(const Schedule& schedule, const Between& between);

/// "m0 out: 1 GiB at 50 GB/s", for Prediction::bound_by.
[[nodiscard]] std::string carried_text(const Between& between, std::size_t station, double bytes);

/// Raises the bound to the busiest station's time, and the times to the bound, where that is more;
/// says so in bound_by. Returns whether it raised the bound.
bool raise_bound(Prediction& prediction, const Schedule& schedule, const Between& between);

/// The same network with longer pieces of writes, so that `bytes`, all moved bytes, are at most
/// `most_pieces` pieces: for plays that only compare.
[[nodiscard]] PlayNetwork in_pieces(PlayNetwork network, double bytes, double most_pieces);

} // namespace reckon
