// SPDX-License-Identifier: Apache-2.0
// NaN, infinities, subnormal numbers, signed zeros and sums that overflow: every plan gives, bit
// for bit, what its schedule says in the order in which it says it.
#include "equations/fixed_point.hpp"
#include "kernels/scale.hpp"
#include "movers/mover.hpp"
#include "planning/wire.hpp"
#include "reference.hpp"
#include "strategies/lower.hpp"
#include "support/ranks.hpp"
#include "support/transports.hpp"
#include "virtual_job.hpp"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <random>

namespace reckon {
namespace {

using test::Job;
using test::Reference;

constexpr std::uint64_t k_seed = 20261130;

/// A third of them special, a third any bits, a third near 1.
template <class Bits>
Bits number(std::mt19937_64& random, int fraction_bits) {
  const auto infinity =
      static_cast<Bits>(static_cast<Bits>(~Bits{0} >> 1U) >> fraction_bits << fraction_bits);
  const auto one = static_cast<Bits>((infinity >> 1U) >> fraction_bits << fraction_bits);
  const auto sign = static_cast<Bits>((random() & 1U) << (8 * sizeof(Bits) - 1));
  const auto step = static_cast<Bits>(Bits{1} << fraction_bits);
  const std::array<Bits, 12> special{
      0,                                          // zeros of both signs
      1,                                          // the least number
      static_cast<Bits>(step - 1),                // the largest subnormal one
      step,                                       // the least normal one
      static_cast<Bits>(infinity - 1),            // the largest
      static_cast<Bits>(infinity - step),         // half of it, and a bit: two of them overflow
      infinity,                                   //
      static_cast<Bits>(infinity + 1),            // a NaN that signals
      static_cast<Bits>(infinity + step / 2 + 5), // and one that does not
      one,
      static_cast<Bits>(one + 1), // ties, added to powers of two
      static_cast<Bits>(one + static_cast<Bits>(fraction_bits) * step)};
  switch (random() % 3) {
  case 0: // few that leave nothing of a sum
    return special[random() % (random() % 4 == 0 ? special.size() : 6)] | sign;
  case 1:
    return static_cast<Bits>(random());
  default:
    return static_cast<Bits>(one + random() % (4 * step)) | sign;
  }
}

void fill(std::span<std::byte> buffer, std::span<const DTypeRun> runs, std::mt19937_64& random) {
  for (const DTypeRun& run : runs) {
    for (std::uint64_t at = run.offset_bytes; at < run.offset_bytes + run.bytes;
         at += size_of(run.dtype)) {
      if (run.dtype == DType::fp32) {
        const auto bits = number<std::uint32_t>(random, 23);
        std::memcpy(&buffer[at], &bits, sizeof bits);
      } else {
        const auto bits = number<std::uint16_t>(random, run.dtype == DType::fp16 ? 10 : 7);
        std::memcpy(&buffer[at], &bits, sizeof bits);
      }
    }
  }
}

/// A plan of all types, or a variant of one type.
struct Case {
  std::string name;
  test::Shape shape;
  std::optional<DType> wire{};
  bool fixed = false, in_place = false;
};

Schedule schedule_of(const Case& c) {
  PlanOptions options;
  options.part_bytes = 1024;
  options.window_parts = 2;
  std::vector<Tensor> tensors{
      {"a", 1001, DType::fp32}, {"b", 777, DType::bf16}, {"c", 1500, DType::fp16}};
  if (c.fixed) {
    options.fixed_point = FixedPointRequest{16, 1};
    tensors = {{"a", 1800, DType::fp32}};
  } else if (c.wire) {
    options.wire = c.wire;
    tensors = {{"a", 1800, *c.wire}};
  }
  Plan plan = test::plan_of(c.shape, options, std::move(tensors));
  plan.sums_in_place = c.in_place;
  if (c.wire) {
    add_wire(plan);
  }
  return lower(plan);
}

std::vector<Case> cases(std::initializer_list<std::uint64_t> workers,
                        std::initializer_list<int> lanes) {
  std::vector<Case> all;
  test::for_each_shape(workers, {0, 2}, lanes, [&](const test::Shape& shape) {
    const std::string name = fmt::format("{} n {} k {} lanes {}", shape.strategy, shape.workers,
                                         shape.servers, shape.lanes);
    all.push_back({name, shape});
    all.push_back({name + " as bf16", shape, DType::bf16});
    all.push_back({name + " as fp16", shape, DType::fp16});
    if (shape.strategy != k_rack_hierarchical) {
      all.push_back({name + " fixed", shape, {}, true});
    }
    if (shape.has_servers()) {
      all.push_back({name + " in place", shape, {}, false, true});
    }
  });
  return all;
}

/// A case with gradients of all workers, and what the reference makes of them.
struct Played {
  explicit Played(const Case& c) : schedule(schedule_of(c)), reference(schedule) {
    std::mt19937_64 random(k_seed + std::hash<std::string>()(c.name));
    for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
      auto& gradient = gradients.emplace_back();
      if (schedule.worker[r]) {
        auto& memory = reference.memory(r)[schedule.ranks[r].gradient_buffer];
        fill(memory, schedule.gradient_runs(), random);
        gradient = memory;
      }
    }
    reference.play();
  }

  /// Puts the rank's gradient there.
  void begin(std::size_t rank, std::span<std::byte> buffer) const {
    std::copy(gradients[rank].begin(), gradients[rank].end(), buffer.begin());
  }

  /// Equal bits, but for those of a NaN: which of two it becomes, the order of an addition's
  /// operands decides.
  void expect_in(std::size_t rank, std::span<const std::byte> buffer) {
    if (!schedule.worker[rank]) {
      return;
    }
    const std::span<const std::byte> expected =
        reference.memory(rank)[schedule.ranks[rank].gradient_buffer];
    for (const DTypeRun& run : schedule.gradient_runs()) {
      const std::uint64_t size = size_of(run.dtype);
      for (std::uint64_t at = run.offset_bytes; at < run.offset_bytes + run.bytes; at += size) {
        const bool same = std::memcmp(&buffer[at], &expected[at], size) == 0;
        if (!same && !(is_nan(run.dtype, &buffer[at]) && is_nan(run.dtype, &expected[at]))) {
          FAIL() << "rank " << rank << ", byte " << at << " (" << name_of(run.dtype)
                 << "): " << bits(&buffer[at], size) << " instead of " << bits(&expected[at], size);
        }
      }
    }
  }

  Schedule schedule;
  Reference reference;
  std::vector<std::vector<std::byte>> gradients; ///< by rank

private:
  static std::uint32_t raw(const std::byte* at, std::uint64_t size) {
    std::uint32_t value = 0;
    std::memcpy(&value, at, size); // little-endian, as all machines that this runs on
    return value;
  }
  static std::string bits(const std::byte* at, std::uint64_t size) {
    return fmt::format("{:0{}x}", raw(at, size), 2 * size);
  }
  static bool is_nan(DType type, const std::byte* at) {
    const std::uint32_t most = type == DType::fp32   ? 0x7F800000U
                               : type == DType::fp16 ? 0x7C00U
                                                     : 0x7F80U;
    return (raw(at, size_of(type)) & (type == DType::fp32 ? 0x7FFFFFFFU : 0x7FFFU)) > most;
  }
};

TEST(SpecialNumbers, OverAVirtualNetworkInEveryPlan) {
  for (const Case& c : cases({1, 2, 5}, {1, 2})) {
    SCOPED_TRACE(c.name);
    Played played(c);
    Job job(played.schedule);
    job.set_prepare([&](Job& j) {
      for (std::size_t r = 0; r < played.schedule.ranks.size(); ++r) {
        played.begin(r, j.buffer(r, played.schedule.ranks[r].gradient_buffer));
      }
    });
    static_cast<void>(job.iterate(0)); // its own check is of other numbers
    const std::size_t first = 0;
    for (std::size_t r = 0; r < played.schedule.ranks.size(); ++r) {
      const std::uint32_t buffer = played.schedule.ranks[r].gradient_buffer;
      played.expect_in(r, job.buffer(r, buffer));
      if (played.schedule.worker[r]) { // all have the same bits, of NaNs too
        ASSERT_TRUE(
            std::ranges::equal(job.buffer(r, buffer),
                               job.buffer(first, played.schedule.ranks[first].gradient_buffer)));
      }
    }
    if (testing::Test::HasFailure()) {
      return;
    }
  }
}

// A mean is the sum of what scale() has made of each gradient.
TEST(SpecialNumbers, ScaledForAMeanOfWorkers) {
  for (const int workers : {1, 2, 3, 7, 100, 65536}) {
    const double factor = 1.0 / workers;
    const auto narrowed = static_cast<float>(factor);
    for (const DType type : {DType::fp16, DType::bf16}) {
      const test::Halves halves(type);
      std::vector<std::uint16_t> all(65536); // every one there is
      std::iota(all.begin(), all.end(), std::uint16_t{0});
      scale(std::as_writable_bytes(std::span(all)), type, factor);
      for (std::size_t i = 0; i < all.size(); ++i) {
        const float value = halves.value(static_cast<std::uint16_t>(i));
        if (std::isnan(value)) {
          ASSERT_TRUE(std::isnan(halves.value(all[i]))) << i;
        } else if (workers == 1) {
          ASSERT_EQ(all[i], i);
        } else {
          ASSERT_EQ(all[i], halves.nearest(value * narrowed)) << i << " / " << workers;
        }
      }
    }
    std::mt19937_64 random(k_seed);
    for (int i = 0; i < 100'000; ++i) {
      const auto bits = number<std::uint32_t>(random, 23);
      auto value = std::bit_cast<float>(bits);
      // The product of two floats is exact as a double, which then is rounded once.
      const auto expected =
          static_cast<float>(static_cast<double>(value) * static_cast<double>(narrowed));
      scale(std::as_writable_bytes(std::span(&value, 1)), DType::fp32, factor);
      ASSERT_TRUE(std::isnan(expected) ? std::isnan(value)
                                       : std::bit_cast<std::uint32_t>(value) ==
                                             std::bit_cast<std::uint32_t>(expected))
          << bits << " / " << workers;
    }
  }
}

class SpecialNumbersOver : public testing::TestWithParam<std::string> {};

TEST_P(SpecialNumbersOver, EveryPlanOfTwoWorkers) {
  std::deque<Played> all;
  for (const Case& c : cases({2}, {1})) {
    if (!c.in_place) { // those are tested where memory is shared, above
      all.emplace_back(c);
    }
  }
  constexpr int k_most = 4;
  support::run_ranks(k_most, std::chrono::seconds(600), [&](support::RankProcess& self) {
    const auto rank = static_cast<std::size_t>(self.rank());
    for (Played& played : all) {
      const bool takes_part = rank < played.schedule.ranks.size();
      const std::unique_ptr<Mover> mover = make_mover(GetParam());
      if (!takes_part) {
        static_cast<void>(self.exchange(""));
        self.barrier();
        continue;
      }
      const RankProgram& program = played.schedule.ranks[rank];
      const RankMemory memory(*mover, program);
      played.begin(rank, memory.views()[program.gradient_buffer]);
      mover->open(static_cast<int>(program.lanes.size()));
      std::vector<std::string> addresses = self.exchange(mover->address());
      addresses.resize(played.schedule.ranks.size());
      mover->connect(self.rank(), addresses);
      std::deque<LaneExecutor> lanes;
      for (std::size_t l = 0; l < program.lanes.size(); ++l) {
        lanes.emplace_back(program.lanes[l], mover->lane(static_cast<int>(l)), memory.buffers());
        lanes.back().start(1);
      }
      while (!std::ranges::all_of(lanes, &LaneExecutor::done)) {
        for (std::size_t l = 0; l < lanes.size(); ++l) {
          if (!lanes[l].done() && !lanes[l].advance()) {
            mover->lane(static_cast<int>(l)).wait(std::chrono::milliseconds(1));
          }
          ASSERT_FALSE(lanes[l].failed()) << lanes[l].error();
        }
      }
      played.expect_in(rank, memory.views()[program.gradient_buffer]);
      self.barrier();
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Transports, SpecialNumbersOver,
                         testing::ValuesIn(support::transports_here()),
                         [](const testing::TestParamInfo<std::string>& info) {
                           return support::as_test_name(info.param);
                         });

} // namespace
} // namespace reckon
