// SPDX-License-Identifier: Apache-2.0
#include "run/placement.hpp"

#include "core/error.hpp"
#include "core/processors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <sched.h>
#include <vector>

namespace reckon {

std::vector<int> lane_cpus_of(const PlanRank& rank) {
  std::vector<int> cpus;
  for (const LanePlace& lane : rank.lane_places) {
    cpus.push_back(lane.cpu.value_or(-1));
  }
  return cpus;
}

void settle(RunOptions& options, const PlanRank& rank) {
  const std::vector<int> allowed = allowed_cpus();
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : rank.cpus) {
    if (std::find(allowed.begin(), allowed.end(), cpu) != allowed.end()) {
      CPU_SET(static_cast<std::size_t>(cpu), &set);
    }
  }
  if (CPU_COUNT(&set) > 0 && sched_setaffinity(0, sizeof set, &set) != 0) {
    fail_errno(fmt::format("cannot keep to the processors of {}", rank.endpoint), errno);
  }
  options.pci_address = rank.pci_address;
  options.host_memory = !rank.endpoint.empty() && rank.endpoint_kind != "gpu";
  options.lane_cpus = lane_cpus_of(rank);
}

} // namespace reckon
