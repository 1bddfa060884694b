// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace reckon {

/// Nodes of a torus in three dimensions, of --shape as 4x4x4: at least two in all, at most 1e6.
/// Throws Error{usage}.
[[nodiscard]] std::array<std::uint64_t, 3> parse_shape(const std::string& shape);

} // namespace reckon
