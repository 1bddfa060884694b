// SPDX-License-Identifier: Apache-2.0
#include "run/values.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

namespace reckon {
namespace {

constexpr int k_most_bits = 10;
constexpr std::uint32_t k_worker_step = 7; ///< odd, so that workers differ for every b

/// Whole numbers up to this are exact: 24, 11 and 8 bits of precision.
constexpr std::uint32_t exact_limit(DType t) {
  return t == DType::fp32 ? 1U << 24U : t == DType::fp16 ? 1U << 11U : 1U << 8U;
}

struct Shape {
  int bits;             ///< b
  std::uint32_t stride; ///< workers whose number is no multiple of it have zeros
};

Shape shape_for(DType type, std::uint32_t workers) {
  // |value| <= 2^(b-1), so any partial sum stays within workers * 2^(b-1).
  int bits = k_most_bits;
  while (bits > 1 && workers * (1ULL << (bits - 1)) > exact_limit(type)) {
    --bits;
  }
  const std::uint32_t limit = exact_limit(type);
  return {bits, workers > limit ? (workers + limit - 1) / limit : 1};
}

std::uint16_t to_bits16(DType type, int value) {
  const auto f =
      static_cast<float>(value); // small whole numbers: exact, so no rounding rule is needed
  const auto bits = std::bit_cast<std::uint32_t>(f);
  if (type == DType::bf16 || value == 0) {
    return static_cast<std::uint16_t>(bits >> 16U);
  }
  const std::uint32_t sign = bits >> 31U;
  const std::uint32_t exponent = ((bits >> 23U) & 0xFFU) - 127 + 15;
  return static_cast<std::uint16_t>((sign << 15U) | (exponent << 10U) | ((bits >> 13U) & 0x3FFU));
}

double from_bits16(DType type, std::uint16_t bits) {
  if (type == DType::bf16) {
    return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U));
  }
  const int exponent = (bits >> 10U) & 0x1F;
  const double mantissa = bits & 0x3FF;
  const double magnitude = exponent == 31  ? (mantissa == 0 ? HUGE_VAL : std::nan(""))
                           : exponent == 0 ? std::ldexp(mantissa, -24)
                                           : std::ldexp(1 + mantissa / 1024, exponent - 15);
  return (bits >> 15U) != 0 ? -magnitude : magnitude;
}

/// The value for each possible low b bits of the hash, as the type stores it.
template <class Word>
using Table = std::array<Word, 1U << k_most_bits>;

template <class Word>
Word encode(DType type, int value) {
  if constexpr (sizeof(Word) == 4) {
    static_cast<void>(type);
    return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  } else {
    return to_bits16(type, value);
  }
}

int value_of(std::uint32_t h, std::uint32_t worker, Shape shape) {
  if (worker % shape.stride != 0) {
    return 0;
  }
  const std::uint32_t mask = (1U << static_cast<unsigned>(shape.bits)) - 1;
  return static_cast<int>((h + k_worker_step * worker) & mask) - (1 << (shape.bits - 1));
}

/// Calls f(element index, table entry) over one run; the table is of what `entry(h)` gives.
template <class Word, class Entry>
Table<Word> make_table(DType type, Shape shape, Entry entry) {
  Table<Word> table{};
  for (std::uint32_t h = 0; h < (1U << static_cast<unsigned>(shape.bits)); ++h) {
    table[h] = encode<Word>(type, entry(h));
  }
  return table;
}

template <class Word>
void fill_run(std::byte* memory, const DTypeRun& run, std::uint32_t iteration,
              const Table<Word>& table, std::uint32_t mask) {
  auto* const words = reinterpret_cast<Word*>(memory + run.offset_bytes);
  const std::uint64_t count = run.bytes / sizeof(Word);
  for (std::uint64_t e = 0; e < count; ++e) {
    words[e] = table[test_hash(e, iteration) & mask];
  }
}

template <class Word>
void check_run(const std::byte* memory, const DTypeRun& run, std::uint32_t iteration,
               const Table<Word>& table, std::uint32_t mask, TestValues::Result& result) {
  const auto* const words = reinterpret_cast<const Word*>(memory + run.offset_bytes);
  const std::uint64_t count = run.bytes / sizeof(Word);
  const auto shown = [&](Word w) {
    if constexpr (sizeof(Word) == 4) {
      return static_cast<double>(std::bit_cast<float>(w));
    } else {
      return from_bits16(run.dtype, w);
    }
  };
  constexpr std::uint64_t k_block = 4096;
  for (std::uint64_t begin = 0; begin < count; begin += k_block) {
    const std::uint64_t end = std::min(count, begin + k_block);
    std::uint64_t wrong = 0;
    for (std::uint64_t e = begin; e < end; ++e) {
      // A sum of 0 may come out as -0 in no way we use (x + y of opposite values is +0), so bits
      // may be compared.
      wrong += words[e] != table[test_hash(e, iteration) & mask] ? 1U : 0U;
    }
    if (wrong > 0 && result.first_error.empty()) {
      for (std::uint64_t e = begin; e < end; ++e) {
        const Word expected = table[test_hash(e, iteration) & mask];
        if (words[e] != expected) {
          result.first_error = fmt::format("gradient byte {} ({}): expected {}, got {}",
                                           run.offset_bytes + e * sizeof(Word), name_of(run.dtype),
                                           shown(expected), shown(words[e]));
          break;
        }
      }
    }
    result.wrong_elements += wrong;
  }
  result.checked_bytes += run.bytes;
}

} // namespace

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

void TestValues::fill(std::span<std::byte> buffer, std::span<const DTypeRun> runs,
                      std::uint32_t index, std::uint32_t iteration) const {
  poison_gaps(buffer, runs);
  for (const DTypeRun& run : runs) {
    const Shape shape = shape_for(run.dtype, m_workers);
    const std::uint32_t mask = (1U << static_cast<unsigned>(shape.bits)) - 1;
    const auto entry = [&](std::uint32_t h) { return value_of(h, index, shape); };
    if (run.dtype == DType::fp32) {
      fill_run(buffer.data(), run, iteration, make_table<std::uint32_t>(run.dtype, shape, entry),
               mask);
    } else {
      fill_run(buffer.data(), run, iteration, make_table<std::uint16_t>(run.dtype, shape, entry),
               mask);
    }
  }
}

TestValues::Result TestValues::check(std::span<const std::byte> buffer,
                                     std::span<const DTypeRun> runs,
                                     std::uint32_t iteration) const {
  Result result;
  for (const DTypeRun& run : runs) {
    const Shape shape = shape_for(run.dtype, m_workers);
    const std::uint32_t mask = (1U << static_cast<unsigned>(shape.bits)) - 1;
    const auto entry = [&](std::uint32_t h) {
      int sum = 0;
      for (std::uint32_t w = 0; w < m_workers; ++w) {
        sum += value_of(h, w, shape);
      }
      return sum;
    };
    if (run.dtype == DType::fp32) {
      check_run(buffer.data(), run, iteration, make_table<std::uint32_t>(run.dtype, shape, entry),
                mask, result);
    } else {
      check_run(buffer.data(), run, iteration, make_table<std::uint16_t>(run.dtype, shape, entry),
                mask, result);
    }
  }
  return result;
}

void TestValues::sums(std::span<float> out, const DTypeRun& run, std::uint64_t first,
                      std::uint32_t iteration) const {
  const Shape shape = shape_for(run.dtype, m_workers);
  const std::uint32_t mask = (1U << static_cast<unsigned>(shape.bits)) - 1;
  const auto table = make_table<std::uint32_t>(DType::fp32, shape, [&](std::uint32_t h) {
    int sum = 0;
    for (std::uint32_t w = 0; w < m_workers; ++w) {
      sum += value_of(h, w, shape);
    }
    return sum;
  });
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = std::bit_cast<float>(table[test_hash(first + i, iteration) & mask]);
  }
}

void initial_parameters(std::span<float> out, std::uint64_t first) {
  constexpr std::uint32_t k_no_iteration = 0xFFFFFFFFU; // other values than any gradient's
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto h = static_cast<int>(test_hash(first + i, k_no_iteration) & 1023U);
    out[i] = static_cast<float>(h - 512) * k_learning_rate;
  }
}

} // namespace reckon
