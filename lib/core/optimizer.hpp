// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace reckon {

/// The optimizers of BytePS figure 9b.
enum class Optimizer : std::uint8_t { sgd, momentum, rmsprop, adam };

[[nodiscard]] constexpr std::string_view name_of(Optimizer o) {
  switch (o) {
  case Optimizer::sgd:
    return "sgd";
  case Optimizer::momentum:
    return "momentum";
  case Optimizer::rmsprop:
    return "rmsprop";
  case Optimizer::adam:
    return "adam";
  }
  return "?";
}

[[nodiscard]] constexpr std::optional<Optimizer> optimizer_named(std::string_view name) {
  for (const Optimizer o :
       {Optimizer::sgd, Optimizer::momentum, Optimizer::rmsprop, Optimizer::adam}) {
    if (name_of(o) == name) {
      return o;
    }
  }
  return std::nullopt;
}

/// fp32 arrays of state beside the parameters: 0, 1, 1, 2.
[[nodiscard]] constexpr std::size_t state_arrays(Optimizer o) {
  return o == Optimizer::sgd ? 0 : (o == Optimizer::adam ? 2 : 1);
}

/// The learning rate of every step that a plan makes. A power of two, so that SGD on whole numbers
/// is exact: asynchronous additions then give the same bits in any order. The other scalars are
/// the defaults of kernels/optimizer.hpp.
inline constexpr float k_learning_rate = 0x1p-6F;

} // namespace reckon
