// SPDX-License-Identifier: Apache-2.0
#include "core/interrupt.hpp"

#include <csignal>

namespace reckon {
namespace {

volatile std::sig_atomic_t g_interrupted = 0;

extern "C" void on_signal(int signal) {
  if (g_interrupted != 0) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
  g_interrupted = 1;
}

} // namespace

void install_interrupt_handlers() {
  struct sigaction action {};
  action.sa_handler =
      &on_signal; // no SA_RESTART: a blocked read or wait returns and its loop looks at the flag
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

bool interrupted() noexcept {
  return g_interrupted != 0;
}

} // namespace reckon
