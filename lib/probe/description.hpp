// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "discover/environment.hpp"
#include "documents/profile.hpp"
#include "probe/probe.hpp"
#include "settings/settings.hpp"
#include "topology/topology.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// The machine `id` of a tree without machines: its cores and memory.
[[nodiscard]] MachineGroup machine_group(const Topology& topology, const std::string& id,
                                         const std::string& name);

/// Puts the machine "m0", its tree, its fingerprint and the facts about it into the profile.
void describe_machine(Profile& profile, Topology topology, const Environment& environment);

/// The errors that the system counts while this machine is measured.
class MachineErrors {
public:
  MachineErrors(const Topology& topology, SystemFiles& files);
  /// Those since the last call, as added_errors() tells them.
  [[nodiscard]] std::string since_last();
  /// All, as settings; also those that only NVIDIA's library counts.
  [[nodiscard]] std::vector<Setting> all() const;

private:
  const Topology& m_topology;
  SystemFiles& m_files;
  ErrorCounts m_first, m_last;
};

/// Puts what the system says of this machine, after it was measured, into the profile, and keeps
/// the files that say so in `folder` unless it is empty.
void describe_settings(Profile& profile, const Topology& topology, SystemFiles& files,
                       const MachineErrors& errors, const std::string& folder);

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

/// Whether profile_of_topology_file() reads it though it is no XML: the text of `nvidia-smi topo
/// -m`.
[[nodiscard]] bool is_topology_text(std::string_view text);

/// A profile with the tree of a machine elsewhere and without cells: its source and its context say
/// that nothing was measured. A folder of recorded files also has its settings. `name` empty: the
/// file's name without its ending. Throws Error{input} as read_topology_file() does.
[[nodiscard]] Profile profile_of_topology_file(const std::string& path,
                                               const std::string& name = "");

} // namespace reckon
