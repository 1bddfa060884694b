// SPDX-License-Identifier: Apache-2.0
#include "core/log.hpp"

#include <array>
#include <atomic>
#include <string>
#include <unistd.h>

namespace reckon {
namespace {
std::atomic<LogLevel> g_level{LogLevel::warn};
constexpr std::array<std::string_view, 5> k_names{"error", "warning", "info", "debug", "trace"};
} // namespace

void set_log_level(LogLevel level) noexcept {
  g_level.store(level, std::memory_order_relaxed);
}
LogLevel log_level() noexcept {
  return g_level.load(std::memory_order_relaxed);
}

void log_line(LogLevel level, std::string_view text) {
  const std::string line =
      fmt::format("reckon: {}: {}\n", k_names[static_cast<std::size_t>(level)], text);
  // One write, so that lines of several processes do not mix.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

} // namespace reckon
