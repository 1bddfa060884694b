// SPDX-License-Identifier: Apache-2.0
#include "probe/pair_writes.hpp"

#include <algorithm>
#include <utility>

namespace reckon {

FlowTask write_task(std::vector<Flow> flows, std::uint64_t bytes, std::uint64_t count,
                    std::uint64_t most_warm_up, std::uint64_t first) {
  constexpr std::uint64_t k_passed_first = 512 * 1024;
  FlowTask task;
  task.kind = FlowTask::Kind::echo;
  task.flows = std::move(flows);
  task.bytes = bytes;
  task.first = first;
  task.warm_up = std::clamp<std::uint64_t>(k_passed_first / bytes, 1, most_warm_up);
  task.count = count;
  return task;
}

std::vector<double> write_seconds(const std::vector<double>& round_trip_s, double answer_s) {
  std::vector<double> seconds;
  for (const double both : round_trip_s) {
    seconds.push_back(std::max(both - answer_s, 0.5 * both));
  }
  return seconds;
}

} // namespace reckon
