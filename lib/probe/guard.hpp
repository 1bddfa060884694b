// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/units.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace reckon {

/// What else happened on the processors of a measurement while it ran (measuring.md rule 16): other
/// processes and interrupts or the hypervisor ran, or our threads had to wait for a processor.
struct Disturbance {
  bool only_waited = false; ///< waiting is all that is noticeable
  /// Large enough to doubt the measurement; text says why: "other processes used 0.37 processors".
  bool noticeable = false;
  std::string text;
};

/// Watches one interval at a time. Abstract so that the runner can be tested. Thread-compatible.
class Guard {
public:
  Guard() = default;
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  virtual ~Guard() = default;
  virtual void begin() = 0;
  /// What happened since begin().
  [[nodiscard]] virtual Disturbance end() = 0;
  /// Sleeps until nothing noticeable happens for a tenth of a second, at most `limit`. False: still
  /// busy.
  virtual bool wait_for_quiet(Seconds limit) = 0;
};

/// Sums over the processors asked for, in seconds since boot.
struct CpuTimes {
  double busy = 0;
  double stolen = 0;
};

/// Out of the text of /proc/stat, whose numbers are in ticks of 1 / `ticks_per_second`. nullopt
/// when a processor is missing.
[[nodiscard]] std::optional<CpuTimes>
parse_cpu_times(std::string_view proc_stat, const std::vector<int>& cpus, double ticks_per_second);

/// A Guard that reads /proc. The kernel counts in ticks (usually 10 ms): what lasts less than three
/// of them is only seen through our own threads' waiting, which is counted in nanoseconds.
class ProcGuard final : public Guard {
public:
  /// Watches `cpus`, the processors this process may use: on a large host under a cpuset, the rest
  /// is not our business.
  explicit ProcGuard(std::vector<int> cpus);
  void begin() override;
  [[nodiscard]] Disturbance end() override;
  bool wait_for_quiet(Seconds limit) override;
  /// From now on `pid`, a process that we started, is not counted as another one.
  void add_own_process(pid_t pid) { m_own.push_back(pid); }

private:
  struct Reading {
    std::int64_t at_ns = 0;
    CpuTimes all;
    double own = 0;    ///< seconds of processor time of our processes
    double waited = 0; ///< seconds of our threads on the run queues
  };
  [[nodiscard]] Reading read() const;

  std::vector<int> m_cpus;
  std::vector<pid_t> m_own;
  Reading m_begin;
};

/// The judgement of ProcGuard, from what was counted over `seconds` on `cpus` processors: all times
/// in seconds.
[[nodiscard]] Disturbance judge_disturbance(double seconds, std::size_t cpus, double busy,
                                            double own, double stolen, double waited, double tick);

} // namespace reckon
