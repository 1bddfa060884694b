// SPDX-License-Identifier: Apache-2.0
#include "present/ranges.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <system_error>

namespace reckon {

std::string number_ranges(const std::vector<std::size_t>& numbers, std::string_view word) {
  std::string out;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t j = i;
    while (j + 1 < numbers.size() && numbers[j + 1] == numbers[j] + 1) {
      ++j;
    }
    out += fmt::format("{}{}{}", out.empty() ? "" : ", ", word, numbers[i]);
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

NumberRanges::NumberRanges(std::string_view text) {
  std::string between;
  while (!text.empty()) {
    // A number that stands alone: "fp32" and "0000:17:00.0" are names.
    const bool may_begin = between.empty() || between.back() == ' ' || between.back() == '(';
    double value = 0;
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
    const auto length = static_cast<std::size_t>(end - text.data());
    const bool ends = length == text.size() ||
                      std::string_view(" ,;)%").find(text[length]) != std::string_view::npos;
    if (may_begin && text.front() >= '0' && text.front() <= '9' && error == std::errc{} && ends) {
      const std::string written(text.substr(0, length));
      m_numbers.push_back({value, value, written, written});
      m_between.push_back(std::move(between));
      between.clear();
      text.remove_prefix(length);
    } else {
      between += text.front();
      text.remove_prefix(1);
    }
  }
  m_between.push_back(std::move(between));
}

std::string NumberRanges::skeleton() const {
  return fmt::format("{}", fmt::join(m_between, "\1")); // a character that no text contains
}

void NumberRanges::merge(const NumberRanges& other) {
  if (m_between.empty()) {
    *this = other;
    return;
  }
  for (std::size_t i = 0; i < m_numbers.size(); ++i) {
    const Number& theirs = other.m_numbers[i];
    Number& ours = m_numbers[i];
    if (theirs.low_value < ours.low_value) {
      ours.low_value = theirs.low_value;
      ours.low = theirs.low;
    }
    if (theirs.high_value > ours.high_value) {
      ours.high_value = theirs.high_value;
      ours.high = theirs.high;
    }
  }
}

std::string NumberRanges::text() const {
  std::string out;
  for (std::size_t i = 0; i < m_between.size(); ++i) {
    out += m_between[i];
    if (i < m_numbers.size()) {
      const Number& n = m_numbers[i];
      out += n.low_value == n.high_value ? n.low : n.low + " to " + n.high;
    }
  }
  return out;
}

} // namespace reckon
