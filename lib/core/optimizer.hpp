// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/names.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace reckon {

/// The optimizers of BytePS figure 9b.
enum class Optimizer : std::uint8_t { sgd, momentum, rmsprop, adam };

inline constexpr std::array<std::string_view, 4> k_optimizer_names{"sgd", "momentum", "rmsprop",
                                                                   "adam"};
[[nodiscard]] constexpr std::string_view name_of(Optimizer o) {
  return k_optimizer_names.at(static_cast<std::size_t>(o));
}
[[nodiscard]] constexpr std::optional<Optimizer> optimizer_named(std::string_view name) {
  return value_named<Optimizer>(name, k_optimizer_names);
}

/// fp32 arrays of state beside the parameters: 0, 1, 1, 2.
[[nodiscard]] constexpr std::size_t state_arrays(Optimizer o) {
  return o == Optimizer::sgd ? 0 : (o == Optimizer::adam ? 2 : 1);
}

/// The learning rate of every step in a plan. A power of two, so that SGD on whole numbers is
/// exact: asynchronous additions then give the same bits in any order. The other scalars are the
/// defaults of kernels/optimizer.hpp.
inline constexpr float k_learning_rate = 0x1p-6F;

} // namespace reckon
