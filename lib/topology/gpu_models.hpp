// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "topology/topology.hpp"

#include <string>
#include <string_view>

namespace reckon {

/// A family of NVIDIA's GPUs.
struct GpuModel {
  std::string_view name;              ///< as it stands in products' names: "H100"
  int compute_capability = 0;         ///< 90 is 9.0
  int nvlinks = 0;                    ///< the most that one GPU has; 0: none
  double nvlink_bytes_per_second = 0; ///< one direction of one NVLink
  PcieLink pcie;                      ///< the best it takes; width 0: none (NVLink-C2C), or unknown
};

/// By a product's name, "NVIDIA H100 80GB HBM3" in any case, or NCCL's "sm_90"; null for an unknown
/// one. Facts are those of NVIDIA's white papers on P100, V100, Turing, A100, GA102, Ada, H100 and
/// Blackwell, and of the data sheets of products.
[[nodiscard]] const GpuModel* gpu_model(std::string_view name);

/// NVSwitches that multicast and add (NVLink SHARP, NCCL's NVLS) came with compute capability 9.0.
[[nodiscard]] bool has_sums_in_switch(const GpuModel& model);

/// Fills in what the machine's topology leaves open and its GPUs' name decides: rates of NVLinks,
/// and whether the link switch sums. `name`: for GPUs without one; may be empty.
void complete_nvlinks(Topology& topology, std::string_view machine, const std::string& name = "");

/// Gives GPUs whose PCIe link the topology leaves open the best that their models take: the link
/// may be slower, as negotiated.
void complete_pcie(Topology& topology);

} // namespace reckon
