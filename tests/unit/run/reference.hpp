// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schedule/schedule.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

namespace reckon::test {

/// The values of a type of 16 bits, by the definition of its format, and the nearest of them.
/// Without the kernels' ways of shifting bits.
class Halves {
public:
  explicit Halves(DType type)
      : m_fraction_bits(type == DType::fp16 ? 10 : 7), m_bias(type == DType::fp16 ? 15 : 127) {
    const auto infinity = static_cast<std::uint16_t>(0x7FFF >> m_fraction_bits << m_fraction_bits);
    for (std::uint16_t bits = 0; bits < infinity; ++bits) {
      m_finite.push_back(magnitude(bits)); // ascending
    }
    m_infinity = infinity;
  }

  [[nodiscard]] float value(std::uint16_t bits) const {
    const std::uint16_t rest = bits & 0x7FFFU;
    const double absolute = rest < m_infinity    ? m_finite[rest]
                            : rest == m_infinity ? std::numeric_limits<double>::infinity()
                                                 : std::numeric_limits<double>::quiet_NaN();
    return static_cast<float>((bits & 0x8000U) != 0 ? -absolute : absolute);
  }

  /// To nearest, ties to the even one; beyond the largest by half a step, and from there on:
  /// infinity.
  [[nodiscard]] std::uint16_t nearest(float number) const {
    const std::uint16_t sign = std::signbit(number) ? 0x8000U : 0U;
    if (std::isnan(number)) {
      return sign | m_infinity | 1U;
    }
    const double absolute = std::fabs(static_cast<double>(number));
    const auto above = std::lower_bound(m_finite.begin(), m_finite.end(), absolute);
    auto index = static_cast<std::uint16_t>(above - m_finite.begin());
    const double next =
        index < m_infinity ? m_finite[index] : 2 * m_finite.back() - m_finite[index - 2U];
    if (index > 0) {
      const double down = absolute - m_finite[index - 1U], up = next - absolute;
      if (down < up || (down == up && index % 2 == 1)) {
        --index;
      }
    }
    return sign | index; // one beyond the last finite one is infinity
  }

private:
  [[nodiscard]] double magnitude(std::uint16_t bits) const {
    const int exponent = bits >> m_fraction_bits;
    const double fraction = std::ldexp(bits - (exponent << m_fraction_bits), -m_fraction_bits);
    return exponent == 0 ? std::ldexp(fraction, 1 - m_bias)
                         : std::ldexp(1 + fraction, exponent - m_bias);
  }

  int m_fraction_bits, m_bias;
  std::uint16_t m_infinity = 0;
  std::vector<double> m_finite;
};

/// What a schedule means: its ops one at a time, each done at once, by scalar arithmetic from the
/// definitions in schedule.hpp. Without the executor, the movers and the kernels.
class Reference {
public:
  using Memory = std::vector<std::vector<std::byte>>; ///< of a rank, by buffer

  explicit Reference(const Schedule& schedule) : m_schedule(schedule) {
    for (const RankProgram& rank : schedule.ranks) {
      Memory& memory = m_memory.emplace_back();
      for (const std::uint64_t bytes : rank.buffer_bytes) {
        memory.emplace_back(bytes);
      }
    }
  }

  [[nodiscard]] Memory& memory(std::size_t rank) { return m_memory[rank]; }

  /// One iteration. Throws std::logic_error where ops remain that never may start.
  void play() {
    m_arrived.clear();
    std::vector<std::vector<std::vector<bool>>> done;
    for (const RankProgram& rank : m_schedule.ranks) {
      auto& of_rank = done.emplace_back();
      for (const LaneProgram& lane : rank.lanes) {
        of_rank.emplace_back(lane.ops().size());
      }
    }
    for (bool any = true, all = false; !all; any = false) {
      all = true;
      for (std::uint32_t r = 0; r < done.size(); ++r) {
        for (std::size_t l = 0; l < done[r].size(); ++l) {
          const LaneProgram& lane = m_schedule.ranks[r].lanes[l];
          for (std::size_t i = 0; i < lane.ops().size(); ++i) {
            const auto depends_on = lane.dependencies(i);
            if (!done[r][l][i] && std::all_of(depends_on.begin(), depends_on.end(),
                                              [&](std::uint32_t d) { return done[r][l][d]; })) {
              done[r][l][i] = does(r, l, lane, lane.ops()[i]);
              any = any || done[r][l][i];
            }
            all = all && done[r][l][i];
          }
        }
      }
      if (!any && !all) {
        throw std::logic_error("the schedule cannot go on");
      }
    }
  }

private:
  /// False: not yet.
  bool does(std::uint32_t rank, std::size_t lane, const LaneProgram& program, const Op& op) {
    std::byte* const to = at(op.kind == OpKind::write ? op.peer : rank, op.destination);
    const std::uint64_t elements = op.bytes / size_of(op.dtype);
    switch (op.kind) {
    case OpKind::write:
      if (op.bytes != 0) { // else a bare signal, whose slices may be anywhere
        std::memmove(to, at(rank, op.source), op.bytes);
      }
      m_arrived.emplace(op.peer, lane, op.tag);
      return true;
    case OpKind::await:
      return m_arrived.contains({rank, lane, op.tag});
    case OpKind::copy:
      std::memmove(to, at(rank, op.source), op.bytes);
      return true;
    case OpKind::reduce:
    case OpKind::sum_in_place: {
      std::vector<std::byte*> sources;
      for (const Slice& source : program.sources(op)) {
        sources.push_back(at(rank, source));
      }
      for (std::uint64_t e = 0; e < elements; ++e) {
        sum(op, e, sources, to);
      }
      return true;
    }
    case OpKind::narrow:
      for (std::uint64_t e = 0; e < elements; ++e) {
        put(op.dtype, to, e, get(DType::fp32, at(rank, op.source), e));
      }
      return true;
    case OpKind::widen:
      for (std::uint64_t e = 0; e < elements; ++e) {
        put(DType::fp32, to, e, get(op.dtype, at(rank, op.source), e));
      }
      return true;
    case OpKind::to_fixed:
      for (std::uint64_t e = 0; e < op.bytes / sizeof(float); ++e) {
        const double scaled =
            std::ldexp(static_cast<double>(get(DType::fp32, at(rank, op.source), e)), op.exponent);
        const double held = std::isnan(scaled)
                                ? -static_cast<double>(op.limit)
                                : std::clamp(std::nearbyint(scaled), -static_cast<double>(op.limit),
                                             static_cast<double>(op.limit));
        const auto whole = static_cast<std::int32_t>(held);
        std::memcpy(to + e * sizeof whole, &whole, sizeof whole);
      }
      return true;
    case OpKind::from_fixed:
      for (std::uint64_t e = 0; e < op.bytes / sizeof(float); ++e) {
        std::int32_t whole = 0;
        std::memcpy(&whole, at(rank, op.source) + e * sizeof whole, sizeof whole);
        put(DType::fp32, to, e,
            static_cast<float>(std::ldexp(static_cast<double>(whole), -op.exponent)));
      }
      return true;
    default:
      throw std::logic_error("no such op in the reference");
    }
  }

  void sum(const Op& op, std::uint64_t e, const std::vector<std::byte*>& sources, std::byte* to) {
    const auto each_target = [&](auto put_at) {
      if (op.kind == OpKind::reduce) {
        put_at(to);
      } else {
        std::for_each(sources.begin(), sources.end(), put_at);
      }
    };
    if (op.dtype == DType::int32) {
      std::uint32_t total = 0;
      for (const std::byte* source : sources) {
        std::uint32_t one = 0;
        std::memcpy(&one, source + e * sizeof one, sizeof one);
        total += one;
      }
      each_target([&](std::byte* at) { std::memcpy(at + e * sizeof total, &total, sizeof total); });
      return;
    }
    float total = get(op.dtype, sources.front(), e);
    for (std::size_t s = 1; s < sources.size(); ++s) {
      total += get(op.dtype, sources[s], e);
    }
    each_target([&](std::byte* at) { put(op.dtype, at, e, total); });
  }

  [[nodiscard]] float get(DType type, const std::byte* from, std::uint64_t e) const {
    if (type == DType::fp32) {
      float value = 0;
      std::memcpy(&value, from + e * sizeof value, sizeof value);
      return value;
    }
    std::uint16_t bits = 0;
    std::memcpy(&bits, from + e * sizeof bits, sizeof bits);
    return halves(type).value(bits);
  }
  void put(DType type, std::byte* to, std::uint64_t e, float value) const {
    if (type == DType::fp32) {
      std::memcpy(to + e * sizeof value, &value, sizeof value);
      return;
    }
    const std::uint16_t bits = halves(type).nearest(value);
    std::memcpy(to + e * sizeof bits, &bits, sizeof bits);
  }
  [[nodiscard]] static const Halves& halves(DType type) {
    static const Halves fp16(DType::fp16), bf16(DType::bf16);
    return type == DType::fp16 ? fp16 : bf16;
  }
  [[nodiscard]] std::byte* at(std::uint32_t rank, Slice slice) {
    const Located located = locate(m_schedule, rank, slice);
    return m_memory.at(located.rank).at(located.at.buffer).data() + located.at.offset;
  }

  const Schedule& m_schedule;
  std::vector<Memory> m_memory;
  std::set<std::tuple<std::uint32_t, std::size_t, std::uint32_t>> m_arrived; ///< rank, lane, tag
};

} // namespace reckon::test
