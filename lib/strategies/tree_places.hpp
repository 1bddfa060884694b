// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace reckon {

/// What a lowered plan with trees has in a rank's memory beside its gradient (buffer 0).
inline constexpr std::uint32_t k_inbox_buffer = 1; ///< what children sent
inline constexpr std::uint32_t k_sum_buffer = 2; ///< of a rank without a gradient: sums, or what it
                                                 ///< passes on
/// Of a place for one part: the plan's part_bytes in whole pages.
[[nodiscard]] std::uint64_t slot_bytes(const Plan& plan);

/// A tree as its ranks see it.
struct TreePlaces {
  std::uint32_t root = 0;
  std::vector<std::vector<std::uint32_t>> up_children, down_children; ///< by rank
};

/// Of plan.trees[number]. Throws Error{input} when it does not hold every worker once, as far as
/// the collective uses it, or some rank hands on what it cannot have.
[[nodiscard]] TreePlaces tree_places(const Plan& plan, std::size_t number);

} // namespace reckon
