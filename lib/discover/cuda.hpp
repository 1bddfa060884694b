// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace reckon {

struct CudaGpu {
  std::string name;
  std::string pci_address; ///< "0000:17:00.0"
  std::uint64_t bytes = 0; ///< its memory
};

struct CudaGpus {
  std::vector<CudaGpu> gpus;
  std::string why_none;        ///< empty if there are GPUs
  std::string runtime_version; ///< "13.0"; empty without CUDA in this build
  std::string driver_version; ///< the CUDA version that the driver supports; empty without a driver
};

/// CUDA's GPUs in CUDA's order. A process of its own asks for them once, because a process that has
/// used CUDA may not fork any more. The first call must come before this process uses CUDA. Never
/// throws for lack of a driver or of CUDA; Error{operation} when no process can be started.
[[nodiscard]] CudaGpus list_cuda_gpus();

} // namespace reckon
