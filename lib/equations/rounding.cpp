// SPDX-License-Identifier: Apache-2.0
#include "equations/rounding.hpp"

#include <cmath>

namespace reckon {

double rounding_error(DType dtype, std::uint64_t roundings, std::uint64_t workers) {
  constexpr double k_of_fp32 = 0x1p-24;
  const double of_dtype = dtype == DType::bf16   ? 0x1p-8
                          : dtype == DType::fp16 ? 0x1p-11
                                                 : k_of_fp32;
  return std::expm1(static_cast<double>(roundings) * std::log1p(of_dtype) +
                    static_cast<double>(workers) * std::log1p(k_of_fp32));
}

} // namespace reckon
