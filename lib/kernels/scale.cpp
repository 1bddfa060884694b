// SPDX-License-Identifier: Apache-2.0
#include "kernels/scale.hpp"

#include "kernels/convert.hpp"

#include <cstdint>

namespace reckon {
namespace {

template <float (*widen)(std::uint16_t), std::uint16_t (*narrow)(float)>
void scale_halves(std::span<std::byte> bytes, float factor) {
  auto* const elements = reinterpret_cast<std::uint16_t*>(bytes.data());
  for (std::size_t i = 0; i < bytes.size() / sizeof *elements; ++i) {
    elements[i] = narrow(widen(elements[i]) * factor);
  }
}

} // namespace

void scale(std::span<std::byte> bytes, DType dtype, double factor) {
  const auto narrowed = static_cast<float>(factor);
  if (factor == 1) {
    return;
  }
  switch (dtype) {
  case DType::fp32: {
    auto* const elements = reinterpret_cast<float*>(bytes.data());
    for (std::size_t i = 0; i < bytes.size() / sizeof *elements; ++i) {
      elements[i] *= narrowed;
    }
    break;
  }
  case DType::fp16:
    scale_halves<fp16_to_float, float_to_fp16>(bytes, narrowed);
    break;
  case DType::bf16:
    scale_halves<bf16_to_float, float_to_bf16>(bytes, narrowed);
    break;
  case DType::int32:
    break; // never a gradient's
  }
}

} // namespace reckon
