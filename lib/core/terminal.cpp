// SPDX-License-Identifier: Apache-2.0
#include "core/terminal.hpp"

#include <cstdlib>
#include <sys/ioctl.h>
#include <unistd.h>

namespace reckon {

bool is_smart_terminal(int fd) {
  const char* term = std::getenv("TERM");
  // mpirun gives each rank a pseudo-terminal, whatever its own output is: a log file, often.
  return ::isatty(fd) == 1 && std::getenv("PMIX_RANK") == nullptr && term != nullptr &&
         std::string_view(term) != "dumb" && *term != '\0';
}

bool use_color(ColorMode mode, int fd) {
  if (mode != ColorMode::automatic) {
    return mode == ColorMode::always;
  }
  const char* no_color = std::getenv("NO_COLOR");
  return is_smart_terminal(fd) && (no_color == nullptr || *no_color == '\0');
}

int terminal_width(int fd) {
  winsize size{};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

} // namespace reckon
