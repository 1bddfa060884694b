// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "probe/cluster_steps.hpp"
#include "probe/racks.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace reckon {

/// By (from, to).
using PairSamples = std::map<std::pair<int, int>, std::vector<double>>;

/// Sizes of the writes of `pair_write`: 4 KiB to 16 MiB, each four times the one before.
inline constexpr std::uint64_t k_pair_write_sizes[] = {4096,    16384,   65536,   262144,
                                                       1048576, 4194304, 16777216};

/// What became of one size of one pair's writes.
struct PairWrite {
  std::vector<double> seconds; ///< of a write in that direction, from the post to its last byte
  std::string why_not;         ///< when there are none
};

/// What two machines of a cluster do with each other, all pairs of a round of disjoint ones at
/// once. Used at rank 0.
class PairSteps {
public:
  explicit PairSteps(ClusterSteps& steps) : m_steps(steps) {}

  /// How fast is it, roughly? A write should take some milliseconds: then a window holds many of
  /// them, and their number does not keep the processors busy.
  void calibrate();
  /// Latency, and rates each way alone and both ways. Afterwards rate(), part() and port_seen() are
  /// known.
  void measure();
  /// The time of one write by size, for each direction of each pair: after measure(). `each` is
  /// about how long one direction of a round may take.
  void measure_writes(Seconds each);
  /// What measure_writes() may take for each direction of each round.
  [[nodiscard]] std::size_t write_steps() const;

  /// All pairs both ways at once; each pair's rate, and the samples of all together in one
  /// direction: of the slower one.
  [[nodiscard]] std::pair<RoundRates, std::vector<double>>
  measure_round(const Pairing& pairs, const std::string& step, std::uint64_t bytes, double window);

  [[nodiscard]] double rate() const { return m_rate; } ///< of a port, bytes per second
  [[nodiscard]] std::uint64_t part() const { return m_part; }
  /// Of the pairs' cells: chosen before all rates were known.
  [[nodiscard]] std::uint64_t pair_part() const { return m_pair_part; }
  /// By rank: the best that a machine was seen to do twice with any other, a direction under the
  /// other's load (ports_seen_twice()).
  [[nodiscard]] const std::vector<double>& port_seen() const { return m_port_seen; }
  [[nodiscard]] std::vector<RoundRates>& rounds() { return m_rounds; }
  [[nodiscard]] const PairSamples& one_way() const { return m_one_way; }
  [[nodiscard]] const PairSamples& two_way() const { return m_two_way; }
  /// By pair, the lower rank first: half of a round trip, which is as good as either direction.
  [[nodiscard]] const PairSamples& latency() const { return m_latency; }
  /// By (from, to) and bytes; empty unless they were measured.
  [[nodiscard]] const std::map<std::pair<int, int>, std::map<std::uint64_t, PairWrite>>&
  writes() const {
    return m_writes;
  }

private:
  void measure_latency(const Pairing& pairs);
  void confirm_ports();
  void confirm_rounds();
  void measure_direction(const std::vector<Flow>& flows, Seconds each);
  void write_at_once(const std::vector<Flow>& flows, std::uint64_t bytes, std::uint64_t count);
  [[nodiscard]] double latency_of(const Flow& flow) const;
  [[nodiscard]] double expected_seconds(const Flow& flow, std::uint64_t bytes) const;

  ClusterSteps& m_steps;
  double m_rate = 0;
  std::uint64_t m_part = 0, m_pair_part = 0;
  PairSamples m_one_way, m_two_way, m_latency;
  std::vector<RoundRates> m_rounds;
  std::vector<double> m_port_seen;
  std::map<std::pair<int, int>, std::map<std::uint64_t, PairWrite>> m_writes;
};

} // namespace reckon
