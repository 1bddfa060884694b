// SPDX-License-Identifier: Apache-2.0
#include "core/interrupt.hpp"

#include "core/error.hpp"

#include <atomic>
#include <csignal>

namespace reckon {
namespace {

// The system hands a signal to any thread: others read the flag meanwhile. No data hang on it.
std::atomic<bool> g_interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "else a signal handler may not touch it");

extern "C" void on_signal(int signal) {
  // A terminal that goes away sends SIGHUP, and so does its shell.
  if (g_interrupted.exchange(true, std::memory_order_relaxed) && signal != SIGHUP) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

} // namespace

void install_interrupt_handlers() {
  struct sigaction action {};
  action.sa_handler =
      &on_signal; // no SA_RESTART: a blocked read or wait returns and its loop looks at the flag
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  struct sigaction hangup {};
  sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) { // as nohup leaves it
    sigaction(SIGHUP, &action, nullptr);
  }
  std::signal(SIGPIPE, SIG_IGN);
}

bool interrupted() noexcept {
  return g_interrupted.load(std::memory_order_relaxed);
}

void stop_if_interrupted() {
  if (interrupted()) {
    fail(ErrorKind::operation, "interrupted");
  }
}

NoSignals::NoSignals() noexcept {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &m_before);
}

NoSignals::~NoSignals() {
  ::pthread_sigmask(SIG_SETMASK, &m_before, nullptr);
}

} // namespace reckon
