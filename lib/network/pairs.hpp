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
/// first that the cells have.
/// nullopt where the profile has none of them; `source` gets the cells' names.
[[nodiscard]] std::optional<Curve> pair_curve(const Profile& profile, const std::string& from,
                                              const std::string& to, std::string_view transport,
                                              std::string* source = nullptr);

/// Seconds of an empty write from `from` to `to`: cell `pair_latency` (of either direction),
/// otherwise where the first two points of the pair's curve come from, not below 0; nullopt without
/// both.
[[nodiscard]] std::optional<double> pair_latency(const Profile& profile, const std::string& from,
                                                 const std::string& to, std::string_view transport);

/// What the profile says of the way from one end of a pair to the other by itself: of machines by
/// the names of pair_names(), or of places of one machine by their topology ids.
struct PairWay {
  std::string source; ///< the case that the rate is of; empty: no rate is known
  Rate rate;          ///< of long writes; infinite where more bytes take no longer
  /// How long a write keeps the way from other writes, by its size; empty: the rate counts.
  BusyCurve busy;
  /// Seconds of an empty write; nullopt where nothing says it.
  std::optional<double> latency_s;
  [[nodiscard]] bool measured() const { return !source.empty(); }
  /// Whether writes of some size are slower here than at that rate, so that the way limits them.
  [[nodiscard]] bool slower_than(double bytes_per_s) const;
};

/// From the pair's curve (pair_curve()): of each time what is not latency, but with several writes
/// in flight no more than a cell `pair_bandwidth` has for each (as pair_curve() takes them); where
/// such cells, with those of `pair_bandwidth_by_size`, are of several sizes, what they have
/// (busy_curve()). Without a curve the rate is that of a `pair_bandwidth` cell that is not two_way,
/// or of several sizes as with one. `transport` as for pair_curve().
[[nodiscard]] PairWay pair_way(const Profile& profile, const std::string& from,
                               const std::string& to, std::string_view transport);

} // namespace reckon
