// SPDX-License-Identifier: Apache-2.0
#include "gpu.hpp"

#include "kernels/convert.hpp"
#include "kernels/cuda_probe.hpp"
#include "kernels/reduce.hpp"

#include <cmath>
#include <cstdint>
#include <random>

namespace reckon {
namespace {

class GpuSums : public test::OnGpu {
protected:
  static bool is_nan(DType type, const std::byte* at) {
    if (type == DType::fp32) {
      float value = 0;
      std::memcpy(&value, at, sizeof value);
      return std::isnan(value);
    }
    std::uint16_t half = 0;
    std::memcpy(&half, at, sizeof half);
    return std::isnan(type == DType::fp16 ? fp16_to_float(half) : bf16_to_float(half));
  }

  /// Any bits at all, infinities, NaNs and subnormals too, at an offset from an aligned address.
  void compare(DType type, std::size_t sources, std::size_t elements, std::size_t offset,
               std::mt19937_64& engine) {
    SCOPED_TRACE(std::string(name_of(type)) + " " + std::to_string(sources) + " sources, " +
                 std::to_string(elements) + " elements, offset " + std::to_string(offset));
    const std::size_t bytes = elements * size_of(type);
    const std::size_t room = (offset + bytes + 511) / 256 * 256;
    std::vector<std::byte> all(room * (sources + 1));
    for (std::size_t i = 0; i + 8 <= all.size(); i += 8) {
      const std::uint64_t bits = engine();
      std::memcpy(all.data() + i, &bits, 8);
    }
    const GpuMemory memory(gpus(), 0, all.size());
    copy(memory.data(), all.data(), all.size());
    std::vector<const void*> here;
    std::vector<const void*> there;
    for (std::size_t s = 0; s < sources; ++s) {
      here.push_back(all.data() + s * room + offset);
      there.push_back(memory.data() + s * room + offset);
    }
    const std::size_t out = sources * room + offset;
    ok(gpus().sum(type, memory.data() + out, there, elements, 0, stream()));
    ok(gpus().synchronize(stream()));
    std::vector<std::byte> got(all.size());
    copy(got.data(), memory.data(), got.size());
    sum_into(type, all.data() + out, here, elements);
    for (std::size_t i = 0; i < elements; ++i) {
      const std::size_t at = out + i * size_of(type);
      if (type != DType::int32 && is_nan(type, all.data() + at)) {
        ASSERT_TRUE(is_nan(type, got.data() + at)) << "element " << i;
      } else {
        ASSERT_EQ(std::memcmp(got.data() + at, all.data() + at, size_of(type)), 0)
            << "element " << i;
      }
    }
    // Nothing but the sum was written.
    ASSERT_EQ(std::memcmp(got.data(), all.data(), out), 0);
    const std::size_t after = out + bytes;
    ASSERT_EQ(std::memcmp(got.data() + after, all.data() + after, all.size() - after), 0);
  }
};

TEST_F(GpuSums, HaveTheProcessorsBitsForEveryTypeNumberOfSourcesSizeAndAlignment) {
  constexpr std::uint64_t k_seed = 4401;
  SCOPED_TRACE(k_seed);
  std::mt19937_64 engine(k_seed);
  for (const DType type : {DType::fp32, DType::fp16, DType::bf16, DType::int32}) {
    for (const std::size_t sources : {1U, 2U, 3U, 4U, 5U, 8U, 33U}) {
      for (const std::size_t elements : {1U, 7U, 16U, 1000U, 70'001U}) {
        for (const std::size_t offset : {0U, 4U, 12U}) {
          compare(type, sources, elements, offset, engine);
        }
      }
    }
  }
}

TEST_F(GpuSums, RoundHalvesOnceToNearestEven) {
  // 2048 + 1 + 1 in fp16, whose places are 2 apart from 2048 on: rounded once it is 2050; rounded
  // after each addition 2048.
  const std::array<std::uint16_t, 3> terms{float_to_fp16(2048), float_to_fp16(1), float_to_fp16(1)};
  const GpuMemory memory(gpus(), 0, 4096);
  std::vector<const void*> there;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    copy(memory.data() + 256 * i, reinterpret_cast<const std::byte*>(&terms[i]), 2);
    there.push_back(memory.data() + 256 * i);
  }
  ok(gpus().sum(DType::fp16, memory.data() + 1024, there, 1, 0, stream()));
  ok(gpus().synchronize(stream()));
  std::uint16_t sum = 0;
  copy(reinterpret_cast<std::byte*>(&sum), memory.data() + 1024, 2);
  EXPECT_EQ(fp16_to_float(sum), 2050.0F);
}

TEST_F(GpuSums, MayOverwriteTheirFirstSource) {
  constexpr std::size_t k_elements = 100'000;
  std::vector<float> ones(k_elements, 1.0F);
  const GpuMemory memory(gpus(), 0, 2 * k_elements * sizeof(float));
  std::byte* const second = memory.data() + k_elements * sizeof(float);
  copy(memory.data(), reinterpret_cast<const std::byte*>(ones.data()), k_elements * 4);
  copy(second, reinterpret_cast<const std::byte*>(ones.data()), k_elements * 4);
  const std::array<const void*, 2> sources{memory.data(), second};
  ok(gpus().sum(DType::fp32, memory.data(), sources, k_elements, 0, stream()));
  ok(gpus().synchronize(stream()));
  copy(reinterpret_cast<std::byte*>(ones.data()), memory.data(), k_elements * 4);
  for (const float value : ones) {
    ASSERT_EQ(value, 2.0F);
  }
}

class GpuCopies : public test::OnGpu {};

TEST_F(GpuCopies, OfKernelsMoveExactlyWhatTheyAreToldTo) {
  constexpr std::size_t k_room = 300'000;
  std::vector<std::byte> pattern(k_room);
  for (std::size_t i = 0; i < k_room; ++i) {
    pattern[i] = static_cast<std::byte>(gpu_pattern_word(i, 3));
  }
  const GpuMemory from(gpus(), 0, k_room);
  const GpuMemory to(gpus(), 0, k_room);
  copy(from.data(), pattern.data(), k_room);
  for (const std::size_t bytes : {1U, 15U, 16U, 4097U, 250'000U}) {
    for (const std::size_t source : {0U, 3U, 16U}) {
      for (const std::size_t target : {0U, 3U, 8U}) {
        for (const int blocks : {0, 1, 3}) {
          ok(gpus().set(to.data(), 0xa5, k_room, stream()));
          ok(gpus().copy_sm(to.data() + target, from.data() + source, bytes, blocks, stream()));
          std::vector<std::byte> got(k_room);
          copy(got.data(), to.data(), k_room);
          ASSERT_EQ(std::memcmp(got.data() + target, pattern.data() + source, bytes), 0)
              << bytes << " bytes from " << source << " to " << target;
          const auto spoilt = [](std::byte b) { return b == std::byte{0xa5}; };
          ASSERT_TRUE(
              std::all_of(got.begin(), got.begin() + static_cast<std::ptrdiff_t>(target), spoilt));
          ASSERT_TRUE(std::all_of(got.begin() + static_cast<std::ptrdiff_t>(target + bytes),
                                  got.end(), spoilt));
        }
      }
    }
  }
}

TEST_F(GpuCopies, AreComparedOnTheGpu) {
  constexpr std::uint64_t k_length = 1U << 20U;
  const GpuMemory memory(gpus(), 0, k_length);
  ok(gpus().fill_pattern(memory.data(), k_length, 9, stream()));
  EXPECT_FALSE(gpus().find_difference(memory.data(), k_length, 9, stream()));
  EXPECT_EQ(gpus().find_difference(memory.data(), k_length, 8, stream()), 0U);
  ok(gpus().set(memory.data() + 70'003, 0x11, 1, stream()));
  const auto found = gpus().find_difference(memory.data(), k_length, 9, stream());
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, 70'000U); // of the word
  std::vector<std::byte> host(64);
  copy(host.data(), memory.data(), host.size());
  for (std::uint64_t word = 0; word < 8; ++word) { // the same pattern as the processor's
    const std::uint64_t expected = gpu_pattern_word(word, 9);
    EXPECT_EQ(std::memcmp(host.data() + 8 * word, &expected, 8), 0);
  }
}

} // namespace
} // namespace reckon
