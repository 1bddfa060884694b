// SPDX-License-Identifier: Apache-2.0
#include "present/ranges.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace reckon {

std::string number_ranges(const std::vector<std::size_t>& numbers) {
  std::string out;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t j = i;
    while (j + 1 < numbers.size() && numbers[j + 1] == numbers[j] + 1) {
      ++j;
    }
    out += fmt::format("{}{}", out.empty() ? "" : ", ", numbers[i]);
    if (j > i) {
      out += fmt::format("-{}", numbers[j]);
    }
    i = j + 1;
  }
  return out;
}

std::string short_digest(std::string text) {
  constexpr std::string_view k_mark = "sha256:";
  constexpr std::size_t k_kept = 12;
  for (std::size_t at = text.find(k_mark); at != text.npos; at = text.find(k_mark, at)) {
    at += k_mark.size();
    const std::size_t end = std::min(text.find_first_not_of("0123456789abcdef", at), text.size());
    if (end - at > k_kept) {
      text.erase(at + k_kept, end - at - k_kept);
    }
  }
  return text;
}

} // namespace reckon
