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

/// Every client to every proxy and back, and which of these flows (by their numbers) are disjoint
/// and can be measured at once.
struct ClientFlows {
  std::vector<Flow> flows;
  std::vector<std::vector<std::size_t>> rounds;
};
[[nodiscard]] ClientFlows client_flows(const std::vector<int>& clients,
                                       const std::vector<int>& proxies);

/// Adds flows that are not there yet, in as many rounds more as keep them disjoint.
void add_flows(ClientFlows& to, const std::vector<Flow>& more);

/// Which sizes of writes tell a pair's latency and rate within `time` for all rounds: the shortest
/// that all pairs have, and the longest that fits in. `rounds` are numbers of `pairs`.
[[nodiscard]] std::vector<std::uint64_t>
reprofile_sizes(const std::vector<KnownPair>& pairs,
                const std::vector<std::vector<std::size_t>>& rounds, Seconds time);

/// Measures between the iterations of a job how long writes between some of its ranks take, by the
/// steps of `pair_write`. Made once, at every rank, with lanes and memory of its own, so that
/// nothing has to be connected in a pause.
///
/// Everything throws PeerError when another rank is the cause.
class PairProbe {
public:
  struct Options {
    std::string transport;
    Seconds limit{60};                ///< of a step, beyond what it should take
    std::vector<std::uint64_t> sizes; ///< of the writes: reprofile_sizes()
    MakeMover make = [](const std::string& name) { return make_mover(name); };
  };
  PairProbe(Rendezvous& rendezvous, const Options& options);

  /// Rank 0, while the others serve(): times of writes of each pair, in the order of `pairs`. Pairs
  /// that seem to have changed (change_of()) are measured twice: what does not show the second time
  /// was a disturbance. `rounds`: disjoint pairs, by their numbers.
  [[nodiscard]] std::vector<PairTimes> measure(const std::vector<KnownPair>& pairs,
                                               std::vector<std::vector<std::size_t>> rounds);
  /// Rank 0: the pause is over.
  void end() { m_member.end(); }
  /// The other ranks: does what rank 0 says until it ends the pause.
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
