// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda_launch.cuh"
#include "kernels/cuda_probe.hpp"

#include <cstddef>

namespace reckon {
namespace {

// gpu_pattern_word() is constexpr and so may be called here: the file is compiled with
// --expt-relaxed-constexpr.

__global__ void fill_pattern_kernel(unsigned long long* to, std::size_t words, std::uint64_t salt) {
  for (std::size_t i = thread_number(); i < words; i += thread_count()) {
    to[i] = gpu_pattern_word(i, salt);
  }
}

__global__ void check_pattern_kernel(const unsigned long long* from, std::size_t words,
                                     std::uint64_t salt, unsigned long long* wrong,
                                     unsigned long long* first) {
  for (std::size_t i = thread_number(); i < words; i += thread_count()) {
    if (from[i] != gpu_pattern_word(i, salt)) { // rare, or everything is lost anyway
      atomicAdd_system(wrong, 1ULL);
      atomicMin_system(first, static_cast<unsigned long long>(i));
    }
  }
}

__device__ unsigned long long global_nanoseconds() {
  unsigned long long ns = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}

__global__ void hold_kernel(volatile unsigned* opened, volatile unsigned* expired, unsigned ticket,
                            unsigned long long limit_ns) {
  const unsigned long long start = global_nanoseconds();
  while (*opened != ticket) {
    if (global_nanoseconds() - start > limit_ns) {
      *expired = ticket;
      __threadfence_system();
      return;
    }
  }
}

__global__ void chase_kernel(const volatile unsigned* memory, unsigned long long steps,
                             unsigned* last) {
  unsigned at = 0;
  for (unsigned long long i = 0; i < steps; ++i) {
    at = memory[at];
  }
  *last = at;
}

/// One warp a bag: a row is one 16-byte load of each of its 32 threads.
__global__ void embedding_kernel(const float4* table, unsigned rows, float4* out, unsigned batch,
                                 unsigned bag) {
  constexpr unsigned k_lanes = k_embedding_columns / 4;
  static_assert(k_lanes == 32, "a warp takes a row");
  const unsigned lane = threadIdx.x % k_lanes;
  for (std::size_t b = thread_number() / k_lanes; b < batch; b += thread_count() / k_lanes) {
    float4 sum = make_float4(0, 0, 0, 0);
    for (unsigned j = 0; j < bag; ++j) {
      const std::size_t row = gpu_pattern_word(b * bag + j, 1) % rows;
      const float4 term = table[row * k_lanes + lane];
      sum.x += term.x;
      sum.y += term.y;
      sum.z += term.z;
      sum.w += term.w;
    }
    out[b * k_lanes + lane] = sum;
  }
}

} // namespace

CudaStatus cuda_fill_pattern(void* destination, std::uint64_t bytes, std::uint64_t salt,
                             CudaStream stream) noexcept {
  const std::size_t words = bytes / sizeof(std::uint64_t);
  if (words == 0) {
    return cudaSuccess;
  }
  const LaunchShape shape = launch_shape(words, 0);
  fill_pattern_kernel<<<shape.blocks, shape.threads, 0, stream>>>(
      static_cast<unsigned long long*>(destination), words, salt);
  return cudaGetLastError();
}

CudaStatus cuda_check_pattern(const void* memory, std::uint64_t bytes, std::uint64_t salt,
                              PatternFault* fault, CudaStream stream) noexcept {
  static_assert(sizeof(unsigned long long) == sizeof(std::uint64_t));
  const std::size_t words = bytes / sizeof(std::uint64_t);
  if (words == 0) {
    return cudaSuccess;
  }
  const LaunchShape shape = launch_shape(words, 0);
  check_pattern_kernel<<<shape.blocks, shape.threads, 0, stream>>>(
      static_cast<const unsigned long long*>(memory), words, salt,
      reinterpret_cast<unsigned long long*>(&fault->wrong_words),
      reinterpret_cast<unsigned long long*>(&fault->first_word));
  return cudaGetLastError();
}

CudaStatus cuda_hold(GateWords* gate, std::uint32_t ticket, std::uint64_t limit_ns,
                     CudaStream stream) noexcept {
  hold_kernel<<<1, 1, 0, stream>>>(&gate->opened, &gate->expired, ticket, limit_ns);
  return cudaGetLastError();
}

CudaStatus cuda_chase(const std::uint32_t* memory, std::uint64_t steps, std::uint32_t* last,
                      CudaStream stream) noexcept {
  chase_kernel<<<1, 1, 0, stream>>>(memory, steps, last);
  return cudaGetLastError();
}

CudaStatus cuda_embedding(const float* table, std::uint32_t rows, float* out, std::uint32_t batch,
                          std::uint32_t bag, CudaStream stream) noexcept {
  if (batch == 0 || rows == 0) {
    return cudaErrorInvalidValue;
  }
  const LaunchShape shape = launch_shape(static_cast<std::size_t>(batch) * 32, 0);
  embedding_kernel<<<shape.blocks, shape.threads, 0, stream>>>(
      reinterpret_cast<const float4*>(table), rows, reinterpret_cast<float4*>(out), batch, bag);
  return cudaGetLastError();
}

CudaStatus cuda_load_kernels_of_reduce() noexcept; // cuda_reduce.cu

CudaStatus cuda_load_kernels() noexcept {
  cudaFuncAttributes ignored{};
  CudaStatus status = cuda_load_kernels_of_reduce();
  const auto load = [&](auto* kernel) {
    if (status == cudaSuccess) {
      status = cudaFuncGetAttributes(&ignored, kernel);
    }
  };
  load(&fill_pattern_kernel);
  load(&check_pattern_kernel);
  load(&hold_kernel);
  load(&chase_kernel);
  load(&embedding_kernel);
  return status;
}

} // namespace reckon
