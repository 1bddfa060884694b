// SPDX-License-Identifier: Apache-2.0
#include "probe/sampling.hpp"

#include "documents/cells.hpp"
#include "stats/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace reckon {
namespace {

constexpr double k_noisy_spread = 0.10;

} // namespace

Sampler::Sampler(const SampleLimits& limits, const Clock& clock, std::function<bool()> interrupted)
    : m_limits(limits), m_clock(clock), m_asked_to_stop(std::move(interrupted)),
      m_begin(clock.now()) {}

void Sampler::add(Seconds elapsed) {
  if (m_asked_to_stop && m_asked_to_stop()) {
    m_interrupted = m_done = true;
  }
  if (m_warming_up) {
    warm_up(elapsed);
    return;
  }
  m_samples.push_back(elapsed.count() / static_cast<double>(m_batch));
  m_done = m_done || m_samples.size() >= m_limits.max_samples ||
           m_clock.now() - m_begin >= m_limits.budget;
}

void Sampler::warm_up(Seconds elapsed) {
  m_warm_up_operations += m_batch;
  const Seconds spent = m_clock.now() - m_begin;
  if (!m_batch_settled) {
    grow_batch(elapsed);
  } else {
    m_warm_up.push_back(elapsed.count());
  }
  const bool pressed = spent >= 0.2 * m_limits.budget;
  const bool enough = m_batch_settled && m_warm_up.size() >= m_limits.warm_up_samples &&
                      m_warm_up_operations >= m_limits.warm_up_operations &&
                      spent >= std::min(m_limits.warm_up_time, 0.2 * m_limits.budget);
  bool stable = false;
  if (enough) {
    const auto last = m_warm_up.end() - 3 + (m_warm_up.size() < 3 ? 1 : 0);
    const auto [low, high] = std::minmax_element(last, m_warm_up.end());
    stable = *high <= 1.1 * *low;
  }
  // When time presses, three and a settled batch must do; a whole pass is given up only when it
  // would eat half of the budget.
  if ((enough && (stable || pressed)) || spent >= 0.5 * m_limits.budget) {
    m_warming_up = false;
  }
}

void Sampler::grow_batch(Seconds elapsed) {
  const double step = m_limits.timer_step.count();
  const double seen = std::max(elapsed.count(), step);
  // One operation alone may be as short as 100 steps of the timer; several are timed at least
  // batch_time together.
  const double wanted =
      m_batch == 1 ? 100 * step : std::max(100 * step, 0.8 * m_limits.batch_time.count());
  if (seen >= wanted) {
    m_batch_settled = true;
    return;
  }
  const double target = std::max(100 * step, m_limits.batch_time.count());
  const double grow = std::clamp(target / seen, 2.0, 1000.0);
  m_batch = static_cast<std::uint64_t>(std::ceil(static_cast<double>(m_batch) * grow));
}

Samples Sampler::result(const std::vector<std::vector<double>>& per_rank) const {
  Samples result{m_samples, m_batch, m_interrupted, {}};
  for (const std::vector<double>& seconds : per_rank) {
    result.rank_seconds.push_back(median(seconds));
  }
  return result;
}

double whole_time(std::span<const Timed> parts) {
  double begin = parts.front().begin;
  double end = parts.front().end;
  for (const Timed& part : parts) {
    begin = std::min(begin, part.begin);
    end = std::max(end, part.end);
  }
  return end - begin;
}

Samples sample_team(Team& team, const SampleLimits& limits, const Clock& clock,
                    const Operation& operation, const std::function<bool()>& interrupted) {
  std::vector<Timed> times(team.size());
  std::vector<std::vector<double>> per_rank(team.size());
  SpinBarrier barrier(team.size());
  Sampler sampler(limits, clock, interrupted);
  std::uint64_t batch = 1;
  std::uint64_t next = 0;
  bool stop = false;
  team.run([&](std::size_t rank) noexcept {
    for (;;) {
      barrier.wait(); // rank 0 has set batch, next and stop
      if (stop) {
        return;
      }
      const std::uint64_t first = next;
      const std::uint64_t last = first + batch;
      const double begin = clock.now().count();
      for (std::uint64_t index = first; index < last; ++index) {
        operation(rank, index);
      }
      times[rank] = {begin, clock.now().count()};
      barrier.wait(); // all times are in
      if (rank == 0) {
        for (std::size_t r = 0; r < times.size(); ++r) {
          if (!sampler.warming_up()) {
            per_rank[r].push_back((times[r].end - times[r].begin) / static_cast<double>(batch));
          }
        }
        sampler.add(Seconds(whole_time(times)));
        next += batch;
        batch = sampler.batch();
        stop = sampler.done();
      }
    }
  });
  return sampler.result(per_rank);
}

void remark_samples(Cell& cell, std::size_t taken, std::size_t keep, double spread) {
  if (taken > keep) {
    remark(cell, fmt::format("1 in {} of {} samples kept", (taken + keep - 1) / keep, taken));
  }
  if (spread > k_noisy_spread) {
    remark(cell, CellStatus::noisy,
           fmt::format("samples vary: median absolute deviation {:.0f} %", 100 * spread));
  }
}

void fill_cell(Cell& cell, const Samples& samples, double bytes) {
  if (samples.interrupted || samples.seconds.empty()) {
    discard(cell, CellStatus::skipped,
            samples.interrupted ? "interrupted" : "the time ended before the first sample");
    return;
  }
  const bool rate = cell.unit == k_bytes_per_second;
  for (const double taken : samples.seconds) {
    // A clock that stood still between two readings: the shortest time it can tell.
    const double seconds = std::max(taken, 1e-12);
    cell.samples.push_back(six_digits(rate ? bytes / seconds : seconds));
  }
  summarize_cell(cell);
  if (samples.batch > 1) {
    remark(cell, fmt::format("each sample is the mean of {} in a row", samples.batch));
  }
}

std::vector<double> thinned(const std::vector<double>& samples, std::size_t most) {
  const std::size_t step = (samples.size() + most - 1) / most;
  std::vector<double> kept;
  for (std::size_t i = 0; i < samples.size(); i += step) {
    kept.push_back(samples[i]);
  }
  return kept;
}

double six_digits(double value) {
  return std::strtod(fmt::format("{:.6g}", value).c_str(), nullptr);
}

void divide(Samples& samples, std::uint64_t operations) {
  for (double& seconds : samples.seconds) {
    seconds /= static_cast<double>(operations);
  }
  samples.batch *= operations;
}

void discard(Cell& cell, CellStatus status, const std::string& reason) {
  cell.samples.clear();
  cell.status = status;
  cell.reason = reason;
}

void remark(Cell& cell, const std::string& text) {
  if (!text.empty()) {
    cell.reason += (cell.reason.empty() ? "" : "; ") + text;
  }
}

void remark(Cell& cell, CellStatus status, const std::string& text) {
  if (cell.status == CellStatus::ok) {
    cell.status = status;
    // What decided stands first.
    cell.reason = text + (cell.reason.empty() ? "" : "; " + cell.reason);
    return;
  }
  remark(cell, text);
}

Seconds measure_timer_step(const Clock& clock) {
  Seconds step(1);
  Seconds last = clock.now();
  for (int i = 0; i < 2000; ++i) {
    const Seconds now = clock.now();
    if (now > last) {
      step = std::min(step, now - last);
    }
    last = now;
  }
  return step;
}

} // namespace reckon
