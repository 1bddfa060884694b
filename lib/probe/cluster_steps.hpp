// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "probe/cluster.hpp"
#include "probe/cluster_member.hpp"
#include "probe/flows.hpp"
#include "probe/racks.hpp"
#include "probe/rounds.hpp"
#include "probe/sampling.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace reckon {

/// Ends a cluster probe between two of its steps.
class ClusterInterrupted : public std::runtime_error {
public:
  ClusterInterrupted() : std::runtime_error("interrupted") {}
};

/// Rates of a task's flows in bytes per second: [flow][window], in the task's order.
using FlowRates = std::vector<std::vector<double>>;

/// Of those above 0; 0 when there are none.
[[nodiscard]] double median_above_zero(std::vector<double> values);

/// Each pair's both directions, the first one forth and the second one back.
[[nodiscard]] std::vector<Flow> both_ways(const Pairing& pairs);

/// Bytes of a write at that rate: as long as plans have them, as long as many of them fit into a
/// window.
[[nodiscard]] std::uint64_t part_for(double bytes_per_s);

/// What every step of a cluster probe needs at rank 0: the ranks, the time that is left, and flows
/// that run and are verified.
class ClusterSteps {
public:
  static constexpr std::uint32_t k_window = 4; ///< writes in flight of a flow on a lane, at least

  ClusterSteps(ClusterMember& member, const ClusterProbeOptions& options, int ranks,
               Seconds budget);

  [[nodiscard]] ClusterMember& member() const { return m_member; }
  [[nodiscard]] int ranks() const { return m_ranks; }
  [[nodiscard]] std::mt19937_64& random() { return m_random; }
  /// How long windows are: 1 is what cluster_budget() counts with.
  [[nodiscard]] double scale() const { return m_scale; }
  [[nodiscard]] Seconds budget() const { return m_budget; }
  [[nodiscard]] Seconds spent() const { return m_clock.now(); }
  /// Says what comes next. Throws ClusterInterrupted.
  void show(const std::string& what);
  /// A budget that the user gave is kept; our own estimate may be off where racks are found.
  [[nodiscard]] bool over() const;
  /// What is left has to do for what is to come, `to_come` at scale 1: shorter windows where time
  /// is short.
  void share_out(Seconds to_come);

  /// Opens a transport at all ranks.
  void use_transport(const std::string& transport);
  [[nodiscard]] const std::string& transport() const { return m_transport; }
  /// The lanes that take part: one a network port.
  std::vector<int> lanes{0};

  /// Of the longest way, without load: what a stream warms up for and lasts is counted in it.
  Seconds round_trip{0};
  /// What a port needs in flight so that more of it brings no more (PairSteps::measure()).
  double flight_bytes = 0;
  /// Writes of `bytes` that are flight_bytes on all lanes and in `flows` flows together, which
  /// share a port: k_window, doubled as often as it takes.
  [[nodiscard]] std::uint32_t in_flight(std::uint64_t bytes, std::size_t flows = 1) const;
  /// Calls `measure` with streams that warm up 2^`times` as long and have as many times more in
  /// flight.
  void doubled(int times, const std::function<void()>& measure);
  /// Long ways make every stream longer: what the budget was reckoned without, unless the user gave
  /// it.
  void allow_for_long_ways();

  /// Writes of `bytes`, or shorter ones where that many do not fit into a receiver's memory; times
  /// in seconds, the windows' at scale 1. On long ways both are longer: a connection that begins,
  /// or was idle, doubles what it has under way with each round trip.
  [[nodiscard]] FlowTask stream_task(std::vector<Flow> flows, std::uint64_t bytes, double warm_up,
                                     double window, int windows);
  [[nodiscard]] FlowRates stream(const FlowTask& task);
  /// `total` gets what arrived at each rank: [rank][window].
  [[nodiscard]] FlowRates stream(const FlowTask& task, FlowRates& total);

private:
  ClusterMember& m_member;
  const ClusterProbeOptions& m_options;
  int m_ranks;
  Seconds m_budget;
  double m_scale;
  std::mt19937_64 m_random;
  RunClock m_clock;
  double m_warm_up = 1; ///< warm-ups are so many times as long
  std::string m_transport;
};

/// Up to here the latency and the processors are in a write's time.
inline constexpr std::uint64_t k_short_write_bytes = 65536;

/// `flows`, disjoint, in groups that may be measured at once: all of them where writes are long; of
/// short ones no computer has more than half as many as processors.
[[nodiscard]] std::vector<std::vector<Flow>>
writes_at_once(const std::vector<Flow>& flows, std::uint64_t bytes, const ClusterMember& member);

/// `count` timed writes of `bytes` by each flow, which its receiver answers with 8 bytes. Before
/// them so many that what a rate limiter lets through after a pause is past, but not more than
/// `most_warm_up`. `first`: place in the source of the first one, so that data differ. A rank is in
/// one flow at most.
[[nodiscard]] FlowTask write_task(std::vector<Flow> flows, std::uint64_t bytes, std::uint64_t count,
                                  std::uint64_t most_warm_up, std::uint64_t first);

/// Seconds of the writes alone, from the post to the last byte, out of the round trips of a
/// write_task at its sender: the answer takes `answer_s`, a latency. A write takes no less than its
/// short answer, so never less than half of both.
[[nodiscard]] std::vector<double> write_seconds(const std::vector<double>& round_trip_s,
                                                double answer_s);

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

/// What is known of the pairs. Used at rank 0.
struct PairResults {
  double rate = 0;             ///< of a port, bytes per second
  std::uint64_t part = 0;      ///< bytes of one write
  std::uint64_t pair_part = 0; ///< the same of the pairs' cells: chosen before all rates were known
  /// By rank: the best that a machine was seen to do twice with any other, a direction under the
  /// other's load (ports_seen_twice()).
  std::vector<double> port_seen;
  std::vector<RoundRates> rounds;
  PairSamples one_way, two_way;
  /// By pair, the lower rank first: half of a round trip, which is as good as either direction.
  PairSamples latency;
  /// By (from, to) and bytes; empty unless they were measured.
  std::map<std::pair<int, int>, std::map<std::uint64_t, PairWrite>> writes;
};

/// Measures what two machines of a cluster do with each other, all pairs of a round of disjoint
/// ones at once.
class PairSteps {
public:
  explicit PairSteps(ClusterSteps& steps) : m_steps(steps) {}

  /// All pairs' latencies, and roughly how fast they are. A write should take some milliseconds:
  /// then a window holds many of them, and their number does not keep the processors busy.
  void calibrate();
  /// Rates both ways, with as much in flight as makes no pair faster (grow_until_steady()), and
  /// with that each way alone: all that is found but for the writes.
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

  PairResults found;

private:
  void measure_latency(const Pairing& pairs);
  /// Doubles what is in flight until no pair becomes faster, both ways at once; the rates with
  /// that.
  FlowRates grow(const Pairing& pairs, FlowTask& task);
  void confirm_ports();
  void confirm_rounds();
  void measure_direction(const std::vector<Flow>& flows, Seconds each);
  void write_at_once(const std::vector<Flow>& flows, std::uint64_t bytes, std::uint64_t count);
  [[nodiscard]] double latency_of(const Flow& flow) const;
  [[nodiscard]] double expected_seconds(const Flow& flow, std::uint64_t bytes) const;

  ClusterSteps& m_steps;
};

/// Halves of the machines that sent to each other.
struct BisectionResult {
  std::string test;
  Pairing pairs;
  std::vector<double> samples; ///< of all pairs together, in the slower direction
};

struct RackResults {
  std::vector<int> rack_of; ///< by rank; all 0 where there are no racks
  std::vector<BisectionResult> bisections;
  std::map<int, std::vector<double>> uplinks; ///< by rack, samples of the slower direction
  /// Why the racks may be others, and what to do about it; empty where they are certain.
  std::string doubt;
};

/// Finds whether any half of a cluster can send to the other at full speed, and where its racks are
/// when it cannot. After PairSteps::measure().
class RackSteps {
public:
  static constexpr double k_full_bisection = 0.95;

  RackSteps(ClusterSteps& steps, PairSteps& pairs);

  void measure();

  /// What went through the ports of several machines: the halves, and each rack's uplink.
  [[nodiscard]] std::vector<Passage> passages() const;
  /// Measures again what is more than its ports carry, by rank: what was fast only once does not
  /// count.
  void confirm(const std::vector<double>& port);

  /// Of flows that may have to share something thin: they are slower than a port.
  [[nodiscard]] std::uint64_t part() const;
  [[nodiscard]] int count() const; ///< of racks

  RackResults found;

private:
  void note_bisection(const char* test, const Pairing& pairs, const std::string& step);
  [[nodiscard]] double share_of(const BisectionResult& bisection) const;
  void find();
  void measure_uplinks();
  [[nodiscard]] std::vector<double> uplink_samples(int rack);
  [[nodiscard]] Pairing ports_of_rack(int rack) const;

  ClusterSteps& m_steps;
  PairSteps& m_pairs;
};

} // namespace reckon
