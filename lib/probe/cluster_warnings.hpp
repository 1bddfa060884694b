// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "probe/cluster_member.hpp"
#include "probe/probe.hpp"

#include <string>

namespace reckon {

/// Adds warnings to the result of a cluster probe: no network between the ranks, machines that lack
/// rails, a bisection that is too narrow (`narrow`: in words; empty where it is not) with so many
/// `racks`, figures that contradict each other, and doubts of the racks.
void warn_of_cluster(ProbeResult& result, const ClusterMember& member,
                     const std::string& racks_doubt, const std::string& narrow, int racks);

} // namespace reckon
