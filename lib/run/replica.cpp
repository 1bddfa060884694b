// SPDX-License-Identifier: Apache-2.0
#include "run/replica.hpp"

#include "core/digest.hpp"
#include "kernels/optimizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace reckon {
ParameterReplica::ParameterReplica(const Schedule& schedule, std::size_t rank,
                                   const TestValues& values)
    : m_schedule(schedule), m_rank(schedule.ranks[rank]), m_values(values) {
  for (const ParameterRun& held : m_rank.parameters) {
    const std::size_t begin = m_parameters.size();
    m_held.emplace(held.gradient_offset, Held{held.bytes, begin});
    m_parameters.resize(begin + held.bytes / sizeof(float));
    initial_parameters(std::span(m_parameters).subspan(begin), first_element(schedule, held));
  }
  m_state1.resize(state_arrays(schedule.optimizer) > 0 ? m_parameters.size() : 0);
  m_state2.resize(state_arrays(schedule.optimizer) > 1 ? m_parameters.size() : 0);
}

template <class F>
void ParameterReplica::step_blocks(std::uint32_t iteration, F f) {
  std::vector<float> sums(k_compared_block);
  std::size_t done = 0; // of the replica
  for (const ParameterRun& held : m_rank.parameters) {
    const std::uint64_t first = first_element(m_schedule, held);
    const std::uint64_t count = held.bytes / sizeof(float);
    for (std::uint64_t at = 0; at < count; at += k_compared_block) {
      const std::size_t n = std::min<std::uint64_t>(k_compared_block, count - at);
      const auto part = [&](std::vector<float>& all) {
        return all.empty() ? std::span<float>() : std::span(all).subspan(done, n);
      };
      m_values.sums(std::span(sums).first(n), first + at, iteration);
      optimizer_step(m_schedule.optimizer, part(m_parameters), part(m_state1), part(m_state2),
                     std::span(sums).first(n), iteration + 1);
      f(held, at, n, done);
      done += n;
    }
  }
}

RankVerification ParameterReplica::check(Views views, std::uint32_t iteration) {
  RankVerification result;
  step_blocks(
      iteration, [&](const ParameterRun& held, std::uint64_t at, std::size_t n, std::size_t done) {
        const std::span<const float> got = floats_at(views, held.at, held.bytes).subspan(at, n);
        const auto expected = std::span(std::as_const(m_parameters)).subspan(done, n);
        count_wrong(result, got, expected, [&](std::size_t i) {
          return fmt::format("parameter of gradient byte {} after step {}: expected {}, got {}",
                             held.gradient_offset + (at + i) * sizeof(float), iteration + 1,
                             expected[i], got[i]);
        });
      });
  return result;
}

void ParameterReplica::step(std::uint32_t iteration) {
  step_blocks(iteration, [](const ParameterRun&, std::uint64_t, std::size_t, std::size_t) {});
}

RankVerification ParameterReplica::compare(Views views, std::span<const KeptRun> places,
                                           std::uint32_t steps) const {
  RankVerification result;
  for (const KeptRun& place : places) {
    const std::vector<float>& all = place.array == 0   ? m_parameters
                                    : place.array == 1 ? m_state1
                                                       : m_state2;
    const std::span<const float> there = floats_at(views, place.at, place.bytes);
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
      const std::size_t n = (to - from) / sizeof(float);
      const auto got = there.subspan((from - place.gradient_offset) / sizeof(float), n);
      const auto expected = std::span(all).subspan(held.first + (from - offset) / sizeof(float), n);
      count_wrong(result, got, expected, [&](std::size_t i) {
        return fmt::format("{} of gradient byte {} after step {}: expected {}, got {}",
                           place.array == 0 ? "parameter" : "optimizer state",
                           from + i * sizeof(float), steps, expected[i], got[i]);
      });
    }
  }
  return result;
}

std::string parameters_digest(const RankProgram& program, Views views) {
  std::vector<ParameterRun> runs = program.parameters;
  std::ranges::sort(runs, {}, &ParameterRun::gradient_offset);
  Digester digester;
  std::uint64_t next = 0;
  for (const ParameterRun& run : runs) {
    const std::uint64_t skip = std::max(next, run.gradient_offset) - run.gradient_offset;
    if (skip < run.bytes) {
      const auto bytes = views[run.at.buffer].subspan(run.at.offset + skip, run.bytes - skip);
      digester.add({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
      next = run.gradient_offset + run.bytes;
    }
  }
  return digester.finish();
}

} // namespace reckon
