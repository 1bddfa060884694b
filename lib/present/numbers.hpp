// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace reckon {

// Numbers of columns: unlike to_text() they keep a fixed number of digits, so that columns align.

/// `digits` significant digits without an exponent: (12.3, 4) "12.30", (0.0123, 2) "0.012".
[[nodiscard]] std::string significant(double value, int digits);
/// "12.34 ms".
[[nodiscard]] std::string time_text(double seconds);
/// In GB/s, without the unit: two decimals from 0.1 on, else two significant digits.
[[nodiscard]] std::string gb_per_s_text(double bytes_per_second);
/// "941.20 MB/s", "11.90 GB/s": a network may be slow.
[[nodiscard]] std::string network_rate_text(double bytes_per_second);
/// "64 B", "4 MiB".
[[nodiscard]] std::string bytes_text(double bytes);
/// "+6.2 %", "-12 %", "x 3.4" from a factor of two on.
[[nodiscard]] std::string change_text(double change);
/// "6.2 %".
[[nodiscard]] std::string percent_text(double fraction);
/// Whether the two ends of a prediction differ by more than rounding.
[[nodiscard]] bool is_range(double low_seconds, double high_seconds);
/// The range of a prediction: "138.1 ms to 150.9 ms", or that there is no range.
[[nodiscard]] std::string range_text(double low_seconds, double high_seconds);
/// By the unit's name in documents: seconds, bytes, bytes_per_second, ratio; otherwise a plain
/// number.
[[nodiscard]] std::string quantity_text(double value, std::string_view unit);

} // namespace reckon
