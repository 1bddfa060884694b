// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/names.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace reckon {

/// The stores of a sum: PHub's aggregator has temporal and non-temporal stores.
enum class Stores : std::uint8_t {
  /// Through the caches: right when the sum is read soon, as by a send of a part.
  cached,
  /// Around the caches, without reading the destination first: a destination that is no source then
  /// costs one memory transfer an element instead of two. For sums that leave the caches anyway.
  streaming,
};

inline constexpr std::array<std::string_view, 2> k_stores_names{"cached", "streaming"};
[[nodiscard]] constexpr std::string_view name_of(Stores stores) {
  return k_stores_names.at(static_cast<std::size_t>(stores));
}
[[nodiscard]] constexpr std::optional<Stores> stores_named(std::string_view name) {
  return value_named<Stores>(name, k_stores_names);
}

} // namespace reckon
