// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/units.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace reckon {

/// Watches other activity on the processors of a measurement. Abstract so that the runner can be
/// tested. Thread-compatible.
class Guard {
public:
  Guard() = default;
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  virtual ~Guard() = default;
  virtual void begin() = 0;
  /// The activity since begin() that makes measurements doubtful: "other processes used 0.37 of 2
  /// processors". Empty: no such activity.
  [[nodiscard]] virtual std::string end() = 0;
};

/// Sums over the given processors, in seconds since boot.
struct CpuTimes {
  double busy = 0;
  double stolen = 0;
};

/// Out of the text of /proc/stat, whose numbers are in ticks of 1 / `ticks_per_second`. nullopt
/// when a processor is missing.
[[nodiscard]] std::optional<CpuTimes>
parse_cpu_times(std::string_view proc_stat, const std::vector<int>& cpus, double ticks_per_second);

/// A Guard that reads /proc, where the kernel counts in ticks (usually 10 ms).
class ProcGuard final : public Guard {
public:
  /// Watches `cpus`, the processors this process may use: on a large host under a cpuset, the rest
  /// does not matter.
  explicit ProcGuard(std::vector<int> cpus);
  void begin() override;
  [[nodiscard]] std::string end() override;
  /// From now on `pid`, a process that we started, does not count as another one.
  void add_own_process(pid_t pid) { m_own.push_back(pid); }

private:
  struct Reading {
    std::int64_t at_ns = 0;
    CpuTimes all;
    double own = 0; ///< seconds of processor time of our processes
  };
  [[nodiscard]] Reading read() const;

  std::vector<int> m_cpus;
  std::vector<pid_t> m_own;
  Reading m_begin;
};

/// The judgement of ProcGuard on the counts over `seconds` on `cpus` processors: all times in
/// seconds.
[[nodiscard]] std::string judge_disturbance(double seconds, std::size_t cpus, double busy,
                                            double own, double stolen, double tick);

} // namespace reckon
