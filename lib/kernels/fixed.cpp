// SPDX-License-Identifier: Apache-2.0
#include "kernels/fixed.hpp"

#include <cmath>
#include <cstring>

// Compiled once for each instruction set; see reduce.cpp.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/fixed.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace reckon {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// Calls some(tag, i) for whole vectors, then for the rest one by one.
template <class Element, class Some>
HWY_INLINE void over_all(std::size_t elements, const Some& some) {
  const hn::ScalableTag<Element> whole;
  const std::size_t lanes = hn::Lanes(whole);
  std::size_t i = 0;
  for (; i + lanes <= elements; i += lanes) {
    some(whole, i);
  }
  const hn::CappedTag<Element, 1> one;
  for (; i < elements; ++i) {
    some(one, i);
  }
}

void to_fixed_on_target(float* to, const float* from, std::size_t elements, float scale,
                        float limit) {
  over_all<float>(elements, [=](auto tag, std::size_t i) HWY_ATTR {
    const hn::RebindToSigned<decltype(tag)> whole_numbers;
    const auto low = hn::Set(tag, -limit);
    const auto value = hn::Mul(hn::LoadU(tag, from + i), hn::Set(tag, scale));
    const auto held = hn::Max(hn::Min(value, hn::Set(tag, limit)), low);
    const auto number = hn::IfThenElse(hn::IsNaN(value), low, held);
    static_cast<void>(whole_numbers);
    hn::StoreU(hn::BitCast(tag, hn::NearestInt(number)), tag, to + i);
  });
}

void from_fixed_on_target(float* to, const float* from, std::size_t elements, float scale) {
  over_all<float>(elements, [=](auto tag, std::size_t i) HWY_ATTR {
    const hn::RebindToSigned<decltype(tag)> whole_numbers;
    const auto number = hn::BitCast(whole_numbers, hn::LoadU(tag, from + i));
    hn::StoreU(hn::Mul(hn::ConvertTo(tag, number), hn::Set(tag, scale)), tag, to + i);
  });
}

void sum_on_target(std::int32_t* to, const void* const* sources, std::size_t count,
                   std::size_t elements) {
  over_all<std::int32_t>(elements, [=](auto tag, std::size_t i) HWY_ATTR {
    auto sum = hn::LoadU(tag, static_cast<const std::int32_t*>(sources[0]) + i);
    for (std::size_t s = 1; s < count; ++s) {
      sum = hn::Add(sum, hn::LoadU(tag, static_cast<const std::int32_t*>(sources[s]) + i));
    }
    hn::StoreU(sum, tag, to + i);
  });
}

} // namespace
} // namespace HWY_NAMESPACE
} // namespace reckon
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reckon {
namespace {
HWY_EXPORT(to_fixed_on_target);
HWY_EXPORT(from_fixed_on_target);
HWY_EXPORT(sum_on_target);
} // namespace

void to_fixed(void* to, const void* from, std::size_t elements, int exponent,
              std::int32_t limit) noexcept {
  auto held = static_cast<float>(limit); // may have been rounded up, out of int32
  if (static_cast<double>(held) > static_cast<double>(limit)) {
    held = std::nextafter(held, 0.0F);
  }
  HWY_DYNAMIC_DISPATCH(to_fixed_on_target)
  (static_cast<float*>(to), static_cast<const float*>(from), elements, std::ldexp(1.0F, exponent),
   held);
}

void from_fixed(void* to, const void* from, std::size_t elements, int exponent) noexcept {
  HWY_DYNAMIC_DISPATCH(from_fixed_on_target)
  (static_cast<float*>(to), static_cast<const float*>(from), elements, std::ldexp(1.0F, -exponent));
}

void sum_int32_into(void* to, std::span<const void* const> sources, std::size_t elements) noexcept {
  if (sources.empty()) {
    std::memset(to, 0, elements * sizeof(std::int32_t));
    return;
  }
  HWY_DYNAMIC_DISPATCH(sum_on_target)
  (static_cast<std::int32_t*>(to), sources.data(), sources.size(), elements);
}

} // namespace reckon
#endif
