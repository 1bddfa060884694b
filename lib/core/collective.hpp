// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/names.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace reckon {

/// The exchange between workers. Of n workers that share M bytes, each has an n-th of its own.
enum class Collective : std::uint8_t {
  all_reduce,     ///< every worker ends with the sum of all
  reduce_scatter, ///< every worker ends with its own n-th of that sum
  all_gather,     ///< every worker begins with its own n-th and ends with all of them
  broadcast,      ///< every worker ends with the root's data
  reduce,         ///< the root ends with the sum of all
};

inline constexpr std::array<std::string_view, 5> k_collective_names{
    "all-reduce", "reduce-scatter", "all-gather", "broadcast", "reduce"};
[[nodiscard]] constexpr std::string_view name_of(Collective c) {
  return k_collective_names.at(static_cast<std::size_t>(c));
}

/// Whether sums are made on the way to the roots.
[[nodiscard]] constexpr bool sums(Collective c) {
  return c == Collective::all_reduce || c == Collective::reduce_scatter || c == Collective::reduce;
}
/// Whether roots give their data to all workers.
[[nodiscard]] constexpr bool gives(Collective c) {
  return c == Collective::all_reduce || c == Collective::all_gather || c == Collective::broadcast;
}
/// Whether every worker is the root of its own n-th.
[[nodiscard]] constexpr bool has_nths(Collective c) {
  return c == Collective::reduce_scatter || c == Collective::all_gather;
}
/// Whether one worker is the root of everything.
[[nodiscard]] constexpr bool has_root(Collective c) {
  return c == Collective::broadcast || c == Collective::reduce;
}

} // namespace reckon
