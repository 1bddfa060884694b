// SPDX-License-Identifier: Apache-2.0
#include "core/name_ranges.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <set>

namespace reckon {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

} // namespace

std::vector<std::string> name_ranges(const std::vector<std::string>& names) {
  std::map<std::string, std::set<std::uint64_t>> numbers; // by word
  std::vector<std::string> out;
  for (const std::string& name : names) {
    constexpr std::size_t k_most_digits = 9;
    const std::size_t digits = name.find_last_not_of("0123456789") + 1;
    std::uint64_t number = 0;
    std::from_chars(name.data() + digits, name.data() + name.size(), number);
    if (digits == name.size() || name.size() - digits > k_most_digits ||
        name.substr(digits) != std::to_string(number)) {
      out.push_back(name);
    } else {
      numbers[name.substr(0, digits)].insert(number);
    }
  }
  for (const auto& [word, all] : numbers) {
    for (auto it = all.begin(); it != all.end();) {
      const std::uint64_t first = *it;
      std::uint64_t last = first;
      while (++it != all.end() && *it == last + 1) {
        last = *it;
      }
      out.push_back(first == last ? fmt::format("{}{}", word, first)
                                  : fmt::format("{}{}-{}", word, first, last));
    }
  }
  return out;
}

bool natural_less(const std::string& a, const std::string& b) {
  std::size_t i = 0;
  std::size_t j = 0;
  const auto number_at = [](const std::string& s, std::size_t& at) {
    const std::size_t begin = std::min(s.find_first_not_of('0', at), s.size());
    std::size_t end = begin;
    while (end < s.size() && is_digit(s[end])) {
      ++end;
    }
    at = end;
    return s.substr(begin, end - begin);
  };
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      const std::string x = number_at(a, i);
      const std::string y = number_at(b, j);
      if (x.size() != y.size()) {
        return x.size() < y.size();
      }
      if (x != y) {
        return x < y;
      }
      continue;
    }
    if (a[i] != b[j]) {
      return a[i] < b[j];
    }
    ++i;
    ++j;
  }
  // What is equal but for leading zeros still needs an order.
  return a.size() - i != b.size() - j ? a.size() - i < b.size() - j : a < b;
}

std::string first_names(const std::vector<std::string>& names, std::size_t most) {
  const std::size_t named = std::min(names.size(), most);
  const auto end = names.begin() + static_cast<std::ptrdiff_t>(named);
  return fmt::format("{}{}", fmt::join(names.begin(), end, ", "),
                     named < names.size() ? fmt::format(" and {} more", names.size() - named) : "");
}

} // namespace reckon
