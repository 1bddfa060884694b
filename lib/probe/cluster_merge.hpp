// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/profile.hpp"
#include "probe/cluster_member.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace reckon {

/// The results for one machine of a cluster at the end. Rates are samples in bytes per second,
/// times in seconds.
struct MemberResult {
  Profile own; ///< profile of one machine "m0": its tree and its own measurements without a network
  std::string transport;
  std::uint64_t part = 0; ///< bytes of one write
  int window = 0;         ///< writes in flight
  std::vector<int> peers; ///< machines at the other end of its port in that measurement
  std::vector<double> in_one_way, out_one_way, in_two_way, out_two_way;
  /// The rate that its port reached twice with one peer, where it did less with several and there
  /// was no time to measure again; else 0.
  double seen_twice = 0;
  struct SinglePort {
    std::string name;
    std::vector<double> samples;
  };
  std::vector<SinglePort> single_ports; ///< in the order of the lanes, if there are several
  double peers_bytes_per_s = 0;         ///< joint rate of the ports of all `peers`
  std::vector<double> latency;          ///< to all others
  struct WriteCurve {
    int peer = -1;
    std::map<std::uint64_t, std::vector<double>> seconds; ///< of a write, by size
    std::map<std::uint64_t, int> in_flight;               ///< writes, by size
  };
  WriteCurve curve;
  std::string rack;
};

/// A name for each rank's machine: its host's if all differ, else r0, r1, ...
[[nodiscard]] std::vector<std::string> member_ids(const std::vector<ClusterHost>& hosts);

/// Gives each result its machine's settings, with the errors counted up to now.
void read_settings(ClusterMember& member, std::vector<MemberResult>& results);

/// A port's rate in each direction while both are busy: the samples of both directions where they
/// agree to 3 %, else those of the slower one; seen_twice alone, if there is one.
[[nodiscard]] std::vector<double> port_samples(const MemberResult& member);

/// Consecutive machines in rank order are equal when their processors, memory and racks are, and
/// their ports differ by less than 3 %. Returns the first rank of each run of equal machines.
[[nodiscard]] std::vector<std::size_t> runs_of(const std::vector<MemberResult>& members);

/// Fills in profile.machines, "m0", "m1", ... for each run, so that machine i of all groups one
/// after another is rank i; a topology for each; and the group's cells for plans: port_bandwidth,
/// fabric_write_latency, fabric_write, reduce_sum and optimizer_step, from the samples of all of
/// its machines.
void merge_machines(Profile& profile, const std::vector<MemberResult>& members,
                    const std::vector<std::string>& ids);

/// A cell of these samples, at most 100 of them evenly spread; skipped with `why_not` without
/// samples; noisy when they vary.
[[nodiscard]] Cell cell_of(const CellKey& key, const std::vector<double>& samples,
                           const std::string& why_not);

} // namespace reckon
