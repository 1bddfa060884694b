// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda_launch.cuh"
#include "kernels/cuda_reduce.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <array>

namespace reckon {
namespace {

/// By value: kernel parameters are copied when the kernel is launched.
struct Sources {
  const void* at[k_most_cuda_sources];
};

// An element type: how its bits become a sum, and back, rounding to nearest even.
struct Fp32 {
  using Bits = unsigned;
  using Sum = float;
  static __device__ Sum widen(Bits bits) { return __uint_as_float(bits); }
  static __device__ Bits narrow(Sum sum) { return __float_as_uint(sum); }
};
struct Int32 {
  using Bits = unsigned;
  using Sum = unsigned; // wraps, where int would be undefined
  static __device__ Sum widen(Bits bits) { return bits; }
  static __device__ Bits narrow(Sum sum) { return sum; }
};
struct Fp16 {
  using Bits = unsigned short;
  using Sum = float;
  static __device__ Sum widen(Bits bits) { return __half2float(__ushort_as_half(bits)); }
  static __device__ Bits narrow(Sum sum) { return __half_as_ushort(__float2half_rn(sum)); }
};
struct Bf16 {
  using Bits = unsigned short;
  using Sum = float;
  static __device__ Sum widen(Bits bits) {
    return __uint_as_float(static_cast<unsigned>(bits) << 16U);
  }
  static __device__ Bits narrow(Sum sum) { return __bfloat16_as_ushort(__float2bfloat16_rn(sum)); }
};

// No contraction can happen: there is no multiplication.
__device__ float add(float a, float b) {
  return __fadd_rn(a, b);
}
__device__ unsigned add(unsigned a, unsigned b) {
  return a + b;
}

/// Elements of a 32-bit word, the first in the low half.
template <class Type>
constexpr int k_per_word = sizeof(unsigned) / sizeof(typename Type::Bits);

template <class Type>
__device__ void widen(unsigned word, typename Type::Sum* out) {
  out[0] = Type::widen(static_cast<typename Type::Bits>(word));
  if constexpr (k_per_word<Type> == 2) {
    out[1] = Type::widen(static_cast<typename Type::Bits>(word >> 16U));
  }
}

template <class Type>
__device__ unsigned narrow(const typename Type::Sum* in) {
  unsigned word = Type::narrow(in[0]);
  if constexpr (k_per_word<Type> == 2) {
    word |= static_cast<unsigned>(Type::narrow(in[1])) << 16U;
  }
  return word;
}

template <class Type>
__device__ void load(const void* from, std::size_t vector, typename Type::Sum* out) {
  const uint4 words = static_cast<const uint4*>(from)[vector];
  widen<Type>(words.x, out);
  widen<Type>(words.y, out + k_per_word<Type>);
  widen<Type>(words.z, out + 2 * k_per_word<Type>);
  widen<Type>(words.w, out + 3 * k_per_word<Type>);
}

template <class Type>
__device__ void store(void* to, std::size_t vector, const typename Type::Sum* in) {
  uint4 words;
  words.x = narrow<Type>(in);
  words.y = narrow<Type>(in + k_per_word<Type>);
  words.z = narrow<Type>(in + 2 * k_per_word<Type>);
  words.w = narrow<Type>(in + 3 * k_per_word<Type>);
  static_cast<uint4*>(to)[vector] = words;
}

/// k_count 0: `count` sources, known only when it runs.
template <class Type, int k_count>
__global__ void __launch_bounds__(1024)
    sum_kernel(void* out, const Sources sources, int count, VectorSplit split) {
  using Sum = typename Type::Sum;
  using Bits = typename Type::Bits;
  constexpr int k_per_vector = 4 * k_per_word<Type>;
  const int terms = k_count > 0 ? k_count : count;
  const std::size_t begin = split.head * sizeof(Bits); // in bytes, where the vectors start
  for (std::size_t v = thread_number(); v < split.vectors; v += thread_count()) {
    Sum sum[k_per_vector];
    load<Type>(static_cast<const char*>(sources.at[0]) + begin, v, sum);
#pragma unroll 4
    for (int k = 1; k < terms; ++k) {
      Sum term[k_per_vector];
      load<Type>(static_cast<const char*>(sources.at[k]) + begin, v, term);
#pragma unroll
      for (int e = 0; e < k_per_vector; ++e) {
        sum[e] = add(sum[e], term[e]);
      }
    }
    store<Type>(static_cast<char*>(out) + begin, v, sum);
  }
  const std::size_t singles = split.head + split.tail;
  for (std::size_t i = thread_number(); i < singles; i += thread_count()) {
    const std::size_t e = i < split.head ? i : i + split.vectors * k_per_vector;
    Sum sum = Type::widen(static_cast<const Bits*>(sources.at[0])[e]);
    for (int k = 1; k < terms; ++k) {
      sum = add(sum, Type::widen(static_cast<const Bits*>(sources.at[k])[e]));
    }
    static_cast<Bits*>(out)[e] = Type::narrow(sum);
  }
}

using SumKernel = void (*)(void*, Sources, int, VectorSplit);

/// By the number of sources; 0: any other.
template <class Type>
constexpr std::array<SumKernel, 5> k_sum_kernels{&sum_kernel<Type, 0>, &sum_kernel<Type, 1>,
                                                 &sum_kernel<Type, 2>, &sum_kernel<Type, 3>,
                                                 &sum_kernel<Type, 4>};

std::span<const SumKernel> sum_kernels(DType type) {
  switch (type) {
  case DType::fp32:
    return k_sum_kernels<Fp32>;
  case DType::fp16:
    return k_sum_kernels<Fp16>;
  case DType::bf16:
    return k_sum_kernels<Bf16>;
  case DType::int32:
    return k_sum_kernels<Int32>;
  }
  return {};
}

template <class Type>
__global__ void __launch_bounds__(1024) scale_kernel(void* memory, float factor, VectorSplit split) {
  using Bits = typename Type::Bits;
  constexpr int k_per_vector = 4 * k_per_word<Type>;
  auto* const vectors = reinterpret_cast<uint4*>(static_cast<Bits*>(memory) + split.head);
  for (std::size_t v = thread_number(); v < split.vectors; v += thread_count()) {
    float held[k_per_vector];
    load<Type>(vectors, v, held);
#pragma unroll
    for (int e = 0; e < k_per_vector; ++e) {
      held[e] = __fmul_rn(held[e], factor);
    }
    store<Type>(vectors, v, held);
  }
  const std::size_t singles = split.head + split.tail;
  for (std::size_t i = thread_number(); i < singles; i += thread_count()) {
    Bits& at = static_cast<Bits*>(memory)[i < split.head ? i : i + split.vectors * k_per_vector];
    at = Type::narrow(__fmul_rn(Type::widen(at), factor));
  }
}

using ScaleKernel = void (*)(void*, float, VectorSplit);

ScaleKernel scale_kernel_for(DType type) {
  return type == DType::fp32   ? &scale_kernel<Fp32>
         : type == DType::fp16 ? &scale_kernel<Fp16>
                               : &scale_kernel<Bf16>;
}

/// Four vectors in flight a thread: one alone does not cover the latency of a peer's memory.
__global__ void __launch_bounds__(1024) copy_kernel(char* to, const char* from, VectorSplit split) {
  auto* const out = reinterpret_cast<uint4*>(to + split.head);
  const auto* const in = reinterpret_cast<const uint4*>(from + split.head);
  constexpr std::size_t k_at_once = 4;
  const std::size_t step = thread_count();
  std::size_t v = thread_number();
  for (; v + (k_at_once - 1) * step < split.vectors; v += k_at_once * step) {
    uint4 held[k_at_once];
#pragma unroll
    for (std::size_t k = 0; k < k_at_once; ++k) {
      held[k] = in[v + k * step];
    }
#pragma unroll
    for (std::size_t k = 0; k < k_at_once; ++k) {
      out[v + k * step] = held[k];
    }
  }
  for (; v < split.vectors; v += step) {
    out[v] = in[v];
  }
  const std::size_t singles = split.head + split.tail;
  for (std::size_t i = thread_number(); i < singles; i += step) {
    const std::size_t at = i < split.head ? i : i + split.vectors * sizeof(uint4);
    to[at] = from[at];
  }
}

} // namespace

CudaStatus cuda_sum_into(DType type, void* destination, std::span<const void* const> sources,
                         std::size_t elements, int blocks, CudaStream stream) noexcept {
  if (elements == 0) {
    return cudaSuccess;
  }
  if (sources.empty() || sources.size() > k_most_cuda_sources) {
    return cudaErrorInvalidValue;
  }
  Sources by_value{};
  std::copy(sources.begin(), sources.end(), by_value.at);
  const VectorSplit split = split_for_vectors(destination, sources, elements, size_of(type));
  const LaunchShape shape = launch_shape(std::max(split.vectors, split.head + split.tail), blocks);
  const std::span<const SumKernel> kernels = sum_kernels(type);
  const SumKernel kernel = kernels[sources.size() < kernels.size() ? sources.size() : 0];
  kernel<<<shape.blocks, shape.threads, 0, stream>>>(destination, by_value,
                                                     static_cast<int>(sources.size()), split);
  return cudaGetLastError();
}

CudaStatus cuda_scale(DType type, void* memory, std::size_t elements, float factor,
                      CudaStream stream) noexcept {
  if (elements == 0 || type == DType::int32) {
    return elements == 0 ? cudaSuccess : cudaErrorInvalidValue;
  }
  const VectorSplit split = split_for_vectors(memory, {}, elements, size_of(type));
  const LaunchShape shape = launch_shape(std::max(split.vectors, split.head + split.tail), 0);
  scale_kernel_for(type)<<<shape.blocks, shape.threads, 0, stream>>>(memory, factor, split);
  return cudaGetLastError();
}

CudaStatus cuda_copy(void* destination, const void* source, std::uint64_t bytes, int blocks,
                     CudaStream stream) noexcept {
  if (bytes == 0) {
    return cudaSuccess;
  }
  const void* const sources[] = {source};
  const VectorSplit split = split_for_vectors(destination, sources, bytes, 1);
  const LaunchShape shape = launch_shape(std::max(split.vectors, split.head + split.tail), blocks);
  copy_kernel<<<shape.blocks, shape.threads, 0, stream>>>(static_cast<char*>(destination),
                                                          static_cast<const char*>(source), split);
  return cudaGetLastError();
}

CudaStatus cuda_load_kernels_of_reduce() noexcept;
CudaStatus cuda_load_kernels_of_reduce() noexcept {
  cudaFuncAttributes ignored{};
  CudaStatus status = cudaFuncGetAttributes(&ignored, &copy_kernel);
  for (const DType type : {DType::fp32, DType::fp16, DType::bf16, DType::int32}) {
    for (const SumKernel kernel : sum_kernels(type)) {
      if (status == cudaSuccess) {
        status = cudaFuncGetAttributes(&ignored, kernel);
      }
    }
    if (status == cudaSuccess && type != DType::int32) {
      status = cudaFuncGetAttributes(&ignored, scale_kernel_for(type));
    }
  }
  return status;
}

} // namespace reckon
