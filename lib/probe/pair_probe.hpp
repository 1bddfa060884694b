// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "launch/rendezvous.hpp"
#include "probe/cluster.hpp"
#include "probe/cluster_member.hpp"
#include "probe/pair_update.hpp"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace reckon {

/// Every client to every proxy and back, and rounds of these flows (by their numbers) that are
/// disjoint and can be measured at once.
struct ClientFlows {
  std::vector<Flow> flows;
  std::vector<std::vector<std::size_t>> rounds;
};
[[nodiscard]] ClientFlows client_flows(const std::vector<int>& clients,
                                       const std::vector<int>& proxies);

/// Adds missing flows, in as many more rounds as keep them disjoint.
void add_flows(ClientFlows& to, const std::vector<Flow>& more);

/// The sizes of writes that tell a pair's latency and rate within `time` for all rounds: the
/// shortest that all pairs have, and the longest that fits in. `rounds` are numbers of `pairs`.
[[nodiscard]] std::vector<std::uint64_t>
reprofile_sizes(const std::vector<KnownPair>& pairs,
                const std::vector<std::vector<std::size_t>>& rounds, Seconds time);

/// Measures the writes between some ranks of a job between its iterations, by the steps of
/// `pair_write`. Made once, at every rank, with lanes and memory of its own, so that a pause needs
/// no connections.
///
/// All functions throw PeerError when another rank is the cause.
class PairProbe {
public:
  struct Options {
    std::string transport;
    Seconds limit{60};                ///< limit of a step, beyond its normal time
    std::vector<std::uint64_t> sizes; ///< sizes of the writes: reprofile_sizes()
    MakeMover make = [](const std::string& name) { return make_mover(name); };
  };
  PairProbe(Rendezvous& rendezvous, const Options& options);

  /// Rank 0, while the others serve(): times of writes of each pair, in the order of `pairs`. Pairs
  /// that seem to have changed (change_of()) are measured twice: a change that does not show the
  /// second time was a disturbance. `rounds`: disjoint pairs, by their numbers.
  [[nodiscard]] std::vector<PairTimes> measure(const std::vector<KnownPair>& pairs,
                                               std::vector<std::vector<std::size_t>> rounds);
  /// Rank 0: the pause is over.
  void end() { m_member.end(); }
  /// The other ranks: follows rank 0's instructions until it ends the pause.
  void serve() { m_member.serve(); }

private:
  using Round = std::vector<std::size_t>; ///< numbers of disjoint pairs
  void measure_rounds(const std::vector<KnownPair>& pairs, const std::vector<Round>& rounds,
                      std::vector<PairTimes>& times);

  ClusterProbeOptions m_options; ///< m_member has a reference to it
  ClusterMember m_member;
  std::vector<std::uint64_t> m_sizes;
  std::mt19937_64 m_random{1};
};

} // namespace reckon
