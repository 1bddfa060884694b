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

/// What lies between the ranks of a plan, as stations that its writes pass: all planners play their
/// plans on it and bound them by it.
struct Between {
  PlayNetwork network;
  std::vector<std::string> names; ///< by station: "w0 -> s1", "the port of rank 2"
  std::vector<std::string> sources{};
  /// By rank, or empty: what adding one more stream to what is there keeps busy besides writes.
  std::vector<Uses> add{};
  /// All stations, in the order in which those that are equally busy are named; empty: as numbered.
  std::vector<std::size_t> named_first{};
};

/// Whether what counts between the model's machines is what was measured of their pairs: the
/// profile has cells `pair_write`, `pair_bandwidth` or `pair_latency` of the model's transport, no
/// ports are made up, and no machine has several: one write between two of them, which is what was
/// measured, passes one port, and the lanes of a plan use all.
[[nodiscard]] bool knows_pairs(const Profile& profile, const CostModel& model,
                               const CostModel::WhatIf& what_if);

/// What lies between ranks that are machines: place.machine is the rank. Stations are called "w0
/// out" and "w0 -> s1" where pairs count (knows_pairs()), else "rank 3 out"; racks "rack r0 out".
/// Throws Error{input} as network_between_machines().
[[nodiscard]] Network network_between_ranks(const Profile& profile, const CostModel& model,
                                            const CostModel::WhatIf& what_if);

/// The stations of a network between these places.
[[nodiscard]] Between between_places(const Network& network, std::span<const std::size_t> places);

/// Without the stations that no way passes.
[[nodiscard]] Between without_idle_stations(Between between);

/// Of network_between_ranks(): by rank the number of its place.
[[nodiscard]] std::vector<std::size_t> places_of_ranks(const Network& network);

/// The station that a schedule keeps busy longest: no iteration is shorter.
struct BusiestStation {
  std::size_t station = 0; ///< of those that are equally busy the one that is named first
  double bytes = 0, bytes_per_s = 1;
  double seconds = 0; ///< of the busiest, exactly
};
[[nodiscard]] BusiestStation busiest_station(const Schedule& schedule, const Between& between);
/// What a schedule's writes and sums have pass each station.
[[nodiscard]] std::vector<double> station_bytes(const Schedule& schedule, const Between& between);

/// Raises the bound, and the times that would be below it, to what the busiest station needs, where
/// that is more; says so in bound_by. Returns whether it was.
bool raise_bound(Prediction& prediction, const Schedule& schedule, const Between& between);

/// The same network with the writes in pieces so long that `bytes`, all that is moved, are at most
/// `most_pieces`: for plays that only compare.
[[nodiscard]] PlayNetwork in_pieces(PlayNetwork network, double bytes, double most_pieces);

} // namespace reckon
