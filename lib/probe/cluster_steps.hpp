// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "probe/cluster.hpp"
#include "probe/cluster_member.hpp"
#include "probe/rounds.hpp"
#include "probe/sampling.hpp"

#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
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
  static constexpr std::uint32_t k_window = 4; ///< writes in flight of a flow on a lane

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

  /// Writes of `bytes`, or shorter ones where that many do not fit into a receiver's memory; times
  /// in seconds, the windows' at scale 1.
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
  std::string m_transport;
};

} // namespace reckon
