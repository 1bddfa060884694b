// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda_reduce.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>

namespace reckon {

struct LaunchShape {
  unsigned blocks = 1, threads = 1;
};

/// For `items` pieces of work, one a thread at a time; `blocks` as in kernels/cuda_reduce.hpp.
inline LaunchShape launch_shape(std::size_t items, int blocks) noexcept {
  if (blocks > 0) {
    return {static_cast<unsigned>(blocks), 1024};
  }
  constexpr unsigned k_threads = 256;
  constexpr unsigned k_blocks_each = 8; // 2048 threads: all that a multiprocessor can hold
  int device = 0;
  int processors = 0;
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device) != cudaSuccess ||
      processors < 1) {
    processors = 1; // the launch itself will say what is wrong
  }
  const std::size_t wanted = (items + k_threads - 1) / k_threads;
  const std::size_t most = static_cast<std::size_t>(processors) * k_blocks_each;
  return {static_cast<unsigned>(std::clamp<std::size_t>(wanted, 1, most)), k_threads};
}

/// Number of this thread among all of the launch, and how many there are: loops step by it.
__device__ inline std::size_t thread_number() {
  return static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::size_t thread_count() {
  return static_cast<std::size_t>(gridDim.x) * blockDim.x;
}

} // namespace reckon
