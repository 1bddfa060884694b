// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace reckon {

enum class LogLevel { error, warn, info, debug, trace };

/// Default warn; -v info, -vv debug; RECKON_LOG names a level. Thread-safe; lines go to standard
/// error whole.
void set_log_level(LogLevel level) noexcept;
[[nodiscard]] LogLevel log_level() noexcept;
/// Never inside a timed region.
void log_line(LogLevel level, std::string_view text);

template <class... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (level <= log_level()) {
    log_line(level, fmt::format(format, std::forward<Args>(args)...));
  }
}

} // namespace reckon
