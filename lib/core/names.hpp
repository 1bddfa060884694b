// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace reckon {

/// The value of an enumeration with this name; `names` are those of its values from 0 on.
template <class E>
[[nodiscard]] constexpr std::optional<E> value_named(std::string_view name,
                                                     std::span<const std::string_view> names) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) {
      return static_cast<E>(i);
    }
  }
  return std::nullopt;
}

} // namespace reckon
