// SPDX-License-Identifier: Apache-2.0
#include "present/plot.hpp"
#include "present/style.hpp"

namespace reckon {

std::string quoted_for_gnuplot(std::string_view text) {
  constexpr std::size_t k_most_columns = 160;
  const std::string clean = printable(text);
  const std::string_view kept = first_columns(clean, k_most_columns);
  std::string out = "'";
  for (const char c : kept) {
    if (c == '\'' || c == '`') {
      out += "\u2019";
    } else {
      out += c;
    }
  }
  return out + (kept.size() < clean.size() ? "...'" : "'");
}

std::string tic_for_gnuplot(std::string_view text) {
  std::string out;
  for (const char c : quoted_for_gnuplot(text)) {
    out += c == '%' ? "%%" : std::string(1, c);
  }
  return out;
}

} // namespace reckon
