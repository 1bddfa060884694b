// SPDX-License-Identifier: Apache-2.0
#include "core/child.hpp"

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <exception>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace reckon {
namespace {

constexpr char k_answer = 'a', k_failure = 'f'; // what the first byte of the pipe says

/// Ends with `text` told, whole or not at all.
[[noreturn]] void tell_and_end(int pipe, const std::string& text) {
  std::size_t told = 0;
  while (told < text.size()) {
    const ssize_t n = ::write(pipe, text.data() + told, text.size() - told);
    if (n < 0 && errno != EINTR) {
      ::_exit(1); // nobody listens any more
    }
    told += static_cast<std::size_t>(std::max<ssize_t>(n, 0));
  }
  ::_exit(0);
}

/// Killed and waited for, unless it has ended.
class Process {
public:
  explicit Process(pid_t pid) : m_pid(pid) {}
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() {
    if (!m_ended) {
      ::kill(m_pid, SIGKILL);
      static_cast<void>(end());
    }
  }
  /// Nothing to one that is not stopped. Nobody may have meant to stop it: it has no terminal of
  /// its own.
  void go_on() const { ::kill(m_pid, SIGCONT); }
  /// Its status, as waitpid() tells it.
  int end() {
    int status = 0;
    while (::waitpid(m_pid, &status, 0) < 0 && errno == EINTR) {
    }
    m_ended = true;
    return status;
  }

private:
  pid_t m_pid;
  bool m_ended = false;
};

/// All until the other end closes.
std::string read_within(Seconds limit, const Fd& pipe, const Process& process) {
  const std::int64_t deadline_ns = deadline_after(limit);
  constexpr int k_look_ms = 50; // it may have been stopped
  std::string text;
  std::array<char, 4096> piece{};
  while (monotonic_ns() < deadline_ns) {
    pollfd polled{pipe.get(), POLLIN, 0};
    if (::poll(&polled, 1, k_look_ms) <= 0) {
      process.go_on();
      continue;
    }
    const ssize_t n = ::read(pipe.get(), piece.data(), piece.size());
    if (n == 0) {
      return text;
    }
    text.append(piece.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  }
  fail(ErrorKind::operation, fmt::format("no answer within {}", to_text(limit)));
}

/// A crash is this process's answer: nobody reports it, and no core is left behind.
void crash_quietly() {
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    ::signal(signal, SIG_DFL);
  }
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
}

} // namespace

std::string answer_of_child(const std::function<std::string()>& body, Seconds limit) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    fail_errno("pipe", errno);
  }
  const Fd from(ends[0]);
  Fd to(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) {
    fail_errno("fork", errno);
  }
  if (pid == 0) {
    crash_quietly();
    std::string text;
    try {
      text = k_answer + body();
    } catch (const std::exception& error) {
      text = std::string(1, k_failure) + error.what();
    }
    tell_and_end(to.get(), text);
  }
  Process process(pid);
  to = Fd();
  const std::string text = read_within(limit, from, process);
  if (const int status = process.end(); WIFSIGNALED(status)) {
    fail(ErrorKind::operation, fmt::format("ended with signal {}", WTERMSIG(status)));
  }
  if (text.empty() || text.front() != k_answer) {
    fail(ErrorKind::operation, text.empty() ? "ended without an answer" : text.substr(1));
  }
  return text.substr(1);
}

} // namespace reckon
