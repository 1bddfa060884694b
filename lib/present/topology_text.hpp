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

/// For each machine: its tree; the distances of GPUs, NICs and NUMA nodes, as in `nvidia-smi topo
/// -m`; PCIe links below their maximum; the switches of BytePS 4.2.3 and their consequences; links
/// that several endpoints share. For a machine without a GPU and without a NIC the tree alone.
/// Empty for a topology without objects. A shared link has its `measured` rate before the one that
/// the machine gives for it.
[[nodiscard]] std::string topology_text(const Topology& topology, const Style& style,
                                        const MeasuredLink& measured = {});

} // namespace reckon
