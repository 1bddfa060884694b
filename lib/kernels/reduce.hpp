// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/dtype.hpp"
#include "core/stores.hpp"

#include <cstddef>
#include <span>

namespace reckon {

/// destination[i] = sources[0][i] + sources[1][i] + ... for i < elements, added in this order, in
/// fp32. fp16 and bf16 are widened, added over all sources and rounded once, to nearest even; an
/// overflow is infinity and a NaN stays a NaN. The result has the same bits on every SIMD width
/// (but for the payload of a NaN). int32 is added modulo 2^32, and always through the caches.
///
/// Pointers need no alignment (64 bytes is best). A source may be the destination itself; any other
/// overlap of the destination with a source is undefined. No sources: zeros. One thread; reads and
/// writes nothing else, so that disjoint ranges may be summed at once.
void sum_into(DType type, void* destination, std::span<const void* const> sources,
              std::size_t elements, Stores stores = Stores::cached) noexcept;

/// operands[k][i] = operands[0][i] + operands[1][i] + ... for every k and for i < elements, added
/// in this order as in sum_into(): each operand becomes the sum of all. Reads and writes each
/// operand once, the least for a sum that all ranks need in their own memory. No two operands may
/// overlap. One thread.
void sum_in_place(DType type, std::span<void* const> operands, std::size_t elements) noexcept;

/// Rounds fp32 at `from` to fp16 or bf16 at `to`, to nearest even, as sum_into() rounds its sums;
/// an overflow is infinity and a NaN stays a NaN. The ranges do not overlap and need no alignment.
/// One thread.
void narrow(DType type, void* to, const void* from, std::size_t elements) noexcept;
/// fp16 or bf16 at `from` as fp32 at `to`, exactly.
void widen(DType type, void* to, const void* from, std::size_t elements) noexcept;

/// The instruction set that the kernels use on this machine, as Highway names it: "AVX3", "AVX2",
/// "NEON", ...
[[nodiscard]] const char* simd_target_name() noexcept;

} // namespace reckon
