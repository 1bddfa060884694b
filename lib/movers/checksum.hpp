// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace reckon {

/// 32 bits of XXH3; 0 of nothing. Against accidents of networks and memory: whoever means to can
/// make bytes of the same checksum.
[[nodiscard]] std::uint32_t checksum_of(std::span<const std::byte> bytes) noexcept;

} // namespace reckon
