// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/profile.hpp"
#include "probe/cluster_member.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace reckon {

/// What is known of one machine of a cluster when all has been measured. Rates are samples in bytes
/// per second, times in seconds.
struct MemberResult {
  Profile own; ///< of one machine "m0": its tree and what it does without a network
  std::string transport;
  std::uint64_t part = 0; ///< bytes of one write
  int window = 0;         ///< writes in flight
  std::vector<int> peers; ///< machines at the other end of its port when that was measured
  std::vector<double> in_one_way, out_one_way, in_two_way, out_two_way;
  /// What its port did twice with one peer, where it did less with several and there was no time to
  /// measure that again; else 0.
  double seen_twice = 0;
  struct SinglePort {
    std::string name;
    std::vector<double> samples;
  };
  std::vector<SinglePort> single_ports; ///< in the order of the lanes, where there are several
  double peers_bytes_per_s = 0;         ///< what the ports of all `peers` can do together
  std::vector<double> latency;          ///< to all others
  struct WriteCurve {
    int peer = -1;
    std::map<std::uint64_t, std::vector<double>> seconds; ///< of a write, by size
    std::map<std::uint64_t, int> in_flight;               ///< writes, by size
  };
  WriteCurve curve;
  std::string rack;
};

/// A name for each rank's machine: its host's where all differ, else r0, r1, ...
[[nodiscard]] std::vector<std::string> member_ids(const std::vector<ClusterHost>& hosts);

/// What a port does in each direction while both are busy: the samples of both directions where
/// they agree to 3 %, else those of the slower one; seen_twice alone, where there is one.
[[nodiscard]] std::vector<double> port_samples(const MemberResult& member);

/// Machines that follow each other in rank order are equal when their processors, memory and racks
/// are, and their ports differ by less than 3 %. The first rank of each run of equal machines.
[[nodiscard]] std::vector<std::size_t> runs_of(const std::vector<MemberResult>& members);

/// Fills in profile.machines, "m0", "m1", ... a run each, so that machine i of all groups one after
/// another is rank i; a topology for each; and the cells that a plan asks for of a group:
/// port_bandwidth, fabric_write_latency, fabric_write, reduce_sum and optimizer_step, from the
/// samples of all of its machines.
void merge_machines(Profile& profile, const std::vector<MemberResult>& members,
                    const std::vector<std::string>& ids);

/// A cell of these samples, at most 100 of them evenly spread; skipped with `why_not` when there
/// are none; noisy when they vary.
[[nodiscard]] Cell cell_of(const CellKey& key, const std::vector<double>& samples,
                           const std::string& why_not);

} // namespace reckon
