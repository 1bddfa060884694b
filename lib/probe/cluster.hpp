// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "launch/rendezvous.hpp"
#include "probe/fabric_rank.hpp"
#include "probe/probe.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace reckon {

inline constexpr const char* k_port_bandwidth = "port_bandwidth";
inline constexpr const char* k_single_port = "single_port_bandwidth";
inline constexpr const char* k_pair_latency = "pair_latency";
inline constexpr const char* k_pair_bandwidth = "pair_bandwidth";
inline constexpr const char* k_pair_write = "pair_write";
inline constexpr const char* k_fan_in = "fan_in_bandwidth";
inline constexpr const char* k_fan_out = "fan_out_bandwidth";
inline constexpr const char* k_bisection_by_order = "bisection_by_order";
inline constexpr const char* k_bisection_random = "bisection_random";
inline constexpr const char* k_bisection_by_racks = "bisection_by_racks";
inline constexpr const char* k_uplink = "uplink_bandwidth";

/// Up to so many machines, pair_write is measured unasked: it takes the time of all their pairs.
inline constexpr int k_few_machines = 8;

struct ClusterProbeOptions {
  Seconds budget{0};                    ///< for everything; 0: cluster_budget()
  std::vector<std::string> transports;  ///< empty: the best that crosses machines
  std::uint64_t seed = 1;               ///< rank 0's counts
  std::uint64_t most_memory = 32 << 20; ///< to receive into, and as much to send from
  bool pair_writes = false;             ///< pair_write also of more than k_few_machines
  std::string name;                     ///< of the profile; empty: made from the hosts' names
  std::string flags;                    ///< the command line, for the profile's context
  Seconds limit{60};                    ///< a rank that answers nothing for longer has hung
  std::function<bool()> interrupted;
  std::function<void(double done, std::string_view what, Seconds left)> progress;
  std::function<void(int ranks, Seconds estimate)> starting;
  MakeMover make = [](const std::string& transport) { return make_mover(transport); };
};

/// Whether pair_write is among the cases.
[[nodiscard]] bool measures_pair_writes(const ClusterProbeOptions& options, int ranks);
/// What pair_write takes when nobody says otherwise.
[[nodiscard]] Seconds pair_write_time(int ranks);

/// What probing that many machines takes when nobody says otherwise. Grows with their number, not
/// with that of their pairs.
[[nodiscard]] Seconds cluster_budget(int ranks, bool pair_writes);

/// The things that a cluster probe measures.
[[nodiscard]] std::vector<ProbeCase> cluster_probe_cases();

/// Measures the machines of a job, one rank each; to be called at every rank. Rank 0 decides what
/// comes next and tells everybody; each does its part and tells everybody what came of it. The
/// result is complete at rank 0 only.
///
/// Machine i of the profile's groups, one group after another, is rank i: equal machines are one
/// group only where their ranks follow each other. docs/measuring.md says what the cells mean.
///
/// Throws PeerError when another rank is the cause, Error otherwise; the others have then been
/// told. An interrupt at rank 0 ends the measuring for all, and what was measured is the result.
[[nodiscard]] ProbeResult probe_cluster(Rendezvous& rendezvous, const ClusterProbeOptions& options);

} // namespace reckon
