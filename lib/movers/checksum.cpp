// SPDX-License-Identifier: Apache-2.0
#include "movers/checksum.hpp"

#define XXH_INLINE_ALL // also for what the compiler makes of it: the library knows this processor
                       // no better
#include <xxhash.h>

namespace reckon {

std::uint32_t checksum_of(std::span<const std::byte> bytes) noexcept {
  return bytes.empty() ? 0 : static_cast<std::uint32_t>(XXH3_64bits(bytes.data(), bytes.size()));
}

} // namespace reckon
