// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/cells.hpp"
#include "launch/rendezvous.hpp"
#include "probe/flows.hpp"
#include "probe/probe.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace reckon {

/// Up to this many machines, pair_write is measured by default: it takes the time of all their
/// pairs.
inline constexpr int k_few_machines = 8;

/// What is about to be measured.
struct ClusterList {
  std::vector<std::string> machines;
  std::string transport;
  /// By rail, the ports of the machines; empty without rails.
  std::vector<std::vector<std::string>> rails;
  Seconds estimate{0};
};

/// Rank 0's options count. Without a transport the best one that connects machines is measured.
struct ClusterProbeOptions : ProbeRequest {
  Seconds budget{0};                    ///< for the whole probe; 0: cluster_budget()
  std::uint64_t most_memory = 32 << 20; ///< to receive into; the same again to send from
  bool pair_writes = false;             ///< pair_write also for more than k_few_machines
  bool rails = false;                   ///< rail_bandwidth
  bool only_list = false;               ///< ends after `starting`
  Seconds limit{60};                    ///< a rank that is silent for longer has hung
  std::function<void(const ClusterList& list)> starting;
  MakeMover make = [](const std::string& transport) { return make_mover(transport); };
};

/// Whether pair_write is among the cases.
[[nodiscard]] bool measures_pair_writes(const ClusterProbeOptions& options, int ranks);
/// The default time of pair_write.
[[nodiscard]] Seconds pair_write_time(int ranks);

/// The default time of probing this many machines, with this many rails. Grows with their number,
/// not with that of their pairs.
[[nodiscard]] Seconds cluster_budget(int ranks, bool pair_writes, int rails);

/// Measures the machines of a job, one rank each; call it at every rank. Rank 0 decides the next
/// step and tells all ranks; each does its part and tells all its result. The result is complete at
/// rank 0 only.
///
/// Machine i of the profile's groups, one group after another, is rank i: equal machines are one
/// group only where their ranks follow each other. docs/measuring.md explains the cells.
///
/// Throws PeerError when another rank is the cause, Error otherwise; the others have then been
/// told. An interrupt at rank 0 ends the measuring for all, and the measurements until then are the
/// result.
[[nodiscard]] ProbeResult probe_cluster(Rendezvous& rendezvous, const ClusterProbeOptions& options);

} // namespace reckon
