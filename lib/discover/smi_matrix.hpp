// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "discover/topology_file.hpp"

#include <string>
#include <string_view>

namespace reckon {

/// Whether the text has the head of the matrix of `nvidia-smi topo -m`.
[[nodiscard]] bool is_smi_matrix(std::string_view text);

/// Whether the text is the matrix of `nvidia-smi topo -p2p`, which says nothing of distances.
[[nodiscard]] bool is_smi_peer_matrix(std::string_view text);

/// The tree that the matrix of `nvidia-smi topo -m` implies: devices that are PIX share a PCIe
/// switch, those that are PXB a switch of switches, PHB a host bridge, NODE a NUMA node. NV# are
/// NVLinks; where a GPU would need more than any has, they lead to NVSwitches. It has no rates and
/// no models: see complete_nvlinks(). Where the two cells of two devices differ, the worse one
/// counts, with a remark. Throws Error{input} as "FILE:LINE: problem; remedy".
[[nodiscard]] RecordedTopology topology_from_smi_matrix(const std::string& text,
                                                        const std::string& file,
                                                        const std::string& machine);

} // namespace reckon
