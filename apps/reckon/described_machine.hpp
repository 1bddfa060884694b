// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "command_line.hpp"
#include "documents/profile.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace reckon {

/// A machine as a profile or a file of its topology has it, and what these leave open.
struct DescribedMachine {
  std::string profile, topology;     ///< one of them, or neither
  std::string gpu;                   ///< model of GPUs without a name
  std::string nic_rate;              ///< of NICs of unknown rate: "400Gb/s"; "8x400Gb/s" adds them
  bool sharp = false;                ///< CollectiveJob::sharp
  std::uint64_t nvlink_machines = 1; ///< at most so many share their NVSwitches
  /// How many of a job's machines share them. Throws Error{usage} where domains do not come out
  /// even.
  [[nodiscard]] std::size_t domain_of(std::size_t machines) const;
  [[nodiscard]] bool given() const { return !profile.empty() || !topology.empty(); }
  /// Throws Error{usage} for what is left open of no machine.
  void refuse_without_machine() const;
};

/// -p, --topology, --gpu, --nic-rate, --nvlink-machines and --sharp.
void add_described_machine(Arguments& command, DescribedMachine* machine,
                           const std::string& profile_help);

/// `measured`: an imported log that names the GPUs; may be null. Throws Error{usage} where --gpu or
/// --nic-rate contradicts the machine or says nothing new, Error{input} where the log's GPUs are
/// not the machine's.
[[nodiscard]] Profile read_described(const DescribedMachine& machine,
                                     const Profile* measured = nullptr);

} // namespace reckon
