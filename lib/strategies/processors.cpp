// SPDX-License-Identifier: Apache-2.0
#include "strategies/processors.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace reckon {

ProcessorTimes processor_times(std::span<const ProcessorWork> work,
                               const std::function<ProcessorRates(std::size_t busy)>& rates) {
  struct Processor {
    ProcessorWork work;
    double left = 1;                  ///< part of its work
    ProcessorTimes times{}, of_all{}; ///< so far; of all its work at the rates of now
    [[nodiscard]] double seconds_left() const {
      return left * (of_all.moving_s + of_all.summing_s);
    }
  };
  std::vector<Processor> busy;
  for (const ProcessorWork& w : work) {
    if (w.moved_bytes > 0 || w.summed_bytes > 0) {
      busy.push_back({w});
    }
  }
  ProcessorTimes last;
  while (!busy.empty()) {
    const ProcessorRates together = rates(busy.size());
    const auto share = static_cast<double>(busy.size());
    double step_s = std::numeric_limits<double>::infinity();
    for (Processor& p : busy) {
      p.of_all = {share * p.work.moved_bytes / together.moved,
                  share * p.work.summed_bytes / together.summed};
      step_s = std::min(step_s, p.seconds_left());
    }
    constexpr double k_rounding = 1e-12;
    for (Processor& p : busy) {
      const bool done = p.seconds_left() <= step_s * (1 + k_rounding);
      const double part = done ? p.left : p.left * step_s / p.seconds_left();
      p.times.moving_s += part * p.of_all.moving_s;
      p.times.summing_s += part * p.of_all.summing_s;
      p.left = done ? 0 : p.left - part;
      last = p.left == 0 ? p.times : last;
    }
    std::erase_if(busy, [](const Processor& p) { return p.left == 0; });
  }
  return last;
}

} // namespace reckon
