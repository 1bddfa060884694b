// SPDX-License-Identifier: Apache-2.0
#include "kernels/reduce.hpp"

#include "each_target.hpp"
#include "kernels/convert.hpp"
#include "stats/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <vector>

namespace reckon {
namespace {

using test::for_each_target;
using Buffer = std::vector<std::uint8_t>;

constexpr std::array k_types = {DType::fp32, DType::fp16, DType::bf16};
constexpr std::array k_stores = {Stores::cached, Stores::streaming};

float element(DType type, const std::uint8_t* from) {
  if (type == DType::fp32) {
    float value = 0;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  std::uint16_t half = 0;
  std::memcpy(&half, from, sizeof half);
  return type == DType::fp16 ? fp16_to_float(half) : bf16_to_float(half);
}

void set_element(DType type, std::uint8_t* to, float value) {
  if (type == DType::fp32) {
    std::memcpy(to, &value, sizeof value);
    return;
  }
  const std::uint16_t half = type == DType::fp16 ? float_to_fp16(value) : float_to_bf16(value);
  std::memcpy(to, &half, sizeof half);
}

/// One element after another, left to right, in fp32, rounded once: what sum_into promises.
void reference_sum(DType type, std::uint8_t* out, const std::vector<const void*>& sources,
                   std::size_t elements) {
  const std::size_t width = size_of(type);
  for (std::size_t i = 0; i < elements; ++i) {
    float sum = element(type, static_cast<const std::uint8_t*>(sources[0]) + i * width);
    for (std::size_t k = 1; k < sources.size(); ++k) {
      sum += element(type, static_cast<const std::uint8_t*>(sources[k]) + i * width);
    }
    set_element(type, out + i * width, sum);
  }
}

/// Equal bits, but for the payload of NaNs, which depends on the order of an addition's operands.
void expect_same(DType type, const std::uint8_t* got, const std::uint8_t* expected,
                 std::size_t elements) {
  const std::size_t width = size_of(type);
  for (std::size_t i = 0; i < elements; ++i) {
    const float e = element(type, expected + i * width);
    const float g = element(type, got + i * width);
    if (std::isnan(e)) {
      ASSERT_TRUE(std::isnan(g)) << name_of(type) << " element " << i << " of " << elements;
    } else {
      ASSERT_EQ(std::memcmp(got + i * width, expected + i * width, width), 0)
          << name_of(type) << " element " << i << " of " << elements << ": got " << g
          << ", expected " << e;
    }
  }
}

/// Any bits at all, so infinities, NaNs and subnormals too; every fourth round only tame numbers,
/// since among fp16's 65536 values one in 32 is a NaN, and sums of many sources would be little
/// else.
void fill(DType type, std::uint8_t* to, std::size_t elements, std::mt19937_64& engine, bool tame) {
  const std::size_t width = size_of(type);
  for (std::size_t i = 0; i < elements; ++i) {
    if (tame) {
      set_element(type, to + i * width, static_cast<float>(uniform_unit(engine) - 0.5));
    } else {
      const std::uint64_t bits = engine();
      std::memcpy(to + i * width, &bits, width);
    }
  }
}

TEST(SumInto, UsesTheTargetItIsToldSoThatTheseTestsTestEveryOne) {
  std::set<std::string> names;
  for_each_target([&] { names.insert(simd_target_name()); });
  EXPECT_EQ(names.size(), hwy::SupportedAndGeneratedTargets().size());
}

TEST(SumInto, AddsEverySizeAtEveryAlignment) {
  constexpr std::uint64_t seed = 7101;
  SCOPED_TRACE(seed);
  constexpr std::size_t k_margin = 128;
  for_each_target([&] {
    std::mt19937_64 engine(seed);
    std::vector<std::size_t> sizes;
    for (std::size_t n = 0; n <= 200; ++n) {
      sizes.push_back(n);
    }
    for (const std::size_t n : {255U, 257U, 1023U, 1024U, 1025U, 2047U, 2049U, 10007U}) {
      sizes.push_back(n);
    }
    for (const std::size_t n : sizes) {
      for (const DType type : k_types) {
        const std::size_t bytes = n * size_of(type);
        const bool tame = uniform_index(engine, 4) == 0;
        const std::size_t count = 1 + uniform_index(engine, n > 1000 ? 20 : 11);
        std::vector<Buffer> buffers(count);
        std::vector<const void*> sources;
        for (Buffer& b : buffers) {
          b.resize(bytes + 80);
          const std::size_t offset = uniform_index(engine, 80); // odd ones too
          fill(type, b.data() + offset, n, engine, tame);
          sources.push_back(b.data() + offset);
        }
        Buffer expected(bytes);
        reference_sum(type, expected.data(), sources, n);
        for (const Stores stores : k_stores) {
          Buffer out(k_margin + bytes + k_margin, 0xA5);
          // The streaming path wants aligned elements, the other takes anything.
          const std::size_t offset = uniform_index(engine, 64);
          sum_into(type, out.data() + offset, sources, n, stores);
          expect_same(type, out.data() + offset, expected.data(), n);
          if (testing::Test::HasFatalFailure()) {
            return;
          }
          const auto untouched = [](std::uint8_t x) { return x == 0xA5; };
          const auto first = out.begin() + static_cast<std::ptrdiff_t>(offset);
          ASSERT_TRUE(std::all_of(out.begin(), first, untouched)) << n;
          ASSERT_TRUE(std::all_of(first + static_cast<std::ptrdiff_t>(bytes), out.end(), untouched))
              << n;
        }
      }
    }
  });
}

TEST(SumInto, InPlaceGivesTheSameWhicheverSourceTheDestinationIs) {
  constexpr std::uint64_t seed = 7102;
  SCOPED_TRACE(seed);
  for_each_target([&] {
    std::mt19937_64 engine(seed);
    for (const std::size_t count : {1U, 2U, 3U, 4U, 5U, 8U, 9U, 17U}) {
      for (const DType type : k_types) {
        for (const Stores stores : k_stores) {
          const std::size_t n = 5003;
          const std::size_t width = size_of(type);
          const std::size_t offset = uniform_index(engine, 5);
          std::vector<Buffer> buffers(count, Buffer(n * width + 8));
          std::vector<const void*> sources;
          for (Buffer& b : buffers) {
            fill(type, b.data() + offset, n, engine, true);
            sources.push_back(b.data() + offset);
          }
          Buffer expected(n * width);
          reference_sum(type, expected.data(), sources, n);
          const std::size_t in_place = uniform_index(engine, count);
          sum_into(type, buffers[in_place].data() + offset, sources, n, stores);
          expect_same(type, buffers[in_place].data() + offset, expected.data(), n);
        }
      }
    }
  });
}

TEST(SumInto, ASourceMayBeGivenTwice) {
  std::vector<float> a{1, 2, 3, 4, 5};
  std::vector<float> out(5);
  sum_into(DType::fp32, out.data(), std::vector<const void*>{a.data(), a.data(), a.data()}, 5);
  EXPECT_EQ(out, (std::vector<float>{3, 6, 9, 12, 15}));
}

TEST(SumInto, NoSourcesGiveZerosAndNoElementsNothing) {
  std::vector<float> out{1, 2, 3};
  sum_into(DType::fp32, out.data(), {}, 2);
  EXPECT_EQ(out, (std::vector<float>{0, 0, 3}));
  sum_into(DType::fp32, nullptr, std::vector<const void*>{nullptr, nullptr}, 0);
}

/// All 65536 bit patterns.
std::vector<std::uint16_t> every_half() {
  std::vector<std::uint16_t> all(65536);
  std::iota(all.begin(), all.end(), std::uint16_t{0});
  return all;
}

TEST(SumInto, OneSourceCopiesEveryHalfAsItIs) {
  for_each_target([&] {
    for (const DType type : {DType::fp16, DType::bf16}) {
      const std::vector<std::uint16_t> in = every_half();
      std::vector<std::uint16_t> out(65536);
      sum_into(type, out.data(), std::vector<const void*>{in.data()}, in.size());
      for (std::size_t h = 0; h < in.size(); ++h) {
        // A NaN is made quiet; everything else, -0 too, stays. (The lanes beside it must not
        // matter.)
        const auto half = static_cast<std::uint16_t>(h);
        const std::uint16_t expected = type == DType::fp16 ? float_to_fp16(fp16_to_float(half))
                                                           : float_to_bf16(bf16_to_float(half));
        ASSERT_EQ(out[h], expected) << name_of(type) << ' ' << h;
      }
    }
  });
}

TEST(SumInto, RoundsEveryHalfPlusAnAwkwardOneAsTheReferenceDoes) {
  // Addends that put the sum on and next to ties of every exponent: the other operand runs through
  // all 65536.
  for_each_target([&] {
    for (const DType type : {DType::fp16, DType::bf16}) {
      const std::vector<std::uint16_t> all = every_half();
      for (const unsigned addend :
           {0x0001U, 0x8001U, 0x03FFU, 0x0400U, 0x3C00U, 0x3C01U, 0x3BFFU, 0xBC01U, 0x3F80U,
            0x3F81U, 0x7BFFU, 0x7C00U, 0x7F7FU, 0x7F80U, 0xFF80U, 0x8000U, 0x1000U, 0x5555U}) {
        std::vector<std::uint16_t> same(65536, static_cast<std::uint16_t>(addend));
        const std::vector<const void*> sources{all.data(), same.data()};
        std::vector<std::uint16_t> out(65536);
        sum_into(type, out.data(), sources, out.size());
        std::vector<std::uint16_t> expected(65536);
        reference_sum(type, reinterpret_cast<std::uint8_t*>(expected.data()), sources,
                      expected.size());
        expect_same(type, reinterpret_cast<const std::uint8_t*>(out.data()),
                    reinterpret_cast<const std::uint8_t*>(expected.data()), out.size());
      }
    }
  });
}

TEST(SumInto, HalvesAreRoundedOnceOverAllSources) {
  // fp16: 2048 + 1 ties to 2048, so that rounding after each of the 16 ones would stay at 2048.
  // Rounded once, and across the passes of 4 sources, it is 2064. bf16, 8 bits: 256 + 16 ones = 272
  // likewise.
  for_each_target([&] {
    for (const DType type : {DType::fp16, DType::bf16}) {
      const float base = type == DType::fp16 ? 2048 : 256;
      std::vector<std::uint16_t> first(37);
      std::vector<std::uint16_t> one(37);
      for (std::size_t i = 0; i < first.size(); ++i) {
        set_element(type, reinterpret_cast<std::uint8_t*>(&first[i]), base);
        set_element(type, reinterpret_cast<std::uint8_t*>(&one[i]), 1);
      }
      std::vector<const void*> sources(17, one.data());
      sources[0] = first.data();
      std::vector<std::uint16_t> out(37);
      sum_into(type, out.data(), sources, out.size());
      for (const std::uint16_t& h : out) {
        ASSERT_EQ(element(type, reinterpret_cast<const std::uint8_t*>(&h)), base + 16);
      }
    }
  });
}

TEST(SumInto, AddsInTheOrderGiven) {
  // 1e8 + 1 is 1e8 in fp32 (ulp 8): (1e8 + 1) - 1e8 is 0 and (1e8 - 1e8) + 1 is 1. The same across
  // passes.
  for_each_target([&] {
    const std::vector<float> big(11, 1e8F);
    const std::vector<float> minus(11, -1e8F);
    const std::vector<float> one(11, 1.0F);
    const std::vector<float> zero(11, 0.0F);
    std::vector<float> out(11);
    sum_into(DType::fp32, out.data(),
             std::vector<const void*>{big.data(), one.data(), minus.data()}, 11);
    EXPECT_EQ(out, zero);
    sum_into(DType::fp32, out.data(),
             std::vector<const void*>{big.data(), minus.data(), one.data()}, 11);
    EXPECT_EQ(out, one);
    std::vector<const void*> many(10, zero.data());
    many[3] = big.data();
    many[4] = one.data(); // passes begin at 4 and at 8
    many[9] = minus.data();
    sum_into(DType::fp32, out.data(), many, 11);
    EXPECT_EQ(out, zero);
  });
}

TEST(SumInto, SpecialValuesOfFp32Pass) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float tiny = std::numeric_limits<float>::denorm_min();
  const float most = std::numeric_limits<float>::max();
  for_each_target([&] {
    const std::vector<float> a{inf, inf, nan, tiny, most, -0.0F, tiny, 1};
    const std::vector<float> b{1, -inf, 1, tiny, most, -0.0F, -tiny, -1};
    std::vector<float> out(a.size());
    sum_into(DType::fp32, out.data(), std::vector<const void*>{a.data(), b.data()}, a.size());
    EXPECT_EQ(out[0], inf);
    EXPECT_TRUE(std::isnan(out[1]));
    EXPECT_TRUE(std::isnan(out[2]));
    EXPECT_EQ(out[3], 2 * tiny); // not flushed to zero
    EXPECT_EQ(out[4], inf);
    EXPECT_EQ(out[5], 0);
    EXPECT_TRUE(std::signbit(out[5]));
    EXPECT_EQ(out[6], 0);
    EXPECT_EQ(out[7], 0);
    EXPECT_FALSE(std::signbit(out[7]));
  });
}

TEST(Conversions, EveryHalfIsWidenedAndNarrowedBackExactly) {
  for_each_target([] {
    for (const DType type : {DType::fp16, DType::bf16}) {
      std::vector<std::uint16_t> halves(65536), back(65536);
      std::iota(halves.begin(), halves.end(), std::uint16_t{0});
      std::vector<float> wide(halves.size());
      widen(type, wide.data(), halves.data(), halves.size());
      narrow(type, back.data(), wide.data(), wide.size());
      for (std::size_t i = 0; i < halves.size(); ++i) {
        const float expected = element(type, reinterpret_cast<const std::uint8_t*>(&halves[i]));
        if (std::isnan(expected)) {
          ASSERT_TRUE(std::isnan(wide[i])) << i;
          ASSERT_TRUE(std::isnan(element(type, reinterpret_cast<std::uint8_t*>(&back[i])))) << i;
        } else {
          ASSERT_EQ(std::bit_cast<std::uint32_t>(wide[i]), std::bit_cast<std::uint32_t>(expected));
          ASSERT_EQ(back[i], halves[i]) << name_of(type);
        }
      }
    }
  });
}

TEST(Conversions, RoundAsTheReferenceAtEveryAlignmentAndTouchNothingElse) {
  constexpr std::uint64_t seed = 7102;
  SCOPED_TRACE(seed);
  for_each_target([&] {
    std::mt19937_64 engine(seed);
    for (std::size_t n = 0; n <= 200; ++n) {
      for (const DType type : {DType::fp16, DType::bf16}) {
        const std::size_t from = uniform_index(engine, 64), to = uniform_index(engine, 64);
        Buffer wide(n * sizeof(float) + 64), out(n * 2 + 128, 0xA5), expected = out;
        fill(DType::fp32, wide.data() + from, n, engine, uniform_index(engine, 2) == 0);
        for (std::size_t i = 0; i < n; ++i) {
          set_element(type, expected.data() + to + 2 * i,
                      element(DType::fp32, wide.data() + from + 4 * i));
        }
        narrow(type, out.data() + to, wide.data() + from, n);
        expect_same(type, out.data() + to, expected.data() + to, n);
        ASSERT_TRUE(std::equal(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(to),
                               expected.begin()));
        ASSERT_TRUE(std::equal(out.begin() + static_cast<std::ptrdiff_t>(to + 2 * n), out.end(),
                               expected.begin() + static_cast<std::ptrdiff_t>(to + 2 * n)));
      }
    }
  });
}

TEST(SumInPlace, GivesEveryOperandTheSumOfAllAtEveryAlignment) {
  constexpr std::uint64_t seed = 7107;
  SCOPED_TRACE(seed);
  constexpr std::size_t k_margin = 80;
  for_each_target([&] {
    std::mt19937_64 engine(seed);
    for (const std::size_t n : {0U, 1U, 3U, 31U, 64U, 200U, 1023U, 1025U, 3000U, 10007U}) {
      for (const DType type : k_types) {
        for (const std::size_t count : {1U, 2U, 3U, 8U, 9U, 13U}) {
          const std::size_t bytes = n * size_of(type);
          const bool tame = uniform_index(engine, 4) == 0, alike = uniform_index(engine, 2) == 0;
          const std::size_t common = uniform_index(engine, k_margin);
          std::vector<Buffer> buffers(count, Buffer(bytes + 2 * k_margin, 0xA5));
          std::vector<std::size_t> offsets;
          std::vector<void*> operands;
          for (Buffer& b : buffers) {
            offsets.push_back(alike ? common : uniform_index(engine, k_margin));
            fill(type, b.data() + offsets.back(), n, engine, tame);
            operands.push_back(b.data() + offsets.back());
          }
          Buffer expected(bytes);
          reference_sum(type, expected.data(), {operands.begin(), operands.end()}, n);
          sum_in_place(type, operands, n);
          for (std::size_t k = 0; k < count; ++k) {
            expect_same(type, buffers[k].data() + offsets[k], expected.data(), n);
            const auto untouched = [](std::uint8_t x) { return x == 0xA5; };
            const auto first = buffers[k].begin() + static_cast<std::ptrdiff_t>(offsets[k]);
            ASSERT_TRUE(std::all_of(buffers[k].begin(), first, untouched)) << n;
            ASSERT_TRUE(std::all_of(first + static_cast<std::ptrdiff_t>(bytes), buffers[k].end(),
                                    untouched))
                << n;
            if (testing::Test::HasFatalFailure()) {
              return;
            }
          }
        }
      }
    }
  });
}

TEST(SumInPlace, AddsWholeNumbersModulo) {
  std::vector<std::int32_t> a{1, std::numeric_limits<std::int32_t>::max()}, b{2, 1}, c{3, 0};
  std::vector<void*> operands{a.data(), b.data(), c.data()};
  sum_in_place(DType::int32, operands, 2);
  const std::vector<std::int32_t> sum{6, std::numeric_limits<std::int32_t>::min()};
  EXPECT_EQ(a, sum);
  EXPECT_EQ(b, sum);
  EXPECT_EQ(c, sum);
}

} // namespace
} // namespace reckon
