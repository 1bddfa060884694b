// SPDX-License-Identifier: Apache-2.0
#include "stream_loops.hpp"

namespace reckon::perf {

// STREAM's arrays are globals, which the compiler knows to be distinct; __restrict tells it the
// same of these.
void stream_copy(float* __restrict c, const float* __restrict a, std::size_t elements) {
  for (std::size_t i = 0; i < elements; ++i) {
    c[i] = a[i];
  }
}

void stream_add(float* __restrict c, const float* __restrict a, const float* __restrict b,
                std::size_t elements) {
  for (std::size_t i = 0; i < elements; ++i) {
    c[i] = a[i] + b[i];
  }
}

} // namespace reckon::perf
