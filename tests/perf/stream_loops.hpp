// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace reckon::perf {

// STREAM's Copy and Add (J. D. McCalpin, 1995) on fp32 instead of fp64: the yardstick that the
// kernels are held against. In a file of their own, so that they are compiled as STREAM is and
// never inlined.
void stream_copy(float* c, const float* a, std::size_t elements);
void stream_add(float* c, const float* a, const float* b, std::size_t elements);

} // namespace reckon::perf
