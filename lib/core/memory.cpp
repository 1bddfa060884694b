// SPDX-License-Identifier: Apache-2.0
#include "core/memory.hpp"

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

namespace reckon {
namespace {

std::optional<std::uint64_t> first_number(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  return file >> value ? std::optional(value) : std::nullopt;
}

/// Of a file like /proc/meminfo: "MemTotal: 24684084 kB", "Node 0 MemTotal: 24684084 kB".
std::optional<std::uint64_t> bytes_in(const std::string& path, std::string_view name) {
  std::ifstream meminfo(path);
  std::uint64_t kib = 0;
  for (std::string word; meminfo >> word;) {
    if (word == name && meminfo >> kib) {
      return kib * 1024;
    }
  }
  return std::nullopt;
}

} // namespace

std::uint64_t available_memory_bytes() {
  std::uint64_t available = bytes_in("/proc/meminfo", "MemAvailable:").value_or(UINT64_MAX);
  const auto limit = first_number("/sys/fs/cgroup/memory.max"); // "max" is no number: no limit
  const auto used = first_number("/sys/fs/cgroup/memory.current");
  if (limit && used) {
    available = std::min(available, *limit - std::min(*limit, *used));
  }
  return available;
}

std::optional<std::uint64_t> node_memory_bytes(int os_index) {
  return bytes_in("/sys/devices/system/node/node" + std::to_string(os_index) + "/meminfo",
                  "MemTotal:");
}

} // namespace reckon
