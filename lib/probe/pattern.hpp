// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda_probe.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace reckon {

inline constexpr std::uint64_t k_page = 4096;
/// What memory holds before something is to arrive there.
inline constexpr int k_poison = 0xa5;

// The data that measurements copy and that processes send each other, checkable on arrival without
// a stored copy: they differ from place to place and from seed to seed.

[[nodiscard]] inline std::byte pattern_byte(std::uint64_t seed, std::uint64_t place) {
  return static_cast<std::byte>(gpu_pattern_word(place / 8, seed) >> (8 * (place % 8)));
}

/// Whole words only: for memory whose length is a multiple of 8.
inline void fill_with_pattern(std::span<std::byte> memory, std::uint64_t seed) {
  for (std::uint64_t word = 0; 8 * word < memory.size(); ++word) {
    const std::uint64_t value = gpu_pattern_word(word, seed);
    std::memcpy(memory.data() + 8 * word, &value, 8);
  }
}

} // namespace reckon
