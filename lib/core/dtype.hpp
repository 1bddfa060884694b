// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/names.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace reckon {

/// Element types of gradients, and int32 for sums in fixed point on the way.
enum class DType { fp32, fp16, bf16, int32 };

[[nodiscard]] constexpr std::uint64_t size_of(DType t) {
  return t == DType::fp32 || t == DType::int32 ? 4 : 2;
}
inline constexpr std::array<std::string_view, 4> k_dtype_names{"fp32", "fp16", "bf16", "int32"};
[[nodiscard]] constexpr std::string_view name_of(DType t) {
  return k_dtype_names.at(static_cast<std::size_t>(t));
}
/// An element type of gradients: not int32.
[[nodiscard]] constexpr std::optional<DType> dtype_named(std::string_view name) {
  return value_named<DType>(name, std::span(k_dtype_names).first(3));
}

/// A stretch of a gradient buffer: neighbouring tensors of one element type.
struct DTypeRun {
  std::uint64_t offset_bytes = 0, bytes = 0;
  DType dtype = DType::fp32;
  bool operator==(const DTypeRun&) const = default;
};

} // namespace reckon
