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

/// Median of the rates above 0; 0 if all are 0.
[[nodiscard]] double median_above_zero(std::vector<double> values);

/// Each pair's both directions, the first one forth and the second one back.
[[nodiscard]] std::vector<Flow> both_ways(const Pairing& pairs);

/// Bytes of a write at that rate: as long as in plans, if many of them fit into a window.
[[nodiscard]] std::uint64_t part_for(double bytes_per_s);

/// The common part of all steps of a cluster probe at rank 0: the ranks, the remaining time, and
/// flows that run and are verified.
class ClusterSteps {
public:
  static constexpr std::uint32_t k_window =
      4; ///< least number of writes in flight of a flow on a lane

  ClusterSteps(ClusterMember& member, const ClusterProbeOptions& options, int ranks,
               Seconds budget);

  [[nodiscard]] ClusterMember& member() const { return m_member; }
  [[nodiscard]] int ranks() const { return m_ranks; }
  [[nodiscard]] std::mt19937_64& random() { return m_random; }
  /// Length of the windows: 1 is cluster_budget()'s assumption.
  [[nodiscard]] double scale() const { return m_scale; }
  [[nodiscard]] Seconds budget() const { return m_budget; }
  [[nodiscard]] Seconds spent() const { return m_clock.now(); }
  /// Announces the next step. Throws ClusterInterrupted.
  void show(const std::string& what);
  /// The user's budget is kept; our own estimate may be off where racks are found.
  [[nodiscard]] bool over() const;
  /// Fits the remaining steps, `to_come` at scale 1, into the remaining time: shorter windows where
  /// time is short.
  void share_out(Seconds to_come);

  /// Opens a transport at all ranks; `rails`: on all rails.
  void use_transport(const std::string& transport, bool rails = false);
  [[nodiscard]] const std::string& transport() const { return m_transport; }
  /// The lanes in use: one a network port.
  std::vector<int> lanes{0};

  /// Latency of the longest way, without load: warm-ups and streams are multiples of it.
  Seconds round_trip{0};
  /// The number in flight with which a port reaches its rate (PairSteps::measure()).
  double flight_bytes = 0;
  /// Number of writes of `bytes` that make flight_bytes on all lanes and in `flows` flows together,
  /// which share a port: k_window, doubled as often as needed.
  [[nodiscard]] std::uint32_t in_flight(std::uint64_t bytes, std::size_t flows = 1) const;
  /// Calls `measure` with streams that warm up 2^`times` as long and have as many times more in
  /// flight.
  void doubled(int times, const std::function<void()>& measure);
  /// Long ways make every stream longer: the additional time beyond the budget's estimate, unless
  /// the user gave the budget.
  void allow_for_long_ways();

  /// Writes of `bytes`, or shorter ones where that many do not fit into a receiver's memory; times
  /// in seconds, the windows' at scale 1. On long ways both are longer: a new or idle connection
  /// doubles its traffic with each round trip.
  [[nodiscard]] FlowTask stream_task(std::vector<Flow> flows, std::uint64_t bytes, double warm_up,
                                     double window, int windows);
  [[nodiscard]] FlowRates stream(const FlowTask& task);
  /// `total` gets the arrivals at each rank: [rank][window].
  [[nodiscard]] FlowRates stream(const FlowTask& task, FlowRates& total);

private:
  ClusterMember& m_member;
  const ClusterProbeOptions& m_options;
  int m_ranks;
  Seconds m_budget;
  double m_scale;
  std::mt19937_64 m_random;
  RunClock m_clock;
  double m_warm_up = 1; ///< factor on warm-ups
  std::string m_transport;
};

/// Up to this size latency and processors dominate a write's time.
inline constexpr std::uint64_t k_short_write_bytes = 65536;

/// `flows`, disjoint, in groups that may be measured at once: all of them where writes are long;
/// for short ones no computer has more than half as many flows as processors.
[[nodiscard]] std::vector<std::vector<Flow>>
writes_at_once(const std::vector<Flow>& flows, std::uint64_t bytes, const ClusterMember& member);

/// `count` timed writes of `bytes` by each flow, which its receiver answers with 8 bytes. Before
/// them as many untimed writes as a rate limiter lets through after a pause, at most
/// `most_warm_up`. `first`: place in the source of the first one, so that data differ. A rank is in
/// one flow at most.
[[nodiscard]] FlowTask write_task(std::vector<Flow> flows, std::uint64_t bytes, std::uint64_t count,
                                  std::uint64_t most_warm_up, std::uint64_t first);

/// Seconds of the writes alone, from the post to the last byte, from the round trips of a
/// write_task at its sender: the answer takes `answer_s`, a latency. A write takes no less than its
/// short answer, so never less than half of both.
[[nodiscard]] std::vector<double> write_seconds(const std::vector<double>& round_trip_s,
                                                double answer_s);

/// By (from, to).
using PairSamples = std::map<std::pair<int, int>, std::vector<double>>;

/// Sizes of the writes of `pair_write`: 4 KiB to 16 MiB, each four times the one before.
inline constexpr std::uint64_t k_pair_write_sizes[] = {4096,    16384,   65536,   262144,
                                                       1048576, 4194304, 16777216};

/// The result for one size of one pair's writes.
struct PairWrite {
  std::vector<double> seconds; ///< of a write in that direction, from the post to its last byte
  std::string why_not;         ///< reason for missing seconds
};

/// The results for the pairs. Used at rank 0.
struct PairResults {
  double rate = 0;        ///< of a port, bytes per second
  std::uint64_t part = 0; ///< bytes of one write
  std::uint64_t pair_part =
      0; ///< bytes of one write of the pairs' cells: chosen before all rates were known
  /// By rank: the best rate that a machine reached twice with any other, a direction under the
  /// other's load (ports_seen_twice()).
  std::vector<double> port_seen;
  std::vector<RoundRates> rounds;
  PairSamples one_way, two_way;
  /// By pair, the lower rank first: half of a round trip, for either direction.
  PairSamples latency;
  /// By (from, to) and bytes; empty unless they were measured.
  std::map<std::pair<int, int>, std::map<std::uint64_t, PairWrite>> writes;
};

/// Measures pairs of machines of a cluster, all pairs of a round of disjoint ones at once.
class PairSteps {
public:
  explicit PairSteps(ClusterSteps& steps) : m_steps(steps) {}

  /// All pairs' latencies, and their approximate rates. A write should take some milliseconds: then
  /// a window holds many of them, and their number does not keep the processors busy.
  void calibrate();
  /// Rates both ways, with the number in flight that makes no pair faster (grow_until_steady()),
  /// and with that each way alone: everything except the writes.
  void measure();
  /// The time of one write by size, for each direction of each pair: after measure(). `each` is the
  /// approximate time for one direction of a round.
  void measure_writes(Seconds each);
  /// The time of measure_writes() for each direction of each round.
  [[nodiscard]] std::size_t write_steps() const;

  /// All pairs both ways at once; each pair's rate, and the samples of all together in the slower
  /// direction.
  [[nodiscard]] std::pair<RoundRates, std::vector<double>>
  measure_round(const Pairing& pairs, const std::string& step, std::uint64_t bytes, double window);

  PairResults found;

private:
  void measure_latency(const Pairing& pairs);
  /// Doubles the number in flight until no pair becomes faster, both ways at once; returns the
  /// rates with it.
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
  std::vector<int> rack_of; ///< by rank; all 0 without racks
  std::vector<BisectionResult> bisections;
  std::map<int, std::vector<double>> uplinks; ///< by rack, samples of the slower direction
  /// Reason to doubt the racks, and the remedy; empty where they are certain.
  std::string doubt;
};

/// Finds whether any half of a cluster can send to the other at full speed, and its racks if not.
/// After PairSteps::measure().
class RackSteps {
public:
  static constexpr double k_full_bisection = 0.95;

  RackSteps(ClusterSteps& steps, PairSteps& pairs);

  void measure();

  /// The traffic through the ports of several machines: the halves, and each rack's uplink.
  [[nodiscard]] std::vector<Passage> passages() const;
  /// Measures passages again that carried more than their ports, by rank: a rate that was reached
  /// only once does not count.
  void confirm(const std::vector<double>& port);

  /// Windows for flows that may share a thin link: they are slower than a port.
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
