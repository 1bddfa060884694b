// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>

namespace reckon {

/// A place in one of a rank's buffers. Buffers are numbered in the order in which they were
/// allocated.
struct Slice {
  std::uint32_t buffer = 0;
  std::uint64_t offset = 0;
  auto operator<=>(const Slice&) const = default;
};

} // namespace reckon
