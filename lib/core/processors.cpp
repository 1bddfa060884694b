// SPDX-License-Identifier: Apache-2.0
#include "core/processors.hpp"

#include "core/file.hpp"

#include <fmt/format.h>

#include <sched.h>
#include <set>
#include <sstream>

namespace reckon {

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (std::size_t c = 0; c < CPU_SETSIZE; ++c) {
      if (CPU_ISSET(c, &set)) {
        cpus.push_back(static_cast<int>(c));
      }
    }
  }
  return cpus;
}

std::size_t cores_of(const std::vector<int>& cpus) {
  std::set<std::string> cores; // each by the processors on it
  for (const int cpu : cpus) {
    cores.insert(
        read_if_readable(
            fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu))
            .value_or(fmt::format("{}", cpu)));
  }
  return cores.size();
}

std::string cpuinfo_value(const std::string& text, std::string_view key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    if (colon != std::string::npos && line.starts_with(key) &&
        line.find_first_not_of(" \t", key.size()) == colon) {
      const std::size_t start = line.find_first_not_of(" \t", colon + 1);
      return start == std::string::npos ? "" : line.substr(start);
    }
  }
  return "";
}

bool bind_this_thread(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(cpu), &set);
  return sched_setaffinity(0, sizeof set, &set) == 0;
}

} // namespace reckon
