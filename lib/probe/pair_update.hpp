// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/profile.hpp"
#include "probe/flows.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace reckon {

/// A smaller change is within the normal variation of a link.
inline constexpr double k_least_change = 0.15;

/// For cells that the probe marked noisy: only more than twice, or less than half.
inline constexpr double k_least_of_noisy = 1;

/// The profile's writes from one rank to another: cells `pair_write`.
struct KnownPair {
  Flow flow;
  std::string from, to;                 ///< as the cells name them
  std::map<std::uint64_t, Cell> writes; ///< by size, those with a value
  /// Cell `pair_latency`; without one, the intercept of the line through the two shortest writes.
  double latency_s = 0;
  [[nodiscard]] double seconds(std::uint64_t bytes) const { return writes.at(bytes).p50; }
};

/// Times of writes as measured now, by size.
using PairTimes = std::map<std::uint64_t, std::vector<double>>;

/// The change of a pair's writes.
struct PairChange {
  std::string from, to;
  std::uint64_t bytes = 0; ///< size of the writes with these rates: the longest that show it
  double before_bytes_per_s = 0, after_bytes_per_s = 0;
};

/// The changes in a profile.
struct ProfileUpdate {
  std::vector<PairChange> pairs;
  std::vector<std::string> ports; ///< machines whose port_bandwidth followed
};

/// For each flow: `names` are the machines of the ranks. Throws Error{input} for a pair with fewer
/// than two sizes in the profile.
[[nodiscard]] std::vector<KnownPair> known_pairs(const Profile& profile,
                                                 const std::vector<std::string>& names,
                                                 const std::vector<Flow>& flows,
                                                 const std::string& transport);

/// New time / known time where they differ by more than k_least_change (k_least_of_noisy) and by
/// more than the samples vary: the new median lies outside the middle 90 % of the known samples and
/// three spreads off, and three of four new samples differ that much. Absent: no change.
[[nodiscard]] std::optional<double> change_of(const Cell& known, const std::vector<double>& now);

/// Puts the measurements into the profile: times[i] are those of pairs[i]. A pair without a change
/// at any size stays bit for bit. For a changed pair, the cells of the measured sizes get the new
/// samples; those of other sizes keep their own, scaled by the line through the measured changes,
/// within the range of their ratios and that of the time for a byte: a link whose latency or rate
/// changed has these times; its cells `pair_bandwidth` follow. Where the time per byte of all pairs
/// of a machine changed, its port did: it gets a cell port_bandwidth of its own, by the median of
/// their ratios.
[[nodiscard]] ProfileUpdate update_pairs(Profile& profile, const std::vector<KnownPair>& pairs,
                                         const std::vector<PairTimes>& times);

} // namespace reckon
