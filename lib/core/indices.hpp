// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <numeric>
#include <vector>

namespace reckon {

/// 0 to count - 1.
[[nodiscard]] inline std::vector<std::size_t> indices(std::size_t count) {
  std::vector<std::size_t> all(count);
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

} // namespace reckon
