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

std::optional<std::uint64_t> number_after(const std::string& path, std::string_view name) {
  std::ifstream file(path);
  std::uint64_t number = 0;
  for (std::string word; file >> word;) {
    if (word == name && file >> number) {
      return number;
    }
  }
  return std::nullopt;
}

/// Of a file like /proc/meminfo: "MemTotal: 24684084 kB", "Node 0 MemTotal: 24684084 kB".
std::optional<std::uint64_t> bytes_in(const std::string& path, std::string_view name) {
  const auto kib = number_after(path, name);
  return kib ? std::optional(*kib * 1024) : std::nullopt;
}

} // namespace

std::uint64_t available_memory_bytes() {
  std::uint64_t available = bytes_in("/proc/meminfo", "MemAvailable:").value_or(UINT64_MAX);
  const auto limit = first_number("/sys/fs/cgroup/memory.max"); // "max" is no number: no limit
  const auto used = first_number("/sys/fs/cgroup/memory.current");
  if (limit && used) {
    // What files keep of it is given up when it is needed.
    std::uint64_t kept = 0;
    for (const char* const name : {"inactive_file", "active_file"}) {
      kept += number_after("/sys/fs/cgroup/memory.stat", name).value_or(0);
    }
    available = std::min(available, *limit - std::min(*limit, *used - std::min(*used, kept)));
  }
  return available;
}

std::optional<std::uint64_t> node_memory_bytes(int os_index) {
  return bytes_in("/sys/devices/system/node/node" + std::to_string(os_index) + "/meminfo",
                  "MemTotal:");
}

} // namespace reckon
