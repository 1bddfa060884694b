// SPDX-License-Identifier: Apache-2.0
#include "core/units.hpp"

#include "core/error.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

namespace reckon {
namespace {

struct Quantity {
  double number;
  std::string_view unit;
};

Quantity split(std::string_view text, std::string_view what, std::string_view example) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || !std::isfinite(number)) {
    fail(ErrorKind::usage,
         fmt::format("{}: '{}' is not a number with a unit; write e.g. {}", what, text, example));
  }
  std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  while (!unit.empty() && unit.front() == ' ') {
    unit.remove_prefix(1);
  }
  return {number, unit};
}

template <std::size_t N>
using Table = std::array<std::pair<std::string_view, double>, N>;

template <std::size_t N>
double find_unit(const Table<N>& table, std::string_view unit) {
  for (const auto& [name, factor] : table) {
    if (name == unit) {
      return factor;
    }
  }
  return 0;
}

constexpr double k_ki = 1024.0;
constexpr Table<23> k_size_units{{{"", 1},
                                  {"B", 1},
                                  {"k", k_ki},
                                  {"K", k_ki},
                                  {"m", k_ki* k_ki},
                                  {"M", k_ki* k_ki},
                                  {"g", k_ki* k_ki* k_ki},
                                  {"G", k_ki* k_ki* k_ki},
                                  {"kB", 1e3},
                                  {"KB", 1e3},
                                  {"MB", 1e6},
                                  {"GB", 1e9},
                                  {"TB", 1e12},
                                  {"PB", 1e15},
                                  {"KiB", k_ki},
                                  {"kiB", k_ki},
                                  {"MiB", k_ki* k_ki},
                                  {"GiB", k_ki* k_ki* k_ki},
                                  {"TiB", k_ki* k_ki* k_ki* k_ki},
                                  {"Ki", k_ki},
                                  {"Mi", k_ki* k_ki},
                                  {"Gi", k_ki* k_ki* k_ki},
                                  {"Ti", k_ki* k_ki* k_ki* k_ki}}};

constexpr Table<7> k_time_units{
    {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"µs", 1e-6}, {"ns", 1e-9}, {"min", 60}, {"h", 3600}}};

constexpr Table<9> k_rate_prefixes{{{"", 1},
                                    {"k", 1e3},
                                    {"K", 1e3},
                                    {"M", 1e6},
                                    {"G", 1e9},
                                    {"T", 1e12},
                                    {"Ki", k_ki},
                                    {"Mi", k_ki* k_ki},
                                    {"Gi", k_ki* k_ki* k_ki}}};

/// Bytes per second for one of `unit`; 0 when it is no rate.
double rate_factor(std::string_view unit) {
  const auto strip = [&](std::string_view suffix) {
    if (!unit.ends_with(suffix)) {
      return false;
    }
    unit.remove_suffix(suffix.size());
    return true;
  };
  // The longer spellings first: "bit/s" also ends with the shorter ones' letters.
  if (strip("bit/s") || strip("bits/s") || strip("bps") || strip("b/s")) {
    return find_unit(k_rate_prefixes, unit) / 8;
  }
  if (strip("Bps") || strip("B/s")) {
    return find_unit(k_rate_prefixes, unit);
  }
  return 0;
}

std::string scaled(double value, double step, std::initializer_list<std::string_view> units) {
  const auto* unit = units.begin();
  while (std::abs(value) >= step * 0.99995 && unit + 1 != units.end()) {
    value /= step;
    ++unit;
  }
  return fmt::format("{:.4g} {}", value, *unit);
}

} // namespace

Bytes parse_bytes(std::string_view text, std::string_view what) {
  const auto [number, unit] = split(text, what, "4MiB or 553MB");
  const double factor = find_unit(k_size_units, unit);
  if (factor == 0) {
    fail(ErrorKind::usage, fmt::format("{}: '{}' has no size unit that is known; use B, kB, MB, GB "
                                       "(powers of 1000) or KiB, MiB, GiB",
                                       what, text));
  }
  const double bytes = number * factor;
  if (bytes < 0 || bytes >= 9.2e18) {
    fail(ErrorKind::usage, fmt::format("{}: '{}' must be between 0 and 9.2e18 bytes", what, text));
  }
  if (factor == 1 && bytes != std::round(bytes)) {
    fail(ErrorKind::usage, fmt::format("{}: '{}' is not a whole number of bytes", what, text));
  }
  return Bytes(static_cast<std::uint64_t>(std::llround(bytes)));
}

Bandwidth parse_bandwidth(std::string_view text, std::string_view what) {
  const auto [number, unit] = split(text, what, "100Gb/s or 12.5GB/s");
  const double factor = rate_factor(unit);
  if (factor == 0) {
    fail(ErrorKind::usage,
         fmt::format("{}: '{}' has no rate unit that is known; use Gb/s (bits) or GB/s (bytes)",
                     what, text));
  }
  if (number <= 0) {
    fail(ErrorKind::usage, fmt::format("{}: '{}' must be greater than 0", what, text));
  }
  constexpr double k_most = 1e18; // more than anything has; sums of many stay numbers
  constexpr double k_least = 1e-30;
  if (!(number * factor <= k_most)) {
    fail(ErrorKind::usage, fmt::format("{}: '{}' is more than 1e9 GB/s", what, text));
  }
  if (number * factor < k_least) {
    fail(ErrorKind::usage, fmt::format("{}: '{}' is less than 1e-30 B/s", what, text));
  }
  return Bandwidth::bytes_per_s(number * factor);
}

Seconds parse_seconds(std::string_view text, std::string_view what) {
  const auto [number, unit] = split(text, what, "30s or 5ms");
  const double factor = find_unit(k_time_units, unit);
  if (factor == 0) {
    fail(ErrorKind::usage,
         fmt::format("{}: '{}' has no time unit; use s, ms, us, ns or min", what, text));
  }
  if (number < 0) {
    fail(ErrorKind::usage, fmt::format("{}: '{}' must not be negative", what, text));
  }
  constexpr double k_most = 1e9; // in nanoseconds a whole number of 64 bits
  if (!(number * factor <= k_most)) {
    fail(ErrorKind::usage, fmt::format("{}: '{}' is more than {} s", what, text, k_most));
  }
  return Seconds(number * factor);
}

double parse_fraction(std::string_view text, std::string_view what) {
  const auto [number, unit] = split(text, what, "15% or 0.15");
  if (number < 0 || (!unit.empty() && unit != "%")) {
    fail(ErrorKind::usage,
         fmt::format("{}: '{}' must be a fraction such as 15% or 0.15", what, text));
  }
  return unit == "%" ? number / 100 : number;
}

double parse_factor(std::string_view text, std::string_view what, double least) {
  constexpr double k_most = 1e6;
  const char* const forms = least < 1 ? "0.5, 2x or 50%" : "1.5, 2x or 150%";
  const auto [number, unit] = split(text, what, forms);
  const double factor = unit == "%" ? number / 100 : number;
  if (!(factor >= least && factor <= k_most) || (!unit.empty() && unit != "x" && unit != "%")) {
    fail(ErrorKind::usage, fmt::format("{}: '{}' must be a factor from {} to {}, such as {}", what,
                                       text, least, k_most, forms));
  }
  return factor;
}

std::string to_text(Bytes bytes) {
  return scaled(bytes.as_double(), 1024, {"B", "KiB", "MiB", "GiB", "TiB", "PiB"});
}

std::string to_text(Bandwidth bandwidth) {
  const double v = bandwidth.as_bytes_per_s();
  if (!std::isfinite(v)) {
    return "unlimited";
  }
  return v >= 1e6 ? scaled(v / 1e6, 1000, {"MB/s", "GB/s", "TB/s"})
                  : scaled(v, 1000, {"B/s", "kB/s"});
}

std::string to_text(Seconds seconds) {
  const double v = seconds.count();
  if (v == 0 || !std::isfinite(v)) {
    return fmt::format("{:g} s", v);
  }
  return scaled(v * 1e9, 1000, {"ns", "us", "ms", "s"});
}

std::string counted(std::uint64_t count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

std::string counted(std::uint64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::string faster_text(double part_of_time) {
  constexpr double k_most = 1000;
  if (part_of_time * k_most < 1) {
    return fmt::format("> {:.0f} x faster", k_most);
  }
  return part_of_time <= 0.5 ? fmt::format("{:.1f} x faster", 1 / part_of_time)
                             : fmt::format("{:.1f} % faster", 100 * (1 - part_of_time));
}

} // namespace reckon
