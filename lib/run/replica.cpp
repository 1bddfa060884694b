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
  const Schedule::Run* run;
  std::uint64_t element;
};

Origin origin_of(const Schedule& schedule, const ParameterRun& held) {
  for (const Schedule::Run& run : schedule.runs) {
    if (held.gradient_offset >= run.offset && held.gradient_offset < run.offset + run.bytes) {
      return {&run, (held.gradient_offset - run.offset) / sizeof(float)};
    }
  }
  return {&schedule.runs.front(), 0}; // an empty stretch
}

/// Small enough for the caches, long enough for the vectors.
constexpr std::size_t k_block = 4096;

} // namespace

ParameterReplica::ParameterReplica(const Schedule& schedule, std::size_t rank,
                                   const TestValues& values)
    : m_schedule(schedule), m_rank(schedule.ranks[rank]), m_values(values) {
  for (const ParameterRun& held : m_rank.parameters) {
    const std::size_t begin = m_parameters.size();
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

TestValues::Result ParameterReplica::check(std::span<const std::span<std::byte>> buffers,
                                           std::uint32_t iteration) {
  TestValues::Result result;
  std::vector<float> sums(k_block);
  std::size_t done = 0; // of the replica
  for (const ParameterRun& held : m_rank.parameters) {
    const Origin origin = origin_of(m_schedule, held);
    const auto* const got =
        reinterpret_cast<const float*>(buffers[held.at.buffer].data() + held.at.offset);
    const std::uint64_t count = held.bytes / sizeof(float);
    for (std::uint64_t at = 0; at < count; at += k_block) {
      const std::size_t n = std::min<std::uint64_t>(k_block, count - at);
      const auto part = [&](std::vector<float>& all) {
        return all.empty() ? std::span<float>() : std::span(all).subspan(done, n);
      };
      m_values.sums(std::span(sums).first(n), *origin.run, origin.element + at, iteration);
      optimizer_step(m_schedule.optimizer, part(m_parameters), part(m_state1), part(m_state2),
                     std::span(sums).first(n), iteration + 1);
      if (std::memcmp(got + at, m_parameters.data() + done, n * sizeof(float)) != 0) {
        for (std::size_t i = 0; i < n; ++i) {
          if (std::memcmp(got + at + i, &m_parameters[done + i], sizeof(float)) == 0) {
            continue;
          }
          ++result.wrong_elements;
          if (result.first_error.empty()) {
            result.first_error =
                fmt::format("parameter of gradient byte {} after step {}: expected {}, got {}",
                            held.gradient_offset + (at + i) * sizeof(float), iteration + 1,
                            m_parameters[done + i], got[at + i]);
          }
        }
      }
      done += n;
    }
    result.checked_bytes += held.bytes;
  }
  return result;
}

} // namespace reckon
