// SPDX-License-Identifier: Apache-2.0
#include "run/sample.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <sys/resource.h>
#include <unistd.h>

namespace reckon {

PeerFields RankSample::fields() {
  return {{"ready_ns", &ready_ns},
          {"end_ns", &end_ns},
          {"begin_ns", &begin_ns},
          {"start_ns", &start_ns},
          {"reduce_ns", &reduce_ns},
          {"wait_ns", &wait_ns},
          {"lane_ns", &lane_ns},
          {"update_ns", &update_ns},
          {"compute_ns", &compute_ns},
          {"cpu_ns", &cpu_ns},
          {"machine_busy_ns", &machine_busy_ns}};
}

std::int64_t last_ready_ns(std::span<const RankSample> samples) {
  return std::ranges::max(samples, {}, &RankSample::ready_ns).ready_ns;
}

double iteration_seconds(std::span<const RankSample> samples) {
  const std::int64_t end_ns = std::ranges::max(samples, {}, &RankSample::end_ns).end_ns;
  return static_cast<double>(end_ns - samples.front().begin_ns) * 1e-9;
}

std::int64_t busy_ticks(std::istream& stat) {
  std::string label;
  std::array<std::int64_t, 8> ticks{}; // user nice system idle iowait irq softirq steal
  stat >> label;
  for (std::int64_t& t : ticks) {
    stat >> t;
  }
  return stat ? ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6] + ticks[7] : 0;
}

ProcessorTimes ProcessorTimes::now() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto ns = [](const timeval& t) {
    return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_usec * 1000;
  };
  std::ifstream stat("/proc/stat");
  return {ns(usage.ru_utime) + ns(usage.ru_stime),
          busy_ticks(stat) * (1'000'000'000 / ::sysconf(_SC_CLK_TCK))};
}

SampleMeter::SampleMeter(std::int64_t now_ns, std::int64_t computed_ns, ProcessorTimes used)
    : m_start_ns(now_ns), m_computed_ns(computed_ns), m_used(used) {}

RankSample SampleMeter::sample(std::int64_t now_ns, std::int64_t computed_ns, ProcessorTimes used,
                               std::span<const LaneTimes> lanes) const {
  RankSample mine;
  mine.start_ns = m_start_ns;
  mine.end_ns = now_ns;
  mine.compute_ns = computed_ns - m_computed_ns;
  mine.cpu_ns = used.own_ns - m_used.own_ns;
  mine.machine_busy_ns = used.machine_ns - m_used.machine_ns;
  for (const LaneTimes& t : lanes) {
    mine.reduce_ns += t.reduce_ns;
    mine.update_ns += t.update_ns;
    mine.wait_ns += t.wait_ns;
    mine.lane_ns += t.total_ns;
  }
  return mine;
}

} // namespace reckon
