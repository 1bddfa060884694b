// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "present/style.hpp"
#include "topology/paths.hpp"
#include "topology/topology.hpp"

#include <functional>
#include <string>

namespace reckon {

/// Measured bytes per second of one direction of a link; 0: not measured.
using MeasuredLink = std::function<double(const LinkEnd&)>;

/// What else to say of an object and its link to what is above it; empty: nothing.
using LinkRemark = std::function<std::string(const TopologyObject&)>;

/// Of each machine: its tree, with a remark where there is one; how near GPUs, NICs and NUMA nodes
/// are, as `nvidia-smi topo -m` has it; PCIe links below what they could do; the switches of
/// BytePS 4.2.3 and what follows from them; links that several endpoints share. Of a machine
/// without a GPU and without a NIC the tree alone. Empty for a topology without objects. A shared
/// link has its `measured` rate before the one that the machine gives for it.
[[nodiscard]] std::string topology_text(const Topology& topology, const Style& style,
                                        const MeasuredLink& measured = {},
                                        const LinkRemark& remark = {});

} // namespace reckon
