// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda_launch.cuh"
#include "kernels/cuda_reduce.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace reckon {
namespace {

/// By value: kernel parameters are copied when the kernel is launched.
struct Sources {
  const void* at[k_most_cuda_sources];
};

// An element type: how a 32-bit word of it becomes sums, and back. No contraction can happen: there
// is no multiplication.

struct Fp32 {
  using Word = unsigned;
  using Sum = float;
  using Element = float;
  static constexpr int k_per_word = 1;
  static __device__ void widen(Word word, Sum* out) { out[0] = __uint_as_float(word); }
  static __device__ Word narrow(const Sum* in) { return __float_as_uint(in[0]); }
  static __device__ Sum widen_one(Element e) { return e; }
  static __device__ Element narrow_one(Sum s) { return s; }
  static __device__ Sum add(Sum a, Sum b) { return __fadd_rn(a, b); }
};

struct Int32 {
  using Word = unsigned;
  using Sum = unsigned; // wraps, where int would be undefined
  using Element = unsigned;
  static constexpr int k_per_word = 1;
  static __device__ void widen(Word word, Sum* out) { out[0] = word; }
  static __device__ Word narrow(const Sum* in) { return in[0]; }
  static __device__ Sum widen_one(Element e) { return e; }
  static __device__ Element narrow_one(Sum s) { return s; }
  static __device__ Sum add(Sum a, Sum b) { return a + b; }
};

/// Two 16-bit elements a word, the first in the low half. Type gives bits to fp32 and back,
/// rounding to nearest even.
template <class Type>
struct Half {
  using Word = unsigned;
  using Sum = float;
  using Element = unsigned short;
  static constexpr int k_per_word = 2;
  static __device__ void widen(Word word, Sum* out) {
    out[0] = Type::to_float(static_cast<Element>(word & 0xFFFFU));
    out[1] = Type::to_float(static_cast<Element>(word >> 16U));
  }
  static __device__ Word narrow(const Sum* in) {
    return static_cast<Word>(Type::to_bits(in[0])) |
           (static_cast<Word>(Type::to_bits(in[1])) << 16U);
  }
  static __device__ Sum widen_one(Element e) { return Type::to_float(e); }
  static __device__ Element narrow_one(Sum s) { return Type::to_bits(s); }
  static __device__ Sum add(Sum a, Sum b) { return __fadd_rn(a, b); }
};
struct Fp16Bits {
  static __device__ float to_float(unsigned short bits) {
    return __half2float(__ushort_as_half(bits));
  }
  static __device__ unsigned short to_bits(float value) {
    return __half_as_ushort(__float2half_rn(value));
  }
};
struct Bf16Bits {
  static __device__ float to_float(unsigned short bits) {
    return __uint_as_float(static_cast<unsigned>(bits) << 16U);
  }
  static __device__ unsigned short to_bits(float value) {
    return __bfloat16_as_ushort(__float2bfloat16_rn(value));
  }
};

template <class Type>
__device__ void load(const void* from, std::size_t vector, typename Type::Sum* out) {
  const uint4 words = static_cast<const uint4*>(from)[vector];
  Type::widen(words.x, out);
  Type::widen(words.y, out + Type::k_per_word);
  Type::widen(words.z, out + 2 * Type::k_per_word);
  Type::widen(words.w, out + 3 * Type::k_per_word);
}

/// k_count 0: `count` sources, known only when it runs.
template <class Type, int k_count>
__global__ void __launch_bounds__(1024)
    sum_kernel(void* out, const Sources sources, int count, VectorSplit split) {
  using Sum = typename Type::Sum;
  using Element = typename Type::Element;
  constexpr int k_per_vector = 4 * Type::k_per_word;
  const int terms = k_count > 0 ? k_count : count;
  const std::size_t begin = split.head * sizeof(Element); // in bytes, where the vectors start
  for (std::size_t v = thread_number(); v < split.vectors; v += thread_count()) {
    Sum sum[k_per_vector];
    load<Type>(static_cast<const char*>(sources.at[0]) + begin, v, sum);
#pragma unroll 4
    for (int k = 1; k < terms; ++k) {
      Sum term[k_per_vector];
      load<Type>(static_cast<const char*>(sources.at[k]) + begin, v, term);
#pragma unroll
      for (int e = 0; e < k_per_vector; ++e) {
        sum[e] = Type::add(sum[e], term[e]);
      }
    }
    uint4 words;
    words.x = Type::narrow(sum);
    words.y = Type::narrow(sum + Type::k_per_word);
    words.z = Type::narrow(sum + 2 * Type::k_per_word);
    words.w = Type::narrow(sum + 3 * Type::k_per_word);
    reinterpret_cast<uint4*>(static_cast<char*>(out) + begin)[v] = words;
  }
  const std::size_t singles = split.head + split.tail;
  for (std::size_t i = thread_number(); i < singles; i += thread_count()) {
    const std::size_t e = i < split.head ? i : i + split.vectors * k_per_vector;
    Sum sum = Type::widen_one(static_cast<const Element*>(sources.at[0])[e]);
    for (int k = 1; k < terms; ++k) {
      sum = Type::add(sum, Type::widen_one(static_cast<const Element*>(sources.at[k])[e]));
    }
    static_cast<Element*>(out)[e] = Type::narrow_one(sum);
  }
}

template <class Type>
void launch_sum(void* out, const Sources& sources, int count, const VectorSplit& split,
                LaunchShape shape, CudaStream stream) {
  switch (count) {
  case 1:
    sum_kernel<Type, 1><<<shape.blocks, shape.threads, 0, stream>>>(out, sources, count, split);
    break;
  case 2:
    sum_kernel<Type, 2><<<shape.blocks, shape.threads, 0, stream>>>(out, sources, count, split);
    break;
  case 3:
    sum_kernel<Type, 3><<<shape.blocks, shape.threads, 0, stream>>>(out, sources, count, split);
    break;
  case 4:
    sum_kernel<Type, 4><<<shape.blocks, shape.threads, 0, stream>>>(out, sources, count, split);
    break;
  default:
    sum_kernel<Type, 0><<<shape.blocks, shape.threads, 0, stream>>>(out, sources, count, split);
    break;
  }
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
  const auto count = static_cast<int>(sources.size());
  const VectorSplit split = split_for_vectors(destination, sources, elements, size_of(type));
  const LaunchShape shape = launch_shape(std::max(split.vectors, split.head + split.tail), blocks);
  switch (type) {
  case DType::fp32:
    launch_sum<Fp32>(destination, by_value, count, split, shape, stream);
    break;
  case DType::fp16:
    launch_sum<Half<Fp16Bits>>(destination, by_value, count, split, shape, stream);
    break;
  case DType::bf16:
    launch_sum<Half<Bf16Bits>>(destination, by_value, count, split, shape, stream);
    break;
  case DType::int32:
    launch_sum<Int32>(destination, by_value, count, split, shape, stream);
    break;
  }
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
  const auto load = [&](auto... kernels) {
    for (const auto kernel : {kernels...}) {
      if (status == cudaSuccess) {
        status = cudaFuncGetAttributes(&ignored, kernel);
      }
    }
  };
  const auto load_all = [&]<class Type>() {
    load(&sum_kernel<Type, 0>, &sum_kernel<Type, 1>, &sum_kernel<Type, 2>, &sum_kernel<Type, 3>,
         &sum_kernel<Type, 4>);
  };
  load_all.template operator()<Fp32>();
  load_all.template operator()<Half<Fp16Bits>>();
  load_all.template operator()<Half<Bf16Bits>>();
  load_all.template operator()<Int32>();
  return status;
}

} // namespace reckon
