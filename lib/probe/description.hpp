// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "discover/environment.hpp"
#include "probe/probe.hpp"
#include "topology/topology.hpp"

#include <string>

namespace reckon {

/// "2026-01-31T12:00:00Z".
[[nodiscard]] std::string utc_now();

/// The machine `id` of a tree that has no other: its cores and memory.
[[nodiscard]] MachineGroup machine_group(const Topology& topology, const std::string& id,
                                         const std::string& name);

/// Puts the machine "m0", its tree, its fingerprint and the facts about it into the profile.
void describe_machine(Profile& profile, Topology topology, const Environment& environment);

/// Completes what was measured: the source, the fits, the cells by key, what the context says of
/// every probe, and the number of broken cells.
void describe_probe(ProbeResult& result, const ProbeRequest& request, Seconds budget, Seconds took);

} // namespace reckon
