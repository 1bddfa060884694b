// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace reckon {

/// The value of a plan's option for a reader: ("part_bytes", "1048576") is "1 MiB", ("tolerance",
/// "0.02") is "2 %", ("port_bandwidth", "12500000000 B/s") is "12.5 GB/s". Other text stays
/// unchanged.
[[nodiscard]] std::string option_text(std::string_view name, std::string_view value);

} // namespace reckon
