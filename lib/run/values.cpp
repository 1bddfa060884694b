// SPDX-License-Identifier: Apache-2.0
#include "run/values.hpp"

#include "core/optimizer.hpp"
#include "kernels/convert.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <type_traits>

namespace reckon {
namespace {

constexpr int k_most_bits = 10;
constexpr std::uint32_t k_worker_step = 7; ///< odd, so that workers differ for every b

/// Whole numbers up to this are exact: 24, 11 and 8 bits of precision.
constexpr std::uint32_t exact_limit(DType t) {
  return t == DType::fp32 ? 1U << 24U : t == DType::fp16 ? 1U << 11U : 1U << 8U;
}

std::uint32_t encode(DType type, int value) { // small whole numbers: nothing is rounded
  const auto number = static_cast<float>(value);
  return type == DType::fp32   ? std::bit_cast<std::uint32_t>(number)
         : type == DType::fp16 ? float_to_fp16(number)
                               : float_to_bf16(number);
}

double decode(DType type, std::uint32_t word) {
  const auto half = static_cast<std::uint16_t>(word);
  return static_cast<double>(type == DType::fp32   ? std::bit_cast<float>(word)
                             : type == DType::fp16 ? fp16_to_float(half)
                                                   : bf16_to_float(half));
}

/// The run that a stretch lies in.
const DTypeRun& run_of(std::span<const DTypeRun> runs, const OwnedRun& owned) {
  return *std::find_if(runs.begin(), runs.end(), [&](const DTypeRun& run) {
    return owned.offset_bytes >= run.offset_bytes &&
           owned.offset_bytes < run.offset_bytes + run.bytes;
  });
}
/// The stretch by itself, as a run.
DTypeRun as_run(std::span<const DTypeRun> runs, const OwnedRun& owned) {
  return {owned.offset_bytes, owned.bytes, run_of(runs, owned).dtype};
}
std::uint64_t first_element(std::span<const DTypeRun> runs, const OwnedRun& owned) {
  const DTypeRun& run = run_of(runs, owned);
  return (owned.offset_bytes - run.offset_bytes) / size_of(run.dtype);
}

/// Calls f with a run's elements as words of their size.
template <class Byte, class F>
void with_words(std::span<Byte> memory, const DTypeRun& run, F f) {
  const auto as = [&]<class Word>(Word /*of this size*/) {
    using As = std::conditional_t<std::is_const_v<Byte>, const Word, Word>;
    f(std::span<As>(reinterpret_cast<As*>(memory.data() + run.offset_bytes),
                    run.bytes / sizeof(Word)));
  };
  size_of(run.dtype) == sizeof(std::uint32_t) ? as(std::uint32_t{}) : as(std::uint16_t{});
}

} // namespace

void RankVerification::add(const RankVerification& more) {
  checked_bytes += more.checked_bytes;
  wrong_elements += more.wrong_elements;
  first_error = first_error.empty() ? more.first_error : first_error;
  max_error = std::max(max_error, more.max_error);
}

void poison(std::span<std::byte> memory) {
  if (!memory.empty()) {
    std::memset(memory.data(), 0xFF, memory.size());
  }
}

void poison_gaps(std::span<std::byte> buffer, std::span<const DTypeRun> runs) {
  std::uint64_t at = 0;
  for (const DTypeRun& run : runs) {
    poison(buffer.subspan(at, run.offset_bytes - at));
    at = run.offset_bytes + run.bytes;
  }
  poison(buffer.subspan(at));
}

void poison_unkept(Views views, const RankProgram& program) {
  for (std::uint32_t b = 0; b < views.size(); ++b) {
    if (b != program.gradient_buffer && !program.keeps(b)) {
      poison(views[b]);
    }
  }
}

/// What elements of a type can be, for each possible low bits of their hash, as the type stores it:
/// in the low half of a word where it is that short.
class TestValues::Table {
public:
  /// Worker `index`'s of `workers`; without an index, their sums. `exact_in`: the type that holds
  /// all sums exactly.
  Table(DType type, DType exact_in, std::uint32_t workers, std::optional<std::uint32_t> index) {
    const std::uint32_t limit = exact_limit(exact_in);
    // |value| <= 2^(b-1), so any partial sum stays within workers * 2^(b-1).
    int bits = k_most_bits;
    while (bits > 1 && workers * (1ULL << static_cast<unsigned>(bits - 1)) > limit) {
      --bits;
    }
    m_mask = (1U << static_cast<unsigned>(bits)) - 1;
    const int half = 1 << (bits - 1);
    // Workers whose number is no multiple of it have zeros.
    const std::uint32_t stride = workers > limit ? (workers + limit - 1) / limit : 1;
    for (std::uint32_t h = 0; h <= m_mask; ++h) {
      int sum = 0;
      for (std::uint32_t w = index.value_or(0); w < (index ? *index + 1 : workers); ++w) {
        sum += w % stride == 0 ? static_cast<int>((h + k_worker_step * w) & m_mask) - half : 0;
      }
      m_words[h] = encode(type, sum);
    }
  }
  /// The elements from `first` on.
  template <class Word>
  void put(std::span<Word> out, std::uint64_t first, std::uint32_t iteration) const {
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::uint32_t word = m_words[test_hash(first + i, iteration) & m_mask];
      if constexpr (std::is_same_v<Word, float>) {
        out[i] = std::bit_cast<float>(word);
      } else {
        out[i] = static_cast<Word>(word);
      }
    }
  }

private:
  std::uint32_t m_mask = 0;
  std::array<std::uint32_t, 1U << k_most_bits> m_words{};
};

TestValues::Table TestValues::table(DType type, std::optional<std::uint32_t> index) const {
  return {type, m_wire.value_or(type), m_workers, index};
}

void TestValues::fill(std::span<std::byte> buffer, std::span<const DTypeRun> runs,
                      std::uint32_t index, std::uint32_t iteration) const {
  poison_gaps(buffer, runs);
  for (const DTypeRun& run : runs) {
    const Table values = table(run.dtype, index);
    with_words(buffer, run, [&](auto words) { values.put(words, 0, iteration); });
  }
}

void TestValues::fill_owned(std::span<std::byte> buffer, std::span<const DTypeRun> runs,
                            std::span<const OwnedRun> owned, std::uint32_t index,
                            std::uint32_t iteration) const {
  poison(buffer);
  for (const OwnedRun& stretch : owned) {
    const DTypeRun run = as_run(runs, stretch);
    const Table values = table(run.dtype, index);
    with_words(buffer, run,
               [&](auto words) { values.put(words, first_element(runs, stretch), iteration); });
  }
}

RankVerification TestValues::check(std::span<const std::byte> buffer,
                                   std::span<const DTypeRun> runs, std::uint32_t iteration) const {
  RankVerification result;
  for (const DTypeRun& run : runs) {
    result.add(check_owned(buffer, runs, {0, run.offset_bytes, run.bytes}, {}, iteration));
  }
  return result;
}

RankVerification TestValues::check_owned(std::span<const std::byte> buffer,
                                         std::span<const DTypeRun> runs, const OwnedRun& owned,
                                         std::optional<std::uint32_t> index,
                                         std::uint32_t iteration) const {
  RankVerification result;
  const DTypeRun run = as_run(runs, owned);
  const std::uint64_t first = first_element(runs, owned);
  const Table values = table(run.dtype, index);
  with_words(buffer, run, [&]<class Word>(std::span<const Word> words) {
    std::array<Word, k_compared_block> expected; // NOLINT: filled before it is read
    for (std::size_t at = 0; at < words.size(); at += k_compared_block) {
      const auto got = words.subspan(at, std::min(k_compared_block, words.size() - at));
      values.put(std::span(expected).first(got.size()), first + at, iteration);
      // A sum of 0 may come out as -0 in no way we use (x + y of opposite values is +0), so bits
      // may be compared.
      count_wrong<Word>(result, got, std::span(expected).first(got.size()), [&](std::size_t i) {
        return fmt::format("gradient byte {} ({}): expected {}, got {}",
                           run.offset_bytes + (at + i) * sizeof(Word), name_of(run.dtype),
                           decode(run.dtype, expected[i]), decode(run.dtype, got[i]));
      });
    }
  });
  return result;
}

void TestValues::sums(std::span<float> out, std::uint64_t first, std::uint32_t iteration) const {
  table(DType::fp32, std::nullopt).put(out, first, iteration);
}

void initial_parameters(std::span<float> out, std::uint64_t first) {
  constexpr std::uint32_t k_no_iteration = 0xFFFFFFFFU; // other values than any gradient's
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto h = static_cast<int>(test_hash(first + i, k_no_iteration) & 1023U);
    out[i] = static_cast<float>(h - 512) * k_learning_rate;
  }
}

void fill_parameters(const Schedule& schedule, const RankProgram& rank, Views views) {
  for (const ParameterRun& held : rank.parameters) {
    initial_parameters(floats_at(views, held.at, held.bytes), first_element(schedule, held));
  }
}

std::uint64_t first_element(const Schedule& schedule, const ParameterRun& held) {
  for (const DTypeRun& run : schedule.runs) {
    if (held.gradient_offset >= run.offset_bytes &&
        held.gradient_offset < run.offset_bytes + run.bytes) {
      return (held.gradient_offset - run.offset_bytes) / sizeof(float);
    }
  }
  return 0; // an empty stretch
}

} // namespace reckon
