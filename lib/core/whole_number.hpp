// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace reckon {

/// The whole number that all of `text` is, in digits of `base`, after a minus sign where T is
/// signed; absent for other text or if T is too small for it.
template <class T>
[[nodiscard]] std::optional<T> whole_number(std::string_view text, int base = 10) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value, base);
  return error == std::errc{} && rest == end ? std::optional(value) : std::nullopt;
}

} // namespace reckon
