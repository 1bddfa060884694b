// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/clock.hpp"
#include "documents/profile.hpp"
#include "probe/team.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace reckon {

/// Seconds since its construction. A double holds the time since boot of a machine that is up for
/// years to some 10 ns only; of a run it holds less than a picosecond.
class RunClock final : public Clock {
public:
  [[nodiscard]] Seconds now() const noexcept override {
    return Seconds(static_cast<double>(monotonic_ns() - m_start_ns) * 1e-9);
  }

private:
  std::int64_t m_start_ns = monotonic_ns();
};

/// How one visit of a cell is sampled. It uses its whole budget: the precision is judged over all
/// visits of a cell.
struct SampleLimits {
  Seconds budget{0.02}; ///< warm-up and samples together
  std::size_t max_samples = 5'000;
  std::size_t warm_up_samples = 3;
  Seconds warm_up_time{0.010};          ///< at most a fifth of the budget
  std::uint64_t warm_up_operations = 0; ///< a whole pass over a footprint, for example
  Seconds batch_time{50e-6}; ///< operations too short to be timed alone are timed this long
  Seconds timer_step{50e-9}; ///< a time below 100 of these is too short
};

/// The result of sampling.
struct Samples {
  std::vector<double> seconds; ///< seconds of one operation each
  std::uint64_t batch = 1;     ///< operations timed together for one sample
  bool interrupted = false;
  std::vector<double> rank_seconds; ///< median time of one operation on each thread
};

/// Decides, sample after sample, the number of operations of the next timing and the end. Reads the
/// time only through `clock`. Thread-compatible.
class Sampler {
public:
  Sampler(const SampleLimits& limits, const Clock& clock, std::function<bool()> interrupted = {});

  /// Operations of the next timing, at least 1.
  [[nodiscard]] std::uint64_t batch() const { return m_batch; }
  [[nodiscard]] bool warming_up() const { return m_warming_up; }
  [[nodiscard]] bool done() const { return m_done; }
  /// `elapsed` of the batch() operations just timed.
  void add(Seconds elapsed);

  /// Seconds for one operation, in the order taken; without the warm-up.
  [[nodiscard]] const std::vector<double>& samples() const { return m_samples; }
  [[nodiscard]] bool interrupted() const { return m_interrupted; }
  /// The whole result. `per_rank`: times of one operation on each thread, whose medians it takes.
  [[nodiscard]] Samples result(const std::vector<std::vector<double>>& per_rank = {}) const;

private:
  void warm_up(Seconds elapsed);
  void grow_batch(Seconds elapsed);

  SampleLimits m_limits;
  const Clock& m_clock;
  std::function<bool()> m_asked_to_stop;
  Seconds m_begin;
  std::uint64_t m_batch = 1;
  std::uint64_t m_warm_up_operations = 0;
  std::vector<double> m_warm_up;
  std::vector<double> m_samples;
  bool m_batch_settled = false, m_warming_up = true, m_done = false, m_interrupted = false;
};

/// One operation of one thread; `index` counts up over warm-up and samples, for rotating through
/// memory. Must not throw.
using Operation = std::function<void(std::size_t rank, std::uint64_t index)>;

/// Begin and end of one thread's part, in seconds of one clock.
struct alignas(128) Timed {
  double begin = 0, end = 0;
};

/// From the first begin to the last end: the time of all parts together.
[[nodiscard]] double whole_time(std::span<const Timed> parts);

/// Runs `operation` on all threads of `team` until there are enough samples. All start together; a
/// sample is whole_time().
[[nodiscard]] Samples sample_team(Team& team, const SampleLimits& limits, const Clock& clock,
                                  const Operation& operation,
                                  const std::function<bool()>& interrupted);

inline constexpr std::size_t k_keep_samples = 100;

/// Puts samples into `cell`: seconds as they are, or `bytes` of one operation as a rate, to 6
/// digits. Without samples the cell is skipped, with the reason.
void fill_cell(Cell& cell, const Samples& samples, double bytes);

/// Says how many of the samples taken were kept, and whether they vary too much for an ok cell.
void remark_samples(Cell& cell, std::size_t taken, std::size_t keep, double spread);

/// At most `most` of the samples, evenly spread over them.
[[nodiscard]] std::vector<double> thinned(const std::vector<double>& samples, std::size_t most);
/// With as many digits as are worth keeping in a file.
[[nodiscard]] double six_digits(double value);

/// Samples of one operation each out of samples of `operations` each.
void divide(Samples& samples, std::uint64_t operations);

/// Invalidates the cell's measurement: removes its samples and gives the reason.
void discard(Cell& cell, CellStatus status, const std::string& reason);

/// Adds a remark to cell.reason; with `status`, worsens an ok cell to it.
void remark(Cell& cell, const std::string& text);
void remark(Cell& cell, CellStatus status, const std::string& text);

/// Smallest step that the clock makes, including the time of reading it.
[[nodiscard]] Seconds measure_timer_step(const Clock& clock);

/// Keeps the compiler from removing the computation of `value`.
template <class T>
inline void keep(const T& value) noexcept {
  asm volatile("" : : "r,m"(value) : "memory");
}

} // namespace reckon
