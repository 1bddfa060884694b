// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/dtype.hpp"

#include <cstdint>

namespace reckon {

/// The most that a sum of `workers` gradients, each rounded to `dtype` at most `roundings` times on
/// its way and added in fp32 in between, can be off, as a part of the sum of the gradients'
/// magnitudes (docs/equations.md, 22a). For what neither overflows nor underflows the type.
[[nodiscard]] double rounding_error(DType dtype, std::uint64_t roundings, std::uint64_t workers);

} // namespace reckon
