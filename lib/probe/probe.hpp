// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/units.hpp"
#include "documents/profile.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

struct ProbeOptions {
  Seconds budget{30};                  ///< for everything
  std::vector<std::string> only;       ///< cases; empty: all
  std::vector<std::string> transports; ///< for the fabric cases; empty: all there are
  bool nvlink = true;                  ///< false: GPUs are measured as if PCIe alone joined them
  std::uint64_t seed = 1;
  std::string name;  ///< of the profile; empty: the host's name
  std::string flags; ///< the command line, for the profile's context
  std::function<bool()> interrupted;
  /// As RunnerOptions::progress.
  std::function<void(double done, std::string_view what, Seconds left)> progress;
  /// Told once before the measuring starts.
  std::function<void(std::size_t cells, Seconds estimate)> starting;
};

struct ProbeResult {
  Profile profile;
  std::vector<std::string> warnings; ///< for the user, each with a cure
  bool interrupted = false;
  std::size_t broken = 0; ///< cells that failed, timed out or moved wrong data
};

/// One of the things that probe can measure.
struct ProbeCase {
  std::string name;    ///< as in CellKey::test
  std::string summary; ///< one line
};
[[nodiscard]] std::vector<ProbeCase> probe_cases();

/// Measures this machine. Throws Error{usage} for an unknown case or transport name in the options,
/// Error{unavailable} when this machine cannot be measured or a transport that was asked for is not
/// there. What goes wrong with single cells is in the profile.
[[nodiscard]] ProbeResult probe_machine(const ProbeOptions& options);

/// A few screens' summary of what a profile holds, for people: matrices and tables in GB/s (1e9),
/// ns and us. Cells without a value show as N/A. Plain text.
[[nodiscard]] std::string summary_of(const Profile& profile);

} // namespace reckon
