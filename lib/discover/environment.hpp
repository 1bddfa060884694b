// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "discover/hwloc_tree.hpp"
#include "topology/topology.hpp"

#include <map>
#include <string>
#include <vector>

namespace reckon {

/// What may change a measurement without being measured itself.
struct Environment {
  /// For the context of a profile: "host", "kernel", "cpu", "governor", "hwloc", ... What this
  /// machine does not tell is absent.
  std::map<std::string, std::string> facts;
  /// What makes measurements doubtful here, each with its cure.
  std::vector<std::string> warnings;
};

/// `files` is asked for everything below /proc and /sys.
[[nodiscard]] Environment describe_environment(const SystemFile& files);

/// Digest over what decides whether two profiles may be compared: processor model, the numbers of
/// packages, NUMA nodes and usable cores, cache sizes, GPU models, NIC names and speeds. Host name,
/// kernel, library versions, governor and the amount of memory stay out: a change of those is what
/// a comparison should find.
[[nodiscard]] std::string fingerprint(const Topology& topology, const std::string& cpu_model);

} // namespace reckon
