// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "topology/topology.hpp"

namespace reckon::test {

/// BytePS figure 6(a): two processors, below each a PCIe switch with four GPUs, a NIC on lanes of
/// its own at processor 0, PCIe 3.0 x16 everywhere. Ids: m0/sw0, m0/sw1, m0/gpu0..7, m0/nic0,
/// m0/numa0, m0/numa1, and the host bridges m0/hb0, m0/hb1 (of the switches) and m0/hb2.
[[nodiscard]] Topology byteps_pcie_machine();

/// BytePS figure 8(a): two processors, below each two PCIe switches with two GPUs each, a NIC at
/// switch 0, and NVLinks of 150 GB/s (1.2 Tb/s) at each GPU, joined as in NVIDIA's DGX-1 with V100
/// ("DGX-1 With Tesla V100 System Architecture", figure 4). Ids: m0/sw0..3, the others as above,
/// host bridges m0/hb0..3.
[[nodiscard]] Topology byteps_nvlink_machine();

} // namespace reckon::test
