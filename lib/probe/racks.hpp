// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "probe/rounds.hpp"

#include <functional>
#include <random>
#include <vector>

namespace reckon {

/// A pair's rate while all pairs of its round were busy, in bytes per second of one direction.
struct PairRate {
  int a = 0, b = 0;
  double bytes_per_s = 0;
};
using RoundRates = std::vector<PairRate>;

/// Of a round and its repetition, in the same order, the better rate of each pair: disturbances
/// only slow down.
void keep_best(RoundRates& round, const RoundRates& again);

/// Each machine's port rate, by rank: the highest rate that it reached twice, or the only one. A
/// rate reached once may follow a pause, when piled-up data come at once. 0 for machines without a
/// round.
[[nodiscard]] std::vector<double> ports_seen_twice(const std::vector<RoundRates>& rounds,
                                                   int ranks);
/// Disjoint pairs to measure again: in each, a machine reached k_hindered of that rate with no
/// other peer and at no other time.
[[nodiscard]] Pairing seen_once(const std::vector<RoundRates>& rounds, int ranks);

/// Below this share of the slower of their ports a thin link between two machines explains the rate
/// better than the machines do.
inline constexpr double k_hindered = 0.85;
[[nodiscard]] bool hindered(const PairRate& pair, const std::vector<double>& port_bytes_per_s);
/// Rate of the slower of its two ports.
[[nodiscard]] double share_of_ports(const PairRate& pair,
                                    const std::vector<double>& port_bytes_per_s);
/// 0, 1, ... in the order of the racks' first machines.
[[nodiscard]] std::vector<int> numbered(const std::vector<int>& rack_of);

/// The machines that share a thin uplink: a rack number for each machine, 0, 1, ... in the order of
/// the racks' first machines; all 0 when no pair was hindered.
///
/// A hindered pair is in two racks. In a round with hindered pairs the uplinks are busy, so an
/// unhindered pair there needs no uplink: it is in one rack (with three racks and more that is only
/// likely, so it counts less). The answer is the division that contradicts this evidence least
/// (correlation clustering, by moving single machines and merging racks until nothing improves).
/// Rounds without a hindered pair give no evidence.
[[nodiscard]] std::vector<int> find_racks(const std::vector<RoundRates>& rounds,
                                          const std::vector<double>& port_bytes_per_s);

/// As many disjoint pairs as possible whose machines are in different racks, drawn from `random`.
[[nodiscard]] Pairing across_racks(const std::vector<int>& rack_of, std::mt19937_64& random);
/// Disjoint pairs in the same rack, as many as possible.
[[nodiscard]] Pairing within_racks(const std::vector<int>& rack_of, std::mt19937_64& random);
/// As many machines as possible of that rack, each with one of another rack, taken from the other
/// racks in turn so that their uplinks carry as little as possible.
[[nodiscard]] Pairing out_of_rack(const std::vector<int>& rack_of, int rack);
/// The racks dealt to two sides, as equal in machines as a greedy choice makes them; each pair has
/// one machine of each side.
[[nodiscard]] Pairing rack_bisection(const std::vector<int>& rack_of);

/// The joint rate of two halves in one direction when only the machines' ports limit them.
[[nodiscard]] double full_bisection(const Pairing& pairs,
                                    const std::vector<double>& port_bytes_per_s);

/// The traffic through the ports of `pairs` together, bytes per second in one direction; a machine
/// paired with itself stands for its own port.
struct Passage {
  Pairing pairs;
  double bytes_per_s = 0;
};

/// Ranks whose ports must be measured again, in order: those clearly below the rate that the same
/// machine was `seen` to reach, and those of a passage that carried more, beyond k_above_noise,
/// than its ports together can. `port` and `seen` are by rank, 0: unknown.
[[nodiscard]] std::vector<int> doubtful_ports(const std::vector<double>& port,
                                              const std::vector<double>& seen,
                                              const std::vector<Passage>& passages);

/// One look at a division into racks.
struct RackCheck {
  RoundRates across; ///< pairs of different racks, all at once
  RoundRates beside; ///< right after: pairs with no other's uplink traffic in their way, which are
                     ///< those within racks, and pairs across that were measured alone
};

/// `rack_of` without the borders that do not show in the checks. Each pair across is compared with
/// the same two machines beside it, both as fractions of their ports' rates: a thin uplink slows
/// simultaneous traffic across it, busy machines are as slow with any peer. Two racks whose pairs
/// reach, in the median, k_hindered of their machines' rates beside are one. Racks without a
/// checked pair stay.
[[nodiscard]] std::vector<int> confirmed_racks(const std::vector<int>& rack_of,
                                               const std::vector<RackCheck>& checks,
                                               const std::vector<double>& port_bytes_per_s);

/// Measures disjoint pairs, all at once and both ways.
using MeasureRound = std::function<RoundRates(const Pairing&)>;

struct RackSearch {
  std::vector<int> rack_of; ///< as of find_racks()
  int looked_like = 1;      ///< racks, before confirmed_racks()
  bool settled = true;      ///< false: the division kept changing, or there was no time for checks
};

/// Divides the machines of `rounds` and checks the division three times, from the beginning where
/// that changes it (of a division that keeps changing the fifth stands); then confirmed_racks().
/// Ends early with one rack, or when it is `over`. `rounds` gets the measurements.
///
/// A machine alone in its rack has no neighbour: two of these at most are measured without other
/// traffic, and meet another rack in each check.
[[nodiscard]] RackSearch search_racks(std::vector<RoundRates>& rounds,
                                      const std::vector<double>& port_bytes_per_s,
                                      std::mt19937_64& random, const MeasureRound& measure,
                                      const std::function<bool()>& over);

} // namespace reckon
