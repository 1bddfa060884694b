// SPDX-License-Identifier: Apache-2.0
#include "present/numbers.hpp"

#include "core/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace reckon {

std::string significant(double value, int digits) {
  if (value == 0 || !std::isfinite(value)) {
    return fmt::format("{:g}", value);
  }
  if (std::abs(value) < std::numeric_limits<double>::min()) { // no more digits than it has
    return fmt::format("{:.{}g}", value, digits);
  }
  // Rounded first: 9.9996 with four digits is 10.00, not 10.000.
  const double rounded = std::strtod(fmt::format("{:.{}e}", value, digits - 1).c_str(), nullptr);
  if (!std::isfinite(rounded)) {
    return fmt::format("{:.{}g}", value, digits);
  }
  const int before_point = static_cast<int>(std::floor(std::log10(std::abs(rounded)))) + 1;
  return fmt::format("{:.{}f}", rounded, std::max(0, digits - before_point));
}

std::string time_text(double seconds) {
  constexpr std::array<std::string_view, 4> k_units{"ns", "us", "ms", "s"};
  constexpr double k_rounding = 1e-12; // of a difference of times; nothing here is so short
  if (std::abs(seconds) < k_rounding) {
    return "0 s";
  }
  if (!std::isfinite(seconds)) {
    return fmt::format("{:g} s", seconds);
  }
  double value = seconds * 1e9;
  std::size_t unit = 0;
  while (std::abs(value) >= 999.95 && unit + 1 < k_units.size()) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{} {}", significant(value, 4), k_units[unit]);
}

std::string gb_per_s_text(double bytes_per_second) {
  const double v = bytes_per_second / 1e9;
  return std::abs(v) >= 0.095 || v == 0 ? fmt::format("{:.2f}", v) : significant(v, 3);
}

std::string network_rate_text(double bytes_per_second) {
  return bytes_per_second < 1e9 ? fmt::format("{:.2f} MB/s", bytes_per_second * 1e-6)
                                : fmt::format("{:.2f} GB/s", bytes_per_second * 1e-9);
}

std::string bytes_text(double bytes) {
  return to_text(Bytes(static_cast<std::uint64_t>(std::llround(std::clamp(bytes, 0.0, 9e18)))));
}

std::string change_text(double change) {
  constexpr double k_most = 1000;
  if (change <= -1) { // to nothing, or to the other sign: no part of what it was
    return "";
  }
  if (change >= k_most || change < 1 / k_most - 1) {
    return change > 0 ? fmt::format("x > {:.0f}", k_most) : fmt::format("x < {:g}", 1 / k_most);
  }
  if (change >= 1 || change < -0.5) {
    return fmt::format("x {}", significant(1 + change, 2));
  }
  const double percent = change * 100;
  if (change != 0 && std::abs(percent) < 0.005) { // "-0.00 %" would be none
    return "< 0.01 %";
  }
  const int decimals = std::abs(percent) >= 10 ? 0 : (std::abs(percent) >= 1 ? 1 : 2);
  return fmt::format("{:+.{}f} %", percent, decimals);
}

std::string percent_text(double fraction) {
  const double percent = fraction * 100;
  const int decimals =
      percent == 0 || std::abs(percent) >= 10 ? 0 : (std::abs(percent) >= 1 ? 1 : 2);
  return fmt::format("{:.{}f} %", percent, decimals);
}

bool is_range(double low_seconds, double high_seconds) {
  constexpr double k_rounding = 1e-9;
  return high_seconds > low_seconds * (1 + k_rounding);
}

std::string range_text(double low_seconds, double high_seconds) {
  return is_range(low_seconds, high_seconds)
             ? fmt::format("{} to {}", time_text(low_seconds), time_text(high_seconds))
             : "no range: no rate has three samples that differ";
}

std::string quantity_text(double value, std::string_view unit) {
  if (unit == "seconds") {
    return time_text(value);
  }
  if (unit == "bytes") {
    return value >= 0 ? bytes_text(value) : "-" + bytes_text(-value);
  }
  if (unit == "bytes_per_second") {
    return to_text(Bandwidth::bytes_per_s(value));
  }
  if (unit == "ratio") {
    return percent_text(value);
  }
  return fmt::format("{:.6g}", value);
}

} // namespace reckon
