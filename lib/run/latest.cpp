// SPDX-License-Identifier: Apache-2.0
#include "run/latest.hpp"

#include "core/error.hpp"
#include "core/optimizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace reckon {
namespace {

/// fp32 holds whole numbers below 2^24; the first parameters take the rest.
constexpr std::uint32_t k_most_count = 1U << 22U;

} // namespace

struct LatestValues::Stretch {
  const ParameterRun& held;
  std::span<const float> got;
  std::uint64_t first = 0; ///< element in its run
  std::optional<std::uint32_t> index;
};

LatestValues::LatestValues(std::uint32_t workers, std::uint32_t steps)
    : m_workers(workers), m_steps(steps), m_digits(0) {
  for (std::uint64_t power = steps + 1ULL; power <= k_most_count; power *= steps + 1ULL) {
    ++m_digits;
  }
  if (m_digits == 0) {
    fail(ErrorKind::input, fmt::format("{} asynchronous steps cannot be told apart in fp32; use at "
                                       "most {}",
                                       steps, k_most_count - 1));
  }
  m_classes = std::max(1U, (workers + m_digits - 1) / m_digits);
}

void LatestValues::fill(std::span<std::byte> buffer, std::span<const DTypeRun> runs,
                        std::uint32_t index) const {
  const float mine = static_cast<float>(
      std::pow(static_cast<double>(m_steps + 1ULL), static_cast<double>(index % m_digits)));
  poison_gaps(buffer, runs);
  for (const DTypeRun& run : runs) {
    auto* const words = reinterpret_cast<float*>(buffer.data() + run.offset_bytes);
    for (std::uint64_t e = 0; e < run.bytes / sizeof(float); ++e) {
      words[e] = e % m_classes == index / m_digits ? mine : 0.0F;
    }
  }
}

std::string LatestValues::wrong_digits(std::int64_t count, std::uint32_t residue, bool latest,
                                       std::optional<std::uint32_t> index) const {
  const std::uint32_t first = residue * m_digits;
  const std::int64_t base = static_cast<std::int64_t>(m_steps) + 1;
  std::string wrong;
  for (std::uint32_t w = first; w < std::min(m_workers, first + m_digits); ++w, count /= base) {
    if ((latest || w == index) && count % base != m_steps) {
      wrong += fmt::format("{}{} of {} changes of worker {}", wrong.empty() ? "" : ", ",
                           count % base, m_steps, w);
    }
  }
  return wrong.empty() && count != 0 ? "more changes than were made" : wrong;
}

void LatestValues::check_class(const Stretch& s, std::uint32_t residue,
                               RankVerification& result) const {
  const std::size_t begin = (residue + m_classes - s.first % m_classes) % m_classes;
  std::vector<float> initial(k_compared_block);
  std::optional<std::int64_t> count; // changes, as digits: of the first element of this class
  std::string wrong;
  for (std::size_t at = 0; at < s.got.size(); at += k_compared_block) {
    const std::size_t n = std::min(k_compared_block, s.got.size() - at);
    initial_parameters(std::span(initial).first(n), s.first + at);
    std::size_t i = begin;
    while (i < at) {
      i += (at - i + m_classes - 1) / m_classes * m_classes;
    }
    for (; i < at + n; i += m_classes) {
      const float start = initial[i - at];
      const double changes = (static_cast<double>(start) - static_cast<double>(s.got[i])) /
                             static_cast<double>(k_learning_rate);
      const bool whole =
          changes >= 0 && changes <= 2.0 * k_most_count && changes == std::floor(changes);
      if (!count && whole) {
        count = static_cast<std::int64_t>(changes);
        wrong = wrong_digits(*count, residue, s.held.latest, s.index);
      }
      const bool same = whole && static_cast<std::int64_t>(changes) == *count;
      if (same && wrong.empty()) {
        continue;
      }
      ++result.wrong_elements;
      if (result.first_error.empty()) {
        result.first_error = fmt::format(
            "{} parameter of gradient byte {}: {}", s.held.latest ? "latest" : "worker's",
            s.held.gradient_offset + i * sizeof(float),
            !whole  ? fmt::format("{} cannot come of {} by any changes", s.got[i], start)
            : !same ? "it has other changes than others of its part"
                    : wrong);
      }
    }
  }
}

RankVerification LatestValues::check(const Schedule& schedule, const RankProgram& rank, Views views,
                                     std::optional<std::uint32_t> index) const {
  RankVerification result;
  for (const ParameterRun& held : rank.parameters) {
    const Stretch stretch{held, floats_at(views, held.at, held.bytes),
                          first_element(schedule, held), index};
    for (std::uint32_t residue = 0; residue < m_classes; ++residue) {
      check_class(stretch, residue, result);
    }
    result.checked_bytes += held.bytes;
  }
  return result;
}

} // namespace reckon
