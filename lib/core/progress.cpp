// SPDX-License-Identifier: Apache-2.0
#include "core/progress.hpp"

#include "core/clock.hpp"
#include "core/terminal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unistd.h>

namespace reckon {
namespace {
void put(const std::string& text) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}
} // namespace

Progress::Progress() : m_enabled(is_smart_terminal(STDERR_FILENO)) {}

Progress::~Progress() {
  if (m_enabled) {
    put("\r\x1b[K");
  }
}

void Progress::show(double done, std::string_view what, Seconds left) {
  const std::int64_t now = monotonic_ns();
  if (!m_enabled || (now - m_last_ns < 100'000'000 && done < 1)) {
    return;
  }
  m_last_ns = now;
  const std::string time = left.count() < 0 ? "" : fmt::format(" {:.0f} s left", left.count());
  std::string line = fmt::format("{:3.0f} %{}  {}", 100 * std::clamp(done, 0.0, 1.0), time, what);
  line.resize(std::min(line.size(), static_cast<std::size_t>(terminal_width(STDERR_FILENO) - 1)));
  put("\r\x1b[K" + line);
}

} // namespace reckon
