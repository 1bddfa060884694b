// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace reckon {

/// A rank whose own work takes longer than planned.
struct Straggler {
  std::uint32_t rank = 0;
  double factor = 1; ///< times as long; at least 1
  bool operator==(const Straggler&) const = default;
};

/// Parses "3=2x" or "rank=3:2", in this order, for a job of this many ranks. Throws Error{usage}
/// that names --straggler, also when a rank comes twice.
[[nodiscard]] std::vector<Straggler> parse_stragglers(std::span<const std::string> texts,
                                                      std::size_t ranks);

} // namespace reckon
