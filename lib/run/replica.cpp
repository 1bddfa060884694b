// SPDX-License-Identifier: Apache-2.0
#include "run/replica.hpp"

#include "kernels/optimizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace reckon {
namespace {

/// The gradient's run that a stretch of parameters belongs to, and its first element there.
struct Origin {
  const DTypeRun* run;
  std::uint64_t element;
};

Origin origin_of(const Schedule& schedule, const ParameterRun& held) {
  for (const DTypeRun& run : schedule.runs) {
    if (held.gradient_offset >= run.offset_bytes &&
        held.gradient_offset < run.offset_bytes + run.bytes) {
      return {&run, (held.gradient_offset - run.offset_bytes) / sizeof(float)};
    }
  }
  return {&schedule.runs.front(), 0}; // an empty stretch
}

/// Small enough for the caches, long enough for the vectors.
constexpr std::size_t k_block = 4096;

/// Adds to `result` what of `got` is not bit for bit as expected; say(index, expected) tells of the
/// first.
template <class F>
void count_wrong(TestValues::Result& result, std::span<const float> got,
                 std::span<const float> expected, F say) {
  result.checked_bytes += got.size_bytes();
  if (std::memcmp(got.data(), expected.data(), got.size_bytes()) == 0) {
    return;
  }
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::memcmp(&got[i], &expected[i], sizeof(float)) != 0) {
      ++result.wrong_elements;
      if (result.first_error.empty()) {
        result.first_error = say(i, expected[i]);
      }
    }
  }
}

} // namespace

ParameterReplica::ParameterReplica(const Schedule& schedule, std::size_t rank,
                                   const TestValues& values)
    : m_schedule(schedule), m_rank(schedule.ranks[rank]), m_values(values) {
  for (const ParameterRun& held : m_rank.parameters) {
    const std::size_t begin = m_parameters.size();
    m_held.emplace(held.gradient_offset, Held{held.bytes, begin});
    m_parameters.resize(begin + held.bytes / sizeof(float));
    initial_parameters(std::span(m_parameters).subspan(begin), origin_of(schedule, held).element);
  }
  m_state1.resize(state_arrays(schedule.optimizer) > 0 ? m_parameters.size() : 0);
  m_state2.resize(state_arrays(schedule.optimizer) > 1 ? m_parameters.size() : 0);
}

void ParameterReplica::fill(std::span<const std::span<std::byte>> buffers) const {
  for (const ParameterRun& held : m_rank.parameters) {
    auto* const words = reinterpret_cast<float*>(buffers[held.at.buffer].data() + held.at.offset);
    initial_parameters({words, held.bytes / sizeof(float)}, origin_of(m_schedule, held).element);
  }
}

template <class F>
void ParameterReplica::step_blocks(std::uint32_t iteration, F f) {
  std::vector<float> sums(k_block);
  std::size_t done = 0; // of the replica
  for (const ParameterRun& held : m_rank.parameters) {
    const Origin origin = origin_of(m_schedule, held);
    const std::uint64_t count = held.bytes / sizeof(float);
    for (std::uint64_t at = 0; at < count; at += k_block) {
      const std::size_t n = std::min<std::uint64_t>(k_block, count - at);
      const auto part = [&](std::vector<float>& all) {
        return all.empty() ? std::span<float>() : std::span(all).subspan(done, n);
      };
      m_values.sums(std::span(sums).first(n), *origin.run, origin.element + at, iteration);
      optimizer_step(m_schedule.optimizer, part(m_parameters), part(m_state1), part(m_state2),
                     std::span(sums).first(n), iteration + 1);
      f(held, at, n, done);
      done += n;
    }
  }
}

TestValues::Result ParameterReplica::check(std::span<const std::span<std::byte>> buffers,
                                           std::uint32_t iteration) {
  TestValues::Result result;
  step_blocks(
      iteration, [&](const ParameterRun& held, std::uint64_t at, std::size_t n, std::size_t done) {
        const auto* const got =
            reinterpret_cast<const float*>(buffers[held.at.buffer].data() + held.at.offset) + at;
        count_wrong(result, {got, n}, std::span(m_parameters).subspan(done, n),
                    [&](std::size_t i, float expected) {
                      return fmt::format(
                          "parameter of gradient byte {} after step {}: expected {}, got {}",
                          held.gradient_offset + (at + i) * sizeof(float), iteration + 1, expected,
                          got[i]);
                    });
      });
  return result;
}

void ParameterReplica::step(std::uint32_t iteration) {
  step_blocks(iteration, [](const ParameterRun&, std::uint64_t, std::size_t, std::size_t) {});
}

TestValues::Result ParameterReplica::compare(std::span<const std::span<std::byte>> buffers,
                                             std::span<const KeptRun> places,
                                             std::uint32_t steps) const {
  TestValues::Result result;
  for (const KeptRun& place : places) {
    // The held run that begins last before the place, and those after it that reach into it.
    auto it = m_held.upper_bound(place.gradient_offset);
    for (it = it == m_held.begin() ? it : std::prev(it);
         it != m_held.end() && it->first < place.gradient_offset + place.bytes; ++it) {
      const auto& [offset, held] = *it;
      const std::uint64_t from = std::max(offset, place.gradient_offset);
      const std::uint64_t to = std::min(offset + held.bytes, place.gradient_offset + place.bytes);
      if (from >= to) {
        continue;
      }
      const auto* const got = reinterpret_cast<const float*>(
          buffers[place.at.buffer].data() + place.at.offset + (from - place.gradient_offset));
      const std::vector<float>& all = place.array == 0   ? m_parameters
                                      : place.array == 1 ? m_state1
                                                         : m_state2;
      const std::size_t n = (to - from) / sizeof(float);
      count_wrong(result, {got, n},
                  std::span(all).subspan(held.first + (from - offset) / sizeof(float), n),
                  [&](std::size_t i, float expected) {
                    return fmt::format("{} of gradient byte {} after step {}: expected {}, got {}",
                                       place.array == 0 ? "parameter" : "optimizer state",
                                       from + i * sizeof(float), steps, expected, got[i]);
                  });
    }
  }
  return result;
}

} // namespace reckon
