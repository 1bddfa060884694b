// SPDX-License-Identifier: Apache-2.0
#include "run/values.hpp"

#include "kernels/reduce.hpp"
#include "support/messages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace reckon {
namespace {

std::vector<DTypeRun> runs_of(DType type, std::uint64_t elements) {
  return {{0, elements * size_of(type), type}};
}

/// The workers' gradients summed by the kernel in one go.
std::vector<std::byte> summed(DType type, std::uint32_t workers, std::uint32_t iteration,
                              std::uint64_t elements) {
  const TestValues values(workers);
  const auto runs = runs_of(type, elements);
  std::vector<std::vector<std::byte>> gradients(workers, std::vector<std::byte>(runs[0].bytes));
  std::vector<const void*> operands;
  for (std::uint32_t w = 0; w < workers; ++w) {
    values.fill(gradients[w], runs, w, iteration);
    operands.push_back(gradients[w].data());
  }
  std::vector<std::byte> sum(runs[0].bytes);
  sum_into(type, sum.data(), operands, elements);
  return sum;
}

TEST(TestValues, ExactSumsPassForEveryTypeAndWorkerCount) {
  for (const DType type : {DType::fp32, DType::fp16, DType::bf16}) {
    for (const std::uint32_t workers : {1U, 2U, 3U, 16U, 127U, 128U, 129U, 300U, 2100U}) {
      const auto result =
          TestValues(workers).check(summed(type, workers, 5, 3000), runs_of(type, 3000), 5);
      EXPECT_EQ(result.wrong_elements, 0U)
          << name_of(type) << " " << workers << ": " << result.first_error;
      EXPECT_EQ(result.checked_bytes, 3000 * size_of(type));
    }
  }
}

TEST(TestValues, SummingPairByPairIsExactToo) {
  // A ring rounds after every hop: 16 workers' values in bf16 must survive 15 roundings.
  for (const DType type : {DType::fp16, DType::bf16}) {
    const std::uint32_t workers = 16;
    const TestValues values(workers);
    const auto runs = runs_of(type, 1000);
    std::vector<std::byte> sum(runs[0].bytes), next(runs[0].bytes);
    values.fill(sum, runs, 0, 1);
    for (std::uint32_t w = 1; w < workers; ++w) {
      values.fill(next, runs, w, 1);
      const void* const operands[] = {sum.data(), next.data()};
      sum_into(type, sum.data(), operands, 1000);
    }
    EXPECT_EQ(values.check(sum, runs, 1).wrong_elements, 0U) << name_of(type);
  }
}

TEST(TestValues, EveryKindOfMistakeShows) {
  const std::uint32_t workers = 4;
  const TestValues values(workers);
  const auto runs = runs_of(DType::fp32, 4096);
  const std::vector<std::byte> good = summed(DType::fp32, workers, 3, 4096);

  std::vector<std::byte> stale = summed(DType::fp32, workers, 2, 4096); // the last iteration's sum
  EXPECT_GT(values.check(stale, runs, 3).wrong_elements, 4000U);

  std::vector<std::byte> own(good.size()); // a worker's own gradient, never replaced
  values.fill(own, runs, 1, 3);
  EXPECT_GT(values.check(own, runs, 3).wrong_elements, 3500U);

  std::vector<std::byte> moved = good; // 256 bytes that belong 256 bytes further
  std::copy_n(good.begin() + 1024, 256, moved.begin() + 1280);
  EXPECT_GT(values.check(moved, runs, 3).wrong_elements, 50U);

  std::vector<std::byte> poisoned = good;
  poison(std::span(poisoned).subspan(400, 4));
  const auto result = values.check(poisoned, runs, 3);
  EXPECT_EQ(result.wrong_elements, 1U);
  EXPECT_THAT(result.first_error, test::Says("(fp32)"));

  std::vector<std::byte> flipped = good; // one bit
  flipped[801] ^= std::byte{1};
  EXPECT_EQ(values.check(flipped, runs, 3).wrong_elements, 1U);
}

TEST(TestValues, GapsBetweenRunsArePoisonedAndNotChecked) {
  const TestValues values(1);
  const std::vector<DTypeRun> runs{{0, 8, DType::fp32}, {64, 6, DType::bf16}};
  std::vector<std::byte> buffer(128, std::byte{0});
  values.fill(buffer, runs, 0, 0);
  EXPECT_TRUE(std::all_of(buffer.begin() + 8, buffer.begin() + 64,
                          [](std::byte b) { return b == std::byte{0xFF}; }));
  EXPECT_TRUE(std::all_of(buffer.begin() + 70, buffer.end(),
                          [](std::byte b) { return b == std::byte{0xFF}; }));
  EXPECT_EQ(values.check(buffer, runs, 0).wrong_elements, 0U);
  EXPECT_EQ(values.check(buffer, runs, 0).checked_bytes, 14U);
}

} // namespace
} // namespace reckon
