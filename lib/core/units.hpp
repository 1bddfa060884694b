// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace reckon {

/// Time. Nanoseconds, microseconds, ... of std::chrono convert implicitly.
using Seconds = std::chrono::duration<double>;

/// An amount of data. No implicit conversion from or to a number.
class Bytes {
public:
  constexpr Bytes() = default;
  constexpr explicit Bytes(std::uint64_t count) : m_count(count) {}
  [[nodiscard]] constexpr std::uint64_t count() const { return m_count; }
  [[nodiscard]] constexpr double as_double() const { return static_cast<double>(m_count); }
  constexpr auto operator<=>(const Bytes&) const = default;

private:
  std::uint64_t m_count = 0;
};

inline constexpr std::uint64_t k_kib = std::uint64_t{1} << 10U, k_mib = std::uint64_t{1} << 20U;

/// Data per time, in bytes per second.
class Bandwidth {
public:
  Bandwidth() = delete;
  [[nodiscard]] static constexpr Bandwidth bytes_per_s(double value) { return Bandwidth(value); }
  [[nodiscard]] constexpr double as_bytes_per_s() const { return m_bytes_per_s; }
  constexpr auto operator<=>(const Bandwidth&) const = default;

private:
  constexpr explicit Bandwidth(double value) : m_bytes_per_s(value) {}
  double m_bytes_per_s;
};

/// "4MiB" = 4 * 2^20, "553MB" = 553e6, "64k" = 64 * 2^10 (as NCCL's and UCX's flags mean it),
/// "4096" = bytes. A fraction of a greater unit is rounded to the nearest byte: "3.3GiB". Bits
/// ("4Mb"), negative sizes, fractions of a byte ("0.5B") and overflowing sizes throw Error{usage}
/// that names `what`.
[[nodiscard]] Bytes parse_bytes(std::string_view text, std::string_view what);
/// "100Gb/s", "100Gbit/s", "100Gbps" are bits; "12.5GB/s", "12.5GiB/s" are bytes. A unit is
/// required; must be > 0.
[[nodiscard]] Bandwidth parse_bandwidth(std::string_view text, std::string_view what);
/// "30s", "5ms", "10us", "100ns", "2min". A unit is required; must be >= 0.
[[nodiscard]] Seconds parse_seconds(std::string_view text, std::string_view what);
/// "15%" or "0.15"; must be >= 0 and finite.
[[nodiscard]] double parse_fraction(std::string_view text, std::string_view what);
/// "0.5", "2x" or "50%"; from `least` to 1e6.
[[nodiscard]] double parse_factor(std::string_view text, std::string_view what, double least);

/// For people: "64 B", "1.5 MiB" (powers of 2, at most 4 significant digits).
[[nodiscard]] std::string to_text(Bytes bytes);
/// For people: "12.34 GB/s" (GB = 1e9 bytes).
[[nodiscard]] std::string to_text(Bandwidth bandwidth);
/// For people: "12.34 ms".
[[nodiscard]] std::string to_text(Seconds seconds);
/// For people: "1 tensor", "3 tensors"; or with a plural of its own.
[[nodiscard]] std::string counted(std::uint64_t count, std::string_view one);
[[nodiscard]] std::string counted(std::uint64_t count, std::string_view one, std::string_view many);
/// The speed-up of something that takes this fraction of the time, from 0 to 1: "12 % faster" is
/// that much less time, and from half of it on "2.5 x faster".
[[nodiscard]] std::string faster_text(double part_of_time);

} // namespace reckon
