// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "command_line.hpp"
#include "documents/profile.hpp"

#include <string>

namespace reckon {

/// A machine as a profile or a file of its topology has it, and what these leave open.
struct DescribedMachine {
  std::string profile, topology; ///< one of them, or neither
  std::string gpu;               ///< model of GPUs without a name
  std::string nic_rate;          ///< of each NIC of unknown rate; with a unit
  bool sharp = false;            ///< CollectiveJob::sharp
  [[nodiscard]] bool given() const { return !profile.empty() || !topology.empty(); }
};

/// -p, --topology, --gpu, --nic-rate and --sharp.
void add_described_machine(Arguments& command, DescribedMachine* machine,
                           const std::string& profile_help);

/// `measured`: an imported log that names the GPUs; may be null. Throws Error{usage} for neither or
/// both of the two files.
[[nodiscard]] Profile read_described(const DescribedMachine& machine,
                                     const Profile* measured = nullptr);

} // namespace reckon
