// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "discover/environment.hpp"
#include "documents/profile.hpp"
#include "probe/probe.hpp"
#include "topology/topology.hpp"

#include <string>
#include <vector>

namespace reckon {

/// The machine `id` of a tree without machines: its cores and memory.
[[nodiscard]] MachineGroup machine_group(const Topology& topology, const std::string& id,
                                         const std::string& name);

/// Puts the machine "m0", its tree, its fingerprint and the facts about it into the profile.
void describe_machine(Profile& profile, Topology topology, const Environment& environment);

/// Completes a measured profile: the source, the fits, the cells by key, the context of every
/// probe, and the number of broken cells.
void describe_probe(ProbeResult& result, const ProbeRequest& request, Seconds budget, Seconds took);

/// alpha + bytes/beta per segment, and the knee, for each group of cells that differ only in bytes
/// and whose bytes are the size of a message: host_memcpy and fabric_*. Cells without a value do
/// not count; groups of fewer than 5 sizes get no fit.
[[nodiscard]] std::vector<Fit> fits_of(const std::vector<Cell>& cells);

/// Names the ceiling of each rate without one: for copies, reads, writes, sums and optimizer steps,
/// the memory traffic of the STREAM-like cells with as many threads (for NUMA pairs: with all),
/// converted to the cell's way of counting bytes.
void add_ceilings(std::vector<Cell>& cells);

/// A profile with the tree of a machine elsewhere and without cells: its source and its context say
/// that nothing was measured. `name` empty: the file's name without its ending. Throws Error{input}
/// as read_topology_file() does.
[[nodiscard]] Profile profile_of_topology_file(const std::string& path,
                                               const std::string& name = "");

} // namespace reckon
