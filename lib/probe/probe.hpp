// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/units.hpp"
#include "documents/profile.hpp"
#include "launch/environment.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// The options of every probe.
struct ProbeRequest {
  std::vector<std::string> transports; ///< transports to measure; empty: the usual ones
  std::uint64_t seed = 1;
  std::string name;       ///< name of the profile; empty: made from the hosts' names
  std::string flags;      ///< the command line, for the profile's context
  std::string keep_files; ///< a new folder for the system's files that were read; empty: none
  std::function<bool()> interrupted;
  /// As RunnerOptions::progress.
  std::function<void(double done, std::string_view what, Seconds left)> progress;
};

struct Campaign;

/// Where plans are rehearsed.
struct RehearsalStage {
  std::string machine;                 ///< id
  std::uint64_t processors = 1;        ///< for ranks
  std::vector<std::string> transports; ///< in the order of their cells; one at least
  bool thorough = false;
  std::function<bool()> interrupted;
};

struct ProbeOptions : ProbeRequest {
  std::optional<Seconds> budget; ///< for everything; absent: the cells' own time
  bool thorough = false;         ///< whole curves and all combinations
  std::vector<std::string> only; ///< cases; empty: all
  bool nvlink = true;            ///< false: GPUs are measured as if PCIe alone joined them
  /// Plays plans on the machine; empty: nothing does.
  std::function<std::vector<Campaign>(const RehearsalStage&)> rehearse;
  /// Told once before the measuring starts.
  std::function<void(std::size_t cells, Seconds estimate)> starting;
};

struct ProbeResult {
  Profile profile;
  std::vector<std::string> warnings; ///< for the user, each with a remedy
  bool interrupted = false;
  std::size_t broken = 0; ///< cells that failed, timed out or moved wrong data
};

/// Throws Error{usage} when this process is one of several ranks of a job on one machine: all would
/// measure it at once, and write one file.
void require_own_machine(const std::optional<JobEnvironment>& job);

/// The cells of probe_machine(): the same each time on a machine.
struct ProbeList {
  std::vector<CellKey> cells;
  Seconds estimate{0};
};
/// Throws as probe_machine() does.
[[nodiscard]] ProbeList list_probe(const ProbeOptions& options);

/// Measures this machine. Throws Error{usage} for an unknown case or transport name in the options,
/// Error{unavailable} when this machine cannot be measured, has nothing of all cases that are asked
/// for or lacks a requested transport.
/// Errors of single cells are in the profile.
[[nodiscard]] ProbeResult probe_machine(const ProbeOptions& options);

} // namespace reckon
