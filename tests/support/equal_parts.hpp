// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"

#include <cstdint>

namespace reckon::test {

/// Gives the plan a gradient of so many equal parts of fp32, which have no server yet.
inline void cut_equally(Plan& plan, std::uint64_t parts, std::uint64_t part_bytes,
                        std::uint64_t window) {
  plan.gradient_bytes = parts * part_bytes;
  plan.runs = {{0, plan.gradient_bytes, DType::fp32}};
  plan.part_bytes = part_bytes;
  plan.window_parts = window;
  for (std::uint64_t p = 0; p < parts; ++p) {
    plan.parts.offset_bytes.push_back(p * part_bytes);
    plan.parts.bytes.push_back(part_bytes);
  }
}

} // namespace reckon::test
