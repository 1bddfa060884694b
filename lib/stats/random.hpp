// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <random>

namespace reckon {

/// Uniform in [0, n), n > 0. std::uniform_int_distribution gives other numbers in other standard
/// libraries; this gives the same everywhere.
[[nodiscard]] std::size_t uniform_index(std::mt19937_64& engine, std::size_t n);
/// Uniform in [0, 1), a multiple of 2^-53; the same everywhere.
[[nodiscard]] double uniform_unit(std::mt19937_64& engine);

} // namespace reckon
