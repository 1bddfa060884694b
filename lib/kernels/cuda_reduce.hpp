// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/dtype.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

struct CUstream_st;

namespace reckon {

/// CUDA's own number of an error; 0 is success. Only for the launch: an error while a kernel runs
/// appears at the next synchronisation.
using CudaStatus = int;
using CudaStream = CUstream_st*;

/// Sources that one sum can have.
inline constexpr std::size_t k_most_cuda_sources = 256;

/// Which elements a sum can take 16 bytes at a time.
struct VectorSplit {
  std::size_t head = 0;    ///< elements before, one at a time
  std::size_t vectors = 0; ///< of 16 bytes
  std::size_t tail = 0;    ///< elements after
};
/// Vectors only where all pointers reach an address divisible by 16 at the same element; otherwise
/// everything is head.
[[nodiscard]] VectorSplit split_for_vectors(const void* destination,
                                            std::span<const void* const> sources,
                                            std::size_t elements, std::size_t element_bytes);

// Each launches one kernel on the current device and returns at once. Memory must be accessible to
// that device: its own, a peer's, or host memory that is registered. `blocks` 0: as many as keep
// the whole GPU busy; else that many blocks of 1024 threads, which the GPU spreads over as many
// multiprocessors while it has that many free.

/// As sum_into() (kernels/reduce.hpp), with the same bits but for the payload of NaNs: in this
/// order, in fp32, rounded once; int32 modulo 2^32. 1 to k_most_cuda_sources sources; a source may
/// be the destination.
[[nodiscard]] CudaStatus cuda_sum_into(DType type, void* destination,
                                       std::span<const void* const> sources, std::size_t elements,
                                       int blocks, CudaStream stream) noexcept;

/// As scale() (kernels/scale.hpp), with the same bits; not int32.
[[nodiscard]] CudaStatus cuda_scale(DType type, void* memory, std::size_t elements, float factor,
                                    CudaStream stream) noexcept;

/// A copy made by the multiprocessors. The ranges do not overlap.
[[nodiscard]] CudaStatus cuda_copy(void* destination, const void* source, std::uint64_t bytes,
                                   int blocks, CudaStream stream) noexcept;

} // namespace reckon
