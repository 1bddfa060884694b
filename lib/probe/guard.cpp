// SPDX-License-Identifier: Apache-2.0
#include "probe/guard.hpp"

#include "core/clock.hpp"
#include "core/file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <sstream>
#include <sys/resource.h>
#include <unistd.h>

namespace reckon {
namespace {

std::string text_of(const std::string& path) {
  return read_if_readable(path).value_or("");
}

double seconds(const timeval& t) {
  return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
}

double ticks_per_second() {
  static const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  return ticks;
}

/// Processor time of another process; 0 when it has gone (its time is our children's then).
double process_time(pid_t pid) {
  const std::string text = text_of(fmt::format("/proc/{}/stat", pid));
  const std::size_t close = text.rfind(')'); // the name before it may hold blanks
  std::istringstream fields(close == std::string::npos ? "" : text.substr(close + 1));
  double time = 0;
  std::string word;
  for (int field = 3; field <= 15 && fields >> word; ++field) {
    time += field >= 14 ? std::stod(word) : 0; // utime and stime, man 5 proc
  }
  return time / ticks_per_second();
}

} // namespace

std::optional<CpuTimes> parse_cpu_times(std::string_view proc_stat, const std::vector<int>& cpus,
                                        double ticks_per_second) {
  CpuTimes sum;
  std::size_t found = 0;
  std::istringstream lines{std::string(proc_stat)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (!name.starts_with("cpu") || name.size() == 3 || // "cpu" alone is the sum of all
        std::find(cpus.begin(), cpus.end(), std::atoi(name.c_str() + 3)) == cpus.end()) {
      continue;
    }
    ++found;
    // user nice system idle iowait irq softirq steal; guests' time is within user and nice.
    std::array<double, 8> t{};
    for (double& value : t) {
      words >> value;
      value /= ticks_per_second;
    }
    sum.busy += t[0] + t[1] + t[2] + t[5] + t[6];
    sum.stolen += t[7];
  }
  return found == cpus.size() ? std::optional(sum) : std::nullopt;
}

std::string judge_disturbance(double seconds, std::size_t cpus, double busy, double own,
                              double stolen, double tick) {
  if (seconds <= 0) {
    return "";
  }
  // A twentieth of what there is, and more than counting in ticks can be wrong by: one tick for
  // each processor and one for luck.
  const double whole = seconds * static_cast<double>(cpus);
  const double blur = tick * static_cast<double>(cpus + 1);
  const double others = busy - own;
  std::vector<std::string> texts;
  if (others > 0.05 * whole && others > blur) {
    texts.push_back(
        fmt::format("other processes used {:.2f} of {} processors", others / seconds, cpus));
  }
  if (stolen > 0.02 * whole && stolen > blur) {
    texts.push_back(
        fmt::format("the hypervisor took {:.2f} of {} processors", stolen / seconds, cpus));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

ProcGuard::ProcGuard(std::vector<int> cpus) : m_cpus(std::move(cpus)) {
  begin();
}

ProcGuard::Reading ProcGuard::read() const {
  Reading now;
  now.at_ns = monotonic_ns();
  now.all = parse_cpu_times(text_of("/proc/stat"), m_cpus, ticks_per_second()).value_or(CpuTimes{});
  rusage self{};
  rusage children{};
  getrusage(RUSAGE_SELF, &self);
  getrusage(RUSAGE_CHILDREN, &children);
  now.own = seconds(self.ru_utime) + seconds(self.ru_stime) + seconds(children.ru_utime) +
            seconds(children.ru_stime);
  for (const pid_t pid : m_own) {
    now.own += process_time(pid);
  }
  return now;
}

void ProcGuard::begin() {
  m_begin = read();
}

std::string ProcGuard::end() {
  const Reading now = read();
  return judge_disturbance(static_cast<double>(now.at_ns - m_begin.at_ns) * 1e-9, m_cpus.size(),
                           now.all.busy - m_begin.all.busy, now.own - m_begin.own,
                           now.all.stolen - m_begin.all.stolen, 1 / ticks_per_second());
}

} // namespace reckon
