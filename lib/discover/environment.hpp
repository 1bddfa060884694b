// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/system_files.hpp"
#include "topology/topology.hpp"

#include <map>
#include <string>
#include <vector>

namespace reckon {

/// Conditions that may change a measurement without being measured themselves.
struct Environment {
  /// For the context of a profile: "host", "kernel", "cpu", "governor", "hwloc", ... Unknown facts
  /// are absent.
  std::map<std::string, std::string> facts;
  /// Reasons to doubt measurements here, each with its remedy.
  std::vector<std::string> warnings;
};

/// `files` is asked for everything below /proc and /sys.
[[nodiscard]] Environment describe_environment(const SystemFile& files);

/// Digest of the facts that make two profiles comparable: processor model, the numbers of packages,
/// NUMA nodes and usable cores, cache sizes, GPU models, NIC names and speeds. Host name, kernel,
/// library versions, governor and the amount of memory stay out: a comparison should find the
/// effect of their changes.
[[nodiscard]] std::string fingerprint(const Topology& topology, const std::string& cpu_model);

} // namespace reckon
