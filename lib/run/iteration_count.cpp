// SPDX-License-Identifier: Apache-2.0
#include "run/iteration_count.hpp"

#include "core/error.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace reckon {

IterationCount::IterationCount(const RunOptions& options, std::uint64_t first)
    : m_first(first), m_warm_up(options.warm_up), m_rule({.budget = options.budget}) {
  if (!options.iterations) {
    return;
  }
  const std::uint64_t all = std::uint64_t{*options.iterations} + options.warm_up;
  if (first >= all) {
    fail(ErrorKind::input,
         fmt::format("{}: its checkpoint is after step {}, and {} iterations with {} to warm up "
                     "are {} steps in all; ask for more --iterations",
                     options.checkpoints.resume_folder, first, *options.iterations, options.warm_up,
                     all));
  }
  const std::uint64_t left = all - first;
  m_warm_up = static_cast<std::uint32_t>(std::min<std::uint64_t>(m_warm_up, left - 1));
  m_wanted = left - m_warm_up;
}

bool IterationCount::pauses(std::uint64_t iteration, std::uint32_t every) const {
  const std::uint64_t done = counts(iteration) ? iteration - m_first - m_warm_up : 0;
  return every > 0 && done > 0 && done % every == 0;
}

void IterationCount::add(double seconds, Seconds elapsed) {
  ++m_counted;
  m_rule.add(seconds, elapsed);
}

bool IterationCount::enough() const {
  constexpr std::uint64_t k_least = 3;
  return m_wanted ? m_counted >= *m_wanted : m_rule.done() && m_counted >= k_least;
}

} // namespace reckon
