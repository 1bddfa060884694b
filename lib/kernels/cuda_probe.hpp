// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda_reduce.hpp"

#include <cstddef>
#include <cstdint>

namespace reckon {

// Kernels for measurements, beside copies and sums. Each launches one kernel on the current device,
// as in kernels/cuda_reduce.hpp.

/// The 8 bytes at place `word` of a pattern; other salts give other patterns. The same on the host.
[[nodiscard]] constexpr std::uint64_t gpu_pattern_word(std::uint64_t word, std::uint64_t salt) {
  std::uint64_t x = (word + 1) * 0x9E3779B97F4A7C15ULL + salt * 0xD1B54A32D192ED03ULL;
  x ^= x >> 29U;
  x *= 0xBF58476D1CE4E5B9ULL;
  return x ^ (x >> 32U);
}

/// Writes the pattern. `bytes` is a multiple of 8, as everywhere here.
[[nodiscard]] CudaStatus cuda_fill_pattern(void* destination, std::uint64_t bytes,
                                           std::uint64_t salt, CudaStream stream) noexcept;

/// The result of a comparison with the pattern.
struct PatternFault {
  std::uint64_t wrong_words = 0;
  std::uint64_t first_word = UINT64_MAX; ///< the lowest wrong word
};
/// Compares with the pattern; `fault` lies in memory that the device can write, and holds its
/// initial values before.
[[nodiscard]] CudaStatus cuda_check_pattern(const void* memory, std::uint64_t bytes,
                                            std::uint64_t salt, PatternFault* fault,
                                            CudaStream stream) noexcept;

/// A gate in host memory that is registered with the device.
struct GateWords {
  std::uint32_t opened = 0;  ///< the host's: the last ticket that may pass
  std::uint32_t expired = 0; ///< the kernel's: the last ticket that waited in vain
};
/// Keeps `stream` from going on until gate->opened is `ticket`, at most `limit_ns`: then the ticket
/// is entered as expired and the stream goes on, so that nothing can hang.
[[nodiscard]] CudaStatus cuda_hold(GateWords* gate, std::uint32_t ticket, std::uint64_t limit_ns,
                                   CudaStream stream) noexcept;

/// Follows `steps` links of a chain: memory[i] is the index of the next. One thread, so each load
/// waits for the one before. `last` is the final index.
[[nodiscard]] CudaStatus cuda_chase(const std::uint32_t* memory, std::uint64_t steps,
                                    std::uint32_t* last, CudaStream stream) noexcept;

/// Embedding lookup as in recommendation models: out[b] = sum of `bag` rows of `table` that a hash
/// of b chooses. Rows are 128 fp32, `out` has `batch` rows.
inline constexpr std::uint32_t k_embedding_columns = 128;
[[nodiscard]] CudaStatus cuda_embedding(const float* table, std::uint32_t rows, float* out,
                                        std::uint32_t batch, std::uint32_t bag,
                                        CudaStream stream) noexcept;

/// Loads every kernel of this file and of cuda_reduce.hpp on the current device. Loading one while
/// another waits at a gate could wait for that one.
[[nodiscard]] CudaStatus cuda_load_kernels() noexcept;

} // namespace reckon
