// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace reckon {

// The data that processes send each other in measurements, so that what arrives can be checked
// without being kept: they differ from place to place and from seed to seed.

[[nodiscard]] inline std::uint64_t pattern_word(std::uint64_t seed, std::uint64_t word) {
  std::uint64_t x = (word + seed * 0x9e37'79b9'7f4a'7c15) * 0xbf58'476d'1ce4'e5b9;
  x ^= x >> 31U;
  return x * 0x94d0'49bb'1331'11eb;
}

[[nodiscard]] inline std::byte pattern_byte(std::uint64_t seed, std::uint64_t place) {
  return static_cast<std::byte>(pattern_word(seed, place / 8) >> (8 * (place % 8)));
}

/// Whole words only: for memory whose length is a multiple of 8.
inline void fill_with_pattern(std::span<std::byte> memory, std::uint64_t seed) {
  for (std::uint64_t word = 0; 8 * word < memory.size(); ++word) {
    const std::uint64_t value = pattern_word(seed, word);
    std::memcpy(memory.data() + 8 * word, &value, 8);
  }
}

} // namespace reckon
