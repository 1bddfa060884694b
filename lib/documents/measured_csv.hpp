// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "stats/curve.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Measurements in a user's table, for `reckon solve`. All functions throw Error{input} as
/// "FILE:LINE: problem; remedy".
namespace reckon {

/// CSV with the columns bytes and `column`, in any order: whole sizes up to 2^53, ascending, each
/// once, and numbers above 0: seconds, or a factor. At least one line. lo and hi of each point are
/// its number.
[[nodiscard]] std::vector<CurvePoint> curve_from_csv(std::string_view text, const std::string& file,
                                                     std::string_view column = "seconds");

/// Bandwidths between endpoints.
struct BandwidthMatrix {
  std::vector<std::string> names;
  /// [from][to] in bytes per second; absent without a link, and from each endpoint to itself.
  std::vector<std::vector<std::optional<double>>> bytes_per_s;
};

/// CSV whose header line is "from" and the endpoints' names, and one line for each of them with its
/// name and the bandwidth to each, in bytes per second; an empty field is no link. Fields from an
/// endpoint to itself are not read. Names in the order of the header. At least two endpoints.
[[nodiscard]] BandwidthMatrix matrix_from_csv(std::string_view text, const std::string& file);

} // namespace reckon
