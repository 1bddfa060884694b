// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/stations.hpp"
#include "documents/profile.hpp"
#include "network/rate.hpp"
#include "stats/curve.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// The machine of each rank by the name that cells of pairs have for it: `machines` are ids of
/// MachineGroups as a plan's ranks name them, or of members. The k-th rank on a group with members
/// is on member k of it; a group without is named itself. Throws Error{input} when the profile
/// lacks a machine, or a group has fewer members than ranks.
[[nodiscard]] std::vector<std::string> pair_names(const Profile& profile,
                                                  const std::vector<std::string>& machines);

/// Time of one write from `from` to `to` (names of pair_names()) by size, from the post to its last
/// byte: from cells `pair_write`, else `pair_latency_by_size`, else from `pair_latency` and
/// `pair_bandwidth` (one_way, unless two_way of the same size is more) as latency + bytes / rate at
/// 4 KiB to 16 MiB. lo and hi are the fastest sample and the slow tail. `transport` "" takes the
/// first in the cells. nullopt where the profile has no such cells; `source` gets the cells' names.
[[nodiscard]] std::optional<Curve> pair_curve(const CellIndex& index, const std::string& from,
                                              const std::string& to, std::string_view transport,
                                              std::string* source = nullptr);

/// Seconds of an empty write from `from` to `to`: cell `pair_latency` (of either direction),
/// otherwise the intercept of the first two points of the pair's curve, not below 0; nullopt
/// without both.
[[nodiscard]] std::optional<double> pair_latency(const CellIndex& index, const std::string& from,
                                                 const std::string& to, std::string_view transport);

/// The profile's measurements of the way from one end of a pair to the other: of machines by the
/// names of pair_names(), or of places of one machine by their topology ids.
struct PairWay {
  std::string source; ///< the case of the rate; empty: unknown rate
  Rate rate;          ///< for long writes; infinite where more bytes take no longer
  /// How long a write occupies the way, by its size; empty: the rate counts.
  BusyCurve busy;
  /// Seconds of an empty write; nullopt: unknown.
  std::optional<double> latency_s;
  [[nodiscard]] bool measured() const { return !source.empty(); }
  /// Whether writes of some size are slower here than at that rate, so that the way limits them.
  [[nodiscard]] bool slower_than(double bytes_per_s) const;
};

/// From the pair's curve (pair_curve()): each time less the latency, but with several writes in
/// flight at most the time at a cell `pair_bandwidth` (as pair_curve() takes them). Where these
/// cells, with those of `pair_bandwidth_by_size`, have several sizes, they count (busy_curve()).
/// Without a curve the rate is that of a `pair_bandwidth` cell that is not two_way, or of several
/// sizes as with one. `transport` as for pair_curve().
[[nodiscard]] PairWay pair_way(const CellIndex& index, const std::string& from,
                               const std::string& to, std::string_view transport);

} // namespace reckon
