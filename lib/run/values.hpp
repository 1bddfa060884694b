// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/dtype.hpp"
#include "schedule/schedule.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>

namespace reckon {

/// A rank's buffers as the processor sees them, in the schedule's order.
using Views = std::span<const std::span<std::byte>>;

/// The result of checking a rank's memory.
struct RankVerification {
  std::uint64_t checked_bytes = 0, wrong_elements = 0;
  std::string first_error; ///< "gradient byte 4096: expected 12, got 9"; empty when all is right
  double max_error = 0;    ///< for rounded sums: greatest finite distance from the exact one
  /// Adds the result of another check.
  void add(const RankVerification& more);
};

/// Gradients whose sum is exact in every element type and in any order: small whole numbers that
/// depend on the worker, the place and the iteration, so that a missing, stale, doubled or
/// misplaced part shows.
///
/// Element e of worker w is (h(e, iteration) + 7 w) mod 2^b - 2^(b-1), where b is as large as the
/// type can hold the sum of all workers exactly (at most 10). With so many workers that not even b
/// = 1 fits, only one of several workers has values other than 0.
class TestValues {
public:
  /// `wire`: fp32 values that this type can hold, too.
  explicit TestValues(std::uint32_t workers, std::optional<DType> wire = {})
      : m_workers(workers), m_wire(wire) {}

  /// Writes worker `index`'s gradient for `iteration` into the runs of `buffer`, and the poison
  /// everywhere else.
  void fill(std::span<std::byte> buffer, std::span<const DTypeRun> runs, std::uint32_t index,
            std::uint32_t iteration) const;

  /// Compares every element of the runs with the sum over all workers.
  [[nodiscard]] RankVerification check(std::span<const std::byte> buffer,
                                       std::span<const DTypeRun> runs,
                                       std::uint32_t iteration) const;

  /// The same for the stretches `owned`: fills them with worker `index`'s gradient, and the rest
  /// with the poison.
  void fill_owned(std::span<std::byte> buffer, std::span<const DTypeRun> runs,
                  std::span<const OwnedRun> owned, std::uint32_t index,
                  std::uint32_t iteration) const;

  /// Compares every element of one stretch with worker `index`'s; without one, with the sum over
  /// all workers.
  [[nodiscard]] RankVerification check_owned(std::span<const std::byte> buffer,
                                             std::span<const DTypeRun> runs, const OwnedRun& owned,
                                             std::optional<std::uint32_t> index,
                                             std::uint32_t iteration) const;

  /// The sums of elements [first, first + out.size()) of an fp32 run.
  void sums(std::span<float> out, std::uint64_t first, std::uint32_t iteration) const;

private:
  class Table;
  [[nodiscard]] Table table(DType type, std::optional<std::uint32_t> index) const;

  std::uint32_t m_workers;
  std::optional<DType> m_wire;
};

/// Initial parameters of training, of the elements of a run from `first` on: multiples of
/// k_learning_rate between -8 and 8 that depend on the place.
void initial_parameters(std::span<float> out, std::uint64_t first);
/// Writes them into all parameters that the rank holds.
void fill_parameters(const Schedule& schedule, const RankProgram& rank, Views views);

/// The element of its run at which a stretch of parameters begins.
[[nodiscard]] std::uint64_t first_element(const Schedule& schedule, const ParameterRun& held);

/// `bytes` at a place of a rank's memory, as numbers.
[[nodiscard]] inline std::span<float> floats_at(Views views, Slice at, std::uint64_t bytes) {
  return {reinterpret_cast<float*>(views[at.buffer].data() + at.offset), bytes / sizeof(float)};
}

/// Well-mixed bits of an element's place and an iteration.
[[nodiscard]] constexpr std::uint32_t test_hash(std::uint64_t element, std::uint32_t iteration) {
  auto x = static_cast<std::uint32_t>(element) +
           static_cast<std::uint32_t>(element >> 32U) * 0x9E3779B1U + iteration * 0x85EBCA77U;
  x ^= x >> 15U;
  x *= 0x2C1B3C6DU;
  return x ^ (x >> 13U);
}

/// All bits set: NaN in each of our element types, so that a sum over unwritten memory cannot look
/// right.
void poison(std::span<std::byte> memory);
/// Poisons what lies outside of the runs.
void poison_gaps(std::span<std::byte> buffer, std::span<const DTypeRun> runs);
/// Poisons every buffer whose content means nothing between iterations, except the gradient's.
void poison_unkept(Views views, const RankProgram& program);

/// Elements that are compared at a time: few enough for the caches, enough for the vectors.
inline constexpr std::size_t k_compared_block = 4096;

/// Adds to `result` the words of `got` that differ from the expected bits; say(index) describes the
/// first.
template <class Word, class Say>
void count_wrong(RankVerification& result, std::span<const Word> got,
                 std::span<const Word> expected, Say say) {
  result.checked_bytes += got.size_bytes();
  if (std::memcmp(got.data(), expected.data(), got.size_bytes()) == 0) {
    return;
  }
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::memcmp(&got[i], &expected[i], sizeof(Word)) != 0) {
      ++result.wrong_elements;
      result.first_error = result.first_error.empty() ? say(i) : result.first_error;
    }
  }
}

} // namespace reckon
