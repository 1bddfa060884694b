// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/system_files.hpp"
#include "documents/profile.hpp"
#include "topology/topology.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace reckon {

/// What `files` say of the machine "m0" of the topology: of its GPUs, NICs, PCIe switches and the
/// ports between them, of its network ports and of itself, in order. Network devices that no NIC
/// stands for, as bonds and those of a container, are said of the machine. Nothing is changed. What
/// cannot be read is absent; a function whose capabilities only root may read has a
/// "config_space".
[[nodiscard]] std::vector<Setting> read_settings(const Topology& topology,
                                                 const SystemFiles& files);

/// What the system counts: the place, the count's name, and the file that has it.
struct Counted {
  std::string place, name, file;
  auto operator<=>(const Counted&) const = default;
};
/// Errors since the system began.
using ErrorCounts = std::map<Counted, std::uint64_t>;
/// Of PCIe functions (AER), RDMA and network ports, and of what is in k_nvml_file.
[[nodiscard]] ErrorCounts count_errors(const Topology& topology, const SystemFiles& files);
/// "m0/nic0: 12 out_of_sequence, ..."; empty: none was added.
[[nodiscard]] std::string added_errors(const ErrorCounts& before, const ErrorCounts& after);
/// Those that were added, as settings of the name of the count with k_while_measured.
[[nodiscard]] std::vector<Setting> errors_while_measured(const ErrorCounts& before,
                                                         const ErrorCounts& after);

/// Where the facts of NVIDIA's GPUs are among a machine's files: lines of PCI address, name, value.
inline constexpr const char* k_nvml_file = "/nvml.csv";
/// What NVIDIA's management library says of all GPUs, as k_nvml_file has it; empty where there is
/// no such library or it does not work. `library`: its name, which tests replace.
[[nodiscard]] std::string ask_nvml(const char* library = "libnvidia-ml.so.1");

namespace settings_detail {
inline constexpr const char* k_machine = "m0";
/// The rows of k_nvml_file: place, name, value.
struct NvmlRow {
  std::string place, name, value;
};
[[nodiscard]] std::vector<NvmlRow> nvml_rows(const Topology& topology, const SystemFiles& files);
/// The names of a NIC's ports: network and RDMA devices.
[[nodiscard]] std::vector<std::string> device_names(const TopologyObject& nic);
/// Network devices that lead to a network and that no NIC has: bonds, VLANs, those of a container.
[[nodiscard]] std::vector<std::string> other_devices(const Topology& topology,
                                                     const SystemFiles& files);
} // namespace settings_detail

} // namespace reckon
