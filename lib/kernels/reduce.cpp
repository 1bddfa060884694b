// SPDX-License-Identifier: Apache-2.0
#include "kernels/reduce.hpp"

#include "kernels/fixed.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

// Highway compiles this file again for every target: what lies between HWY_BEFORE_NAMESPACE and
// HWY_AFTER_NAMESPACE exists once for each instruction set, the rest (HWY_ONCE) once.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <hwy/cache_control.h>

HWY_BEFORE_NAMESPACE();
namespace reckon {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// All arithmetic is in vectors of fp32; halves are loaded as as many 16-bit lanes.
using F32 = hn::ScalableTag<float>;
using U32 = hn::RebindToUnsigned<F32>;
using I32 = hn::RebindToSigned<F32>;
using U16 = hn::Rebind<std::uint16_t, F32>;
using VecF32 = hn::Vec<F32>;
using VecU16 = hn::Vec<U16>;

template <class Tag>
HWY_INLINE hn::Vec<Tag> load(Tag tag, const std::uint8_t* from) {
  using Element = hn::TFromD<Tag>;
#if HWY_TARGET == HWY_SCALAR
  Element element; // a plain load would need an aligned pointer
  std::memcpy(&element, from, sizeof element);
  return hn::Set(tag, element);
#else
  return hn::LoadU(tag, reinterpret_cast<const Element*>(from));
#endif
}

template <class Tag>
HWY_INLINE void store(hn::Vec<Tag> vector, Tag tag, std::uint8_t* to) {
  using Element = hn::TFromD<Tag>;
#if HWY_TARGET == HWY_SCALAR
  static_cast<void>(tag);
  const Element element = hn::GetLane(vector);
  std::memcpy(to, &element, sizeof element);
#else
  hn::StoreU(vector, tag, reinterpret_cast<Element*>(to));
#endif
}

// An element type: how many bytes, how a vector of them is read as fp32 and written. stream()
// writes two vectors around the caches, to an address aligned to a whole vector.

struct Fp32 {
  static constexpr std::size_t k_bytes = 4;
  static HWY_INLINE VecF32 read(const std::uint8_t* from) { return load(F32(), from); }
  static HWY_INLINE void write(VecF32 value, std::uint8_t* to) { store(value, F32(), to); }
  static HWY_INLINE void stream(VecF32 first, VecF32 second, std::uint8_t* to) {
    auto* const aligned = reinterpret_cast<float*>(to);
    hn::Stream(first, F32(), aligned);
    hn::Stream(second, F32(), aligned + hn::Lanes(F32()));
  }
};

/// What the two half types share: Rounding::narrow gives the 16-bit lanes.
template <class Rounding>
struct HalfWriter {
  static HWY_INLINE void write(VecF32 value, std::uint8_t* to) {
    store(Rounding::narrow(value), U16(), to);
  }
  static HWY_INLINE void stream(VecF32 first, VecF32 second, std::uint8_t* to) {
#if HWY_TARGET == HWY_SCALAR
    write(first, to);
    write(second, to + sizeof(std::uint16_t));
#else
    // A streaming store of half a vector does not exist everywhere.
    const hn::Twice<U16> both;
    hn::Stream(hn::Combine(both, Rounding::narrow(second), Rounding::narrow(first)), both,
               reinterpret_cast<std::uint16_t*>(to));
#endif
  }
};

/// The low 16 bits of every lane; the high ones must be 0.
HWY_INLINE VecU16 low_halves(hn::Vec<U32> bits) {
  return hn::DemoteTo(U16(), hn::BitCast(I32(), bits));
}

struct Bf16 : HalfWriter<Bf16> {
  static constexpr std::size_t k_bytes = 2;
  static HWY_INLINE VecF32 read(const std::uint8_t* from) {
    const auto bits = hn::PromoteTo(U32(), load(U16(), from));
    return hn::BitCast(F32(), hn::ShiftLeft<16>(bits));
  }
  // Highway's own conversion truncates on some targets, so it is not used.
  static HWY_INLINE VecU16 narrow(VecF32 value) {
    const U32 u32;
    const auto bits = hn::BitCast(u32, value);
    const auto high = hn::ShiftRight<16>(bits);
    const auto odd = hn::And(high, hn::Set(u32, 1));
    const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(hn::Set(u32, 0x7FFF), odd)));
    const auto quiet = hn::Or(high, hn::Set(u32, 0x0040));
    const auto is_nan = hn::RebindMask(u32, hn::IsNaN(value));
    return low_halves(hn::IfThenElse(is_nan, quiet, rounded));
  }
};

struct Fp16 : HalfWriter<Fp16> {
  static constexpr std::size_t k_bytes = 2;
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2 && !defined(HWY_DISABLE_F16C)
  // These targets convert in hardware: all cases of IEEE 754, rounding to nearest even.
  using Half = hn::Rebind<hwy::float16_t, F32>;
  static HWY_INLINE VecF32 read(const std::uint8_t* from) {
    return hn::PromoteTo(F32(), hn::BitCast(Half(), load(U16(), from)));
  }
  static HWY_INLINE VecU16 narrow(VecF32 value) {
    return hn::BitCast(U16(), hn::DemoteTo(Half(), value));
  }
#else
  // Highway's replacements know neither infinities nor NaN nor rounding; these do what convert.hpp
  // does.
  static HWY_INLINE VecF32 read(const std::uint8_t* from) {
    const U32 u32;
    const auto half = hn::PromoteTo(u32, load(U16(), from));
    const auto sign = hn::ShiftLeft<16>(hn::And(half, hn::Set(u32, 0x8000)));
    const auto magnitude = hn::And(half, hn::Set(u32, 0x7FFF));
    const auto shifted = hn::ShiftLeft<13>(magnitude);
    const auto normal = hn::Add(shifted, hn::Set(u32, 112U << 23U));
    const auto special = hn::Or(shifted, hn::Set(u32, 0x7F80'0000U));
    const auto fraction = hn::ConvertTo(F32(), hn::BitCast(I32(), magnitude));
    const auto subnormal = hn::BitCast(u32, hn::Mul(fraction, hn::Set(F32(), 0x1p-24F)));
    // As signed numbers, since not every target compares unsigned ones.
    const auto m = hn::BitCast(I32(), magnitude);
    const auto is_special = hn::RebindMask(u32, hn::Gt(m, hn::Set(I32(), 0x7BFF)));
    const auto is_subnormal = hn::RebindMask(u32, hn::Lt(m, hn::Set(I32(), 0x0400)));
    const auto bits =
        hn::IfThenElse(is_subnormal, subnormal, hn::IfThenElse(is_special, special, normal));
    return hn::BitCast(F32(), hn::Or(sign, bits));
  }
  static HWY_INLINE VecU16 narrow(VecF32 value) {
    const U32 u32;
    const auto bits = hn::BitCast(u32, value);
    const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(u32, 0x8000));
    const auto magnitude = hn::And(bits, hn::Set(u32, 0x7FFF'FFFFU));
    // 65536 rounds to the infinity of fp16, so whatever is larger may be taken as that.
    const auto m = hn::Min(hn::BitCast(I32(), magnitude), hn::Set(I32(), 0x4780'0000));
    const auto clamped = hn::BitCast(u32, m);
    const auto odd = hn::And(hn::ShiftRight<13>(clamped), hn::Set(u32, 1));
    const auto normal = hn::ShiftRight<13>(
        hn::Sub(hn::Add(clamped, hn::Add(hn::Set(u32, 0xFFF), odd)), hn::Set(u32, 112U << 23U)));
    const auto raised = hn::Add(hn::BitCast(F32(), clamped), hn::Set(F32(), 0.5F));
    const auto subnormal = hn::Sub(hn::BitCast(u32, raised), hn::Set(u32, 0x3F00'0000U));
    const auto fraction = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(u32, 0x3FF));
    const auto nan = hn::Or(fraction, hn::Set(u32, 0x7E00));
    const auto is_nan = hn::RebindMask(u32, hn::IsNaN(value));
    const auto is_subnormal = hn::RebindMask(u32, hn::Lt(m, hn::Set(I32(), 0x3880'0000)));
    const auto half = hn::IfThenElse(is_nan, nan, hn::IfThenElse(is_subnormal, subnormal, normal));
    return low_halves(hn::Or(sign, half));
  }
#endif
};

/// Sources that one pass adds. More come in further passes over blocks whose fp32 sum stays in the
/// L1 cache (4 KiB of it). Measured on Zen 5, 8 sources from memory, as fractions of STREAM's Add:
/// 4 at once 0.99 for fp32 and 0.94 for halves; 8 at once 0.96 and 0.72, with five times the code;
/// blocks of 4096 elements 0.8 for halves.
constexpr std::size_t k_most_at_once = 4;
constexpr std::size_t k_block = 1024;

/// Adds elements [at, at + count) of all sources, count <= lanes, through a buffer: nothing outside
/// is touched. Not one function for every number of sources, since only the ends of a range come
/// here.
template <class In, class Out>
HWY_NOINLINE void fold_few(std::uint8_t* out, const float* onto,
                           std::span<const std::uint8_t* const> sources, std::size_t at,
                           std::size_t count) {
  HWY_ALIGN std::array<std::uint8_t, HWY_MAX_BYTES> buffer{};
  VecF32 sum = hn::Zero(F32());
  bool started = onto != nullptr;
  if (started) {
    std::memcpy(buffer.data(), onto + at, count * sizeof(float));
    sum = Fp32::read(buffer.data());
  }
  for (const std::uint8_t* source : sources) {
    std::memcpy(buffer.data(), source + at * In::k_bytes, count * In::k_bytes);
    const VecF32 term = In::read(buffer.data());
    // Not 0 + term for the first: that would lose the sign of -0.
    sum = started ? hn::Add(sum, term) : term;
    started = true;
  }
  Out::write(sum, buffer.data());
  std::memcpy(out + at * Out::k_bytes, buffer.data(), count * Out::k_bytes);
}

template <class In, std::size_t N, bool k_onto>
HWY_INLINE VecF32 fold_vector(const float* onto, const std::array<const std::uint8_t*, N>& sources,
                              std::size_t at) {
  VecF32 sum = In::read(sources[0] + at * In::k_bytes);
  if constexpr (k_onto) {
    sum = hn::Add(hn::LoadU(F32(), onto + at), sum);
  }
  for (std::size_t k = 1; k < N; ++k) {
    sum = hn::Add(sum, In::read(sources[k] + at * In::k_bytes));
  }
  return sum;
}

/// out[i] = (onto[i] +) sources[0][i] + ... + sources[N - 1][i]. `onto` may be `out`.
template <class In, std::size_t N, class Out, bool k_onto>
void fold(std::uint8_t* out, const float* onto, const void* const* from, std::size_t offset,
          std::size_t elements, bool streaming) {
  std::array<const std::uint8_t*, N> sources;
  for (std::size_t k = 0; k < N; ++k) {
    sources[k] = static_cast<const std::uint8_t*>(from[k]) + offset * In::k_bytes;
  }
  const std::size_t lanes = hn::Lanes(F32());
  const std::size_t vector_bytes = lanes * sizeof(float);
  // Vectors that straddle two cache lines cost double, most of all when stored: bring `out` into
  // step first.
  const std::size_t ahead =
      (vector_bytes - reinterpret_cast<std::uintptr_t>(out) % vector_bytes) % vector_bytes;
  const bool alignable = ahead % Out::k_bytes == 0;
  const std::size_t head = alignable ? std::min(elements, ahead / Out::k_bytes) : 0;
  std::size_t i = 0;
  while (i < head) {
    const std::size_t count = std::min(lanes, head - i);
    fold_few<In, Out>(out, onto, sources, i, count);
    i += count;
  }
  if (streaming && alignable) {
    for (; i + 2 * lanes <= elements; i += 2 * lanes) {
      Out::stream(fold_vector<In, N, k_onto>(onto, sources, i),
                  fold_vector<In, N, k_onto>(onto, sources, i + lanes), out + i * Out::k_bytes);
    }
  }
  for (; i + 2 * lanes <= elements; i += 2 * lanes) {
    // Both sums before the first store: the compiler may not move a load over a store that could
    // alias it.
    const VecF32 first = fold_vector<In, N, k_onto>(onto, sources, i);
    const VecF32 second = fold_vector<In, N, k_onto>(onto, sources, i + lanes);
    Out::write(first, out + i * Out::k_bytes);
    Out::write(second, out + (i + lanes) * Out::k_bytes);
  }
  while (i < elements) {
    const std::size_t count = std::min(lanes, elements - i);
    fold_few<In, Out>(out, onto, sources, i, count);
    i += count;
  }
}

using FoldFunction = void (*)(std::uint8_t*, const float*, const void* const*, std::size_t,
                              std::size_t, bool);

template <class In, class Out, bool k_onto>
FoldFunction fold_of(std::size_t count) {
  static constexpr std::array<FoldFunction, k_most_at_once> functions = {
      fold<In, 1, Out, k_onto>, fold<In, 2, Out, k_onto>, fold<In, 3, Out, k_onto>,
      fold<In, 4, Out, k_onto>};
  return functions[count - 1];
}

/// Elements [begin, end) of the sum of all sources, to those of `out`.
template <class Type>
void sum_of_type(std::uint8_t* out, const void* const* sources, std::size_t count,
                 std::size_t begin, std::size_t end, bool streaming) {
  if (count <= k_most_at_once) {
    fold_of<Type, Type, false>(count)(out + begin * Type::k_bytes, nullptr, sources, begin,
                                      end - begin, streaming);
    return;
  }
  HWY_ALIGN std::array<float, k_block> partial;
  auto* const partial_bytes = reinterpret_cast<std::uint8_t*>(partial.data());
  for (std::size_t at = begin; at < end; at += k_block) {
    const std::size_t n = std::min(k_block, end - at);
    fold<Type, k_most_at_once, Fp32, false>(partial_bytes, nullptr, sources, at, n, false);
    std::size_t done = k_most_at_once;
    for (; count - done > k_most_at_once; done += k_most_at_once) {
      fold<Type, k_most_at_once, Fp32, true>(partial_bytes, partial.data(), sources + done, at, n,
                                             false);
    }
    fold_of<Type, Type, true>(count - done)(out + at * Type::k_bytes, partial.data(),
                                            sources + done, at, n, streaming);
  }
}

/// operands[k][i] = operands[0][i] + ... + operands[N - 1][i] for whole pairs of vectors; returns
/// how many elements that were.
template <class Type, std::size_t N>
std::size_t fold_everywhere(void* const* operands, std::size_t offset, std::size_t elements) {
  std::array<std::uint8_t*, N> at;
  std::array<const std::uint8_t*, N> from;
  for (std::size_t k = 0; k < N; ++k) {
    from[k] = at[k] = static_cast<std::uint8_t*>(operands[k]) + offset * Type::k_bytes;
  }
  const std::size_t lanes = hn::Lanes(F32());
  std::size_t i = 0;
  for (; i + 2 * lanes <= elements; i += 2 * lanes) {
    const VecF32 first = fold_vector<Type, N, false>(nullptr, from, i);
    const VecF32 second = fold_vector<Type, N, false>(nullptr, from, i + lanes);
    for (std::size_t k = 0; k < N; ++k) {
      Type::write(first, at[k] + i * Type::k_bytes);
      Type::write(second, at[k] + (i + lanes) * Type::k_bytes);
    }
  }
  return i;
}

using EverywhereFunction = std::size_t (*)(void* const*, std::size_t, std::size_t);

/// Operands that one pass adds and writes. Of more the sum goes to the first, block by block, and
/// is copied from the cache.
constexpr std::size_t k_most_everywhere = 8;

template <class Type, std::size_t... N>
EverywhereFunction everywhere_of(std::size_t count, std::index_sequence<N...> /*unused*/) {
  static constexpr std::array<EverywhereFunction, sizeof...(N)> functions = {
      fold_everywhere<Type, N + 1>...};
  return functions[count - 1];
}

template <class Type>
void sum_type_in_place(void* const* operands, std::size_t count, std::size_t elements) {
  auto* const first = static_cast<std::uint8_t*>(operands[0]);
  const auto by_blocks = [&](std::size_t begin, std::size_t end) {
    for (; begin < end; begin += k_block) {
      const std::size_t n = std::min(k_block, end - begin), at = begin * Type::k_bytes;
      sum_of_type<Type>(first, operands, count, begin, begin + n, false);
      for (std::size_t k = 1; k < count; ++k) {
        std::memcpy(static_cast<std::uint8_t*>(operands[k]) + at, first + at, n * Type::k_bytes);
      }
    }
  };
  std::size_t done = 0;
  if (count <= k_most_everywhere) {
    // As in fold(): vectors that straddle two cache lines cost double.
    const std::size_t vector_bytes = hn::Lanes(F32()) * sizeof(float);
    const std::size_t ahead =
        (vector_bytes - reinterpret_cast<std::uintptr_t>(first) % vector_bytes) % vector_bytes;
    done = ahead % Type::k_bytes == 0 ? std::min(elements, ahead / Type::k_bytes) : 0;
    by_blocks(0, done);
    done += everywhere_of<Type>(count, std::make_index_sequence<k_most_everywhere>())(
        operands, done, elements - done);
  }
  by_blocks(done, elements);
}

void sum_in_place_on_target(DType type, void* const* operands, std::size_t count,
                            std::size_t elements) {
  switch (type) {
  case DType::fp32:
    sum_type_in_place<Fp32>(operands, count, elements);
    break;
  case DType::fp16:
    sum_type_in_place<Fp16>(operands, count, elements);
    break;
  case DType::bf16:
    sum_type_in_place<Bf16>(operands, count, elements);
    break;
  case DType::int32:
    break; // sum_in_place() does it
  }
}

void sum_on_target(DType type, std::uint8_t* out, const void* const* sources, std::size_t count,
                   std::size_t elements, bool streaming) {
  switch (type) {
  case DType::fp32:
    sum_of_type<Fp32>(out, sources, count, 0, elements, streaming);
    break;
  case DType::fp16:
    sum_of_type<Fp16>(out, sources, count, 0, elements, streaming);
    break;
  case DType::bf16:
    sum_of_type<Bf16>(out, sources, count, 0, elements, streaming);
    break;
  case DType::int32:
    break; // sum_into() does it
  }
  if (streaming) {
    hwy::FlushStream(); // or another thread could see the flag that says "done" before the sum
  }
}

/// Elements of fp32 as those of a half type, or back.
template <class In, class Out>
void convert_type(void* to, const void* from, std::size_t elements) {
  fold<In, 1, Out, false>(static_cast<std::uint8_t*>(to), nullptr, &from, 0, elements, false);
}

void narrow_on_target(DType type, void* to, const float* from, std::size_t elements) {
  type == DType::bf16 ? convert_type<Fp32, Bf16>(to, from, elements)
                      : convert_type<Fp32, Fp16>(to, from, elements);
}

void widen_on_target(DType type, float* to, const void* from, std::size_t elements) {
  type == DType::bf16 ? convert_type<Bf16, Fp32>(to, from, elements)
                      : convert_type<Fp16, Fp32>(to, from, elements);
}

const char* name_on_target() {
  return hwy::TargetName(HWY_TARGET);
}

} // namespace
} // namespace HWY_NAMESPACE
} // namespace reckon
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reckon {
namespace {
HWY_EXPORT(sum_on_target);
HWY_EXPORT(sum_in_place_on_target);
HWY_EXPORT(narrow_on_target);
HWY_EXPORT(widen_on_target);
HWY_EXPORT(name_on_target);
} // namespace

void sum_into(DType type, void* destination, std::span<const void* const> sources,
              std::size_t elements, Stores stores) noexcept {
  if (elements == 0) {
    return;
  }
  if (type == DType::int32) {
    sum_int32_into(destination, sources, elements);
    return;
  }
  if (sources.empty()) {
    std::memset(destination, 0, elements * size_of(type));
    return;
  }
  HWY_DYNAMIC_DISPATCH(sum_on_target)
  (type, static_cast<std::uint8_t*>(destination), sources.data(), sources.size(), elements,
   stores == Stores::streaming);
}

void sum_in_place(DType type, std::span<void* const> operands, std::size_t elements) noexcept {
  if (elements == 0 || operands.empty()) {
    return;
  }
  if (type == DType::int32) {
    const std::size_t bytes = elements * size_of(type);
    sum_int32_into(operands[0], {operands.data(), operands.size()}, elements);
    for (void* const operand : operands.subspan(1)) {
      std::memcpy(operand, operands[0], bytes);
    }
    return;
  }
  HWY_DYNAMIC_DISPATCH(sum_in_place_on_target)
  (type, operands.data(), operands.size(), elements);
}

void narrow(DType type, void* to, const void* from, std::size_t elements) noexcept {
  HWY_DYNAMIC_DISPATCH(narrow_on_target)(type, to, static_cast<const float*>(from), elements);
}

void widen(DType type, void* to, const void* from, std::size_t elements) noexcept {
  HWY_DYNAMIC_DISPATCH(widen_on_target)(type, static_cast<float*>(to), from, elements);
}

const char* simd_target_name() noexcept {
  return HWY_DYNAMIC_DISPATCH(name_on_target)();
}

} // namespace reckon
#endif
