// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "probe/rounds.hpp"

#include <functional>
#include <random>
#include <vector>

namespace reckon {

/// What a pair did while all pairs of its round were busy, in bytes per second of one direction.
struct PairRate {
  int a = 0, b = 0;
  double bytes_per_s = 0;
};
using RoundRates = std::vector<PairRate>;

/// Of a round and the same one again, in the same order, the better rate of each pair: disturbances
/// only slow down.
void keep_best(RoundRates& round, const RoundRates& again);

/// What each machine's port can do, by rank: the highest rate that it reached twice, or the only
/// one. What was reached once may have been the end of a pause, when all that had piled up comes at
/// once. 0 for machines of no round.
[[nodiscard]] std::vector<double> ports_seen_twice(const std::vector<RoundRates>& rounds,
                                                   int ranks);
/// Disjoint pairs to measure again: each has a machine that did with no other, and at no other
/// time, more than k_hindered of what it did there.
[[nodiscard]] Pairing seen_once(const std::vector<RoundRates>& rounds, int ranks);

/// Below this share of the slower of their ports two machines are in each other's way less than
/// something between them is.
inline constexpr double k_hindered = 0.85;
[[nodiscard]] bool hindered(const PairRate& pair, const std::vector<double>& port_bytes_per_s);
/// Of the slower of its two ports.
[[nodiscard]] double share_of_ports(const PairRate& pair,
                                    const std::vector<double>& port_bytes_per_s);
/// 0, 1, ... in the order of the racks' first machines.
[[nodiscard]] std::vector<int> numbered(const std::vector<int>& rack_of);

/// Which machines share a thin uplink: a rack number for each machine, 0, 1, ... in the order of
/// the racks' first machines; all 0 when no pair was hindered.
///
/// A hindered pair is in two racks. In a round with hindered pairs the uplinks are busy, so a pair
/// that is not hindered there needs none: it is in one rack (with three racks and more that is only
/// likely, so it counts less). What contradicts this evidence least is the answer (correlation
/// clustering, by moving single machines and merging racks until nothing improves). Rounds without
/// a hindered pair say nothing.
[[nodiscard]] std::vector<int> find_racks(const std::vector<RoundRates>& rounds,
                                          const std::vector<double>& port_bytes_per_s);

/// As many disjoint pairs as possible whose machines are in different racks, drawn from `random`.
[[nodiscard]] Pairing across_racks(const std::vector<int>& rack_of, std::mt19937_64& random);
/// Disjoint pairs in the same rack, as many as possible.
[[nodiscard]] Pairing within_racks(const std::vector<int>& rack_of, std::mt19937_64& random);
/// As many machines as possible of that rack, each with one of another rack, those taken from the
/// other racks in turn so that their uplinks carry as little as possible.
[[nodiscard]] Pairing out_of_rack(const std::vector<int>& rack_of, int rack);
/// The racks dealt to two sides, as equal in machines as a greedy choice makes them; each pair has
/// one machine of each side.
[[nodiscard]] Pairing rack_bisection(const std::vector<int>& rack_of);

/// What two halves can move in one direction when nothing but the machines' ports limits them.
[[nodiscard]] double full_bisection(const Pairing& pairs,
                                    const std::vector<double>& port_bytes_per_s);

/// What went through the ports of `pairs` together, bytes per second in one direction; a machine
/// paired with itself stands for its own port.
struct Passage {
  Pairing pairs;
  double bytes_per_s = 0;
};

/// Ranks whose ports are to be measured again, in order: those that did clearly less than the same
/// machine was `seen` to do, and those of a passage that carried more, beyond k_above_noise, than
/// its ports together can. `port` and `seen` are by rank, 0: not known.
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
/// the same two machines beside it, both as shares of what their ports can do: a thin uplink slows
/// down what crosses it together with others, busy machines are as slow with anybody. Two racks
/// whose pairs reach, in the median, k_hindered of what their machines do beside are one. Racks of
/// which no pair was checked stay as they are.
[[nodiscard]] std::vector<int> confirmed_racks(const std::vector<int>& rack_of,
                                               const std::vector<RackCheck>& checks,
                                               const std::vector<double>& port_bytes_per_s);

/// Measures disjoint pairs, all at once and both ways.
using MeasureRound = std::function<RoundRates(const Pairing&)>;

struct RackSearch {
  std::vector<int> rack_of; ///< as of find_racks()
  int looked_like = 1;      ///< racks, before confirmed_racks()
  bool settled = true; ///< false: the division went on changing, or there was no time for checks
};

/// Divides the machines of `rounds` and checks the division three times, from the beginning where
/// that changes it (of what goes on changing the fifth stands); then confirmed_racks(). Ends early
/// where there is one rack, or when it is `over`. `rounds` gets what was measured.
///
/// A machine alone in its rack has nobody beside it: two of them at most are measured with nothing
/// else under way, and meet another rack in each check.
[[nodiscard]] RackSearch search_racks(std::vector<RoundRates>& rounds,
                                      const std::vector<double>& port_bytes_per_s,
                                      std::mt19937_64& random, const MeasureRound& measure,
                                      const std::function<bool()>& over);

} // namespace reckon
