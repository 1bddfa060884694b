// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace reckon {

/// Element types of gradients, and int32 for what is summed in fixed point on the way.
enum class DType { fp32, fp16, bf16, int32 };

[[nodiscard]] constexpr std::uint64_t size_of(DType t) {
  return t == DType::fp32 || t == DType::int32 ? 4 : 2;
}
[[nodiscard]] constexpr std::string_view name_of(DType t) {
  switch (t) {
  case DType::fp32:
    return "fp32";
  case DType::fp16:
    return "fp16";
  case DType::bf16:
    return "bf16";
  case DType::int32:
    return "int32";
  }
  return "?";
}
/// Of a gradient: not int32.
[[nodiscard]] constexpr std::optional<DType> dtype_named(std::string_view name) {
  for (const DType t : {DType::fp32, DType::fp16, DType::bf16}) {
    if (name_of(t) == name) {
      return t;
    }
  }
  return std::nullopt;
}

/// A stretch of a gradient buffer: neighbouring tensors of one element type.
struct DTypeRun {
  std::uint64_t offset_bytes = 0, bytes = 0;
  DType dtype = DType::fp32;
  bool operator==(const DTypeRun&) const = default;
};

} // namespace reckon
