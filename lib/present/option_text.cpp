// SPDX-License-Identifier: Apache-2.0
#include "present/option_text.hpp"

#include "compare/quantity_unit.hpp"
#include "present/numbers.hpp"

#include <charconv>

namespace reckon {

std::string option_text(std::string_view name, std::string_view value) {
  constexpr std::string_view k_range = " +-"; // "12500000000 B/s +-10%"
  if (const std::size_t at = value.find(k_range); at != value.npos) {
    return option_text(name, value.substr(0, at)) + std::string(value.substr(at));
  }
  double number = 0;
  const char* const end = value.data() + value.size();
  const auto [rest, error] = std::from_chars(value.data(), end, number);
  const std::string_view suffix(rest, static_cast<std::size_t>(end - rest));
  const std::string_view unit = suffix == " B/s"            ? "bytes_per_second"
                                : suffix == " s"            ? "seconds"
                                : !suffix.empty()           ? ""
                                : name == "bandwidth_slack" ? "ratio"
                                                            : unit_of_quantity(name);
  return error != std::errc{} || unit.empty() ? std::string(value) : quantity_text(number, unit);
}

} // namespace reckon
