// SPDX-License-Identifier: Apache-2.0
#include "present/gnuplot.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/log.hpp"
#include "core/secrets.hpp"
#include "present/style.hpp"

#include <fmt/format.h>
#include <gnuplot-iostream.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace reckon {
namespace {

std::string terminal_for(const std::string& path, int width, int height) {
  constexpr std::string_view k_common = "noenhanced font 'DejaVu Sans,13'";
  if (path.ends_with(".svg")) {
    return fmt::format("svg size {},{} {} background rgb 'white' linewidth 1.2", width, height,
                       k_common);
  }
  if (path.ends_with(".png")) {
    return fmt::format("pngcairo size {},{} {} background rgb 'white' linewidth 1.2", width, height,
                       k_common);
  }
  fail(ErrorKind::usage,
       fmt::format("{}: the ending says the format, and must be .svg or .png", path));
}

std::string content_of(std::FILE* file) {
  std::string out;
  std::rewind(file);
  std::array<char, 65536> buffer{};
  for (std::size_t n = 0; (n = std::fread(buffer.data(), 1, buffer.size(), file)) > 0;) {
    out.append(buffer.data(), n);
  }
  return out;
}

/// Whether each line that says anything is a warning: the picture is there all the same.
bool only_warnings(std::string_view messages) {
  while (!messages.empty()) {
    const std::size_t end = std::min(messages.find('\n'), messages.size());
    const std::string_view line = messages.substr(0, end);
    messages.remove_prefix(std::min(end + 1, messages.size()));
    if (line.find_first_not_of(" \t\r") != std::string_view::npos &&
        line.find("arning") == std::string_view::npos) {
      return false;
    }
  }
  return true;
}

} // namespace

PipeSignalBlocked::PipeSignalBlocked() {
  sigemptyset(&m_pipe);
  sigaddset(&m_pipe, SIGPIPE);
  static_cast<void>(pthread_sigmask(SIG_BLOCK, &m_pipe, &m_before));
}

PipeSignalBlocked::~PipeSignalBlocked() {
  if (sigismember(&m_before, SIGPIPE) == 0) {
    const timespec no_time{0, 0};
    static_cast<void>(sigtimedwait(&m_pipe, nullptr, &no_time));
  }
  static_cast<void>(pthread_sigmask(SIG_SETMASK, &m_before, nullptr));
}

GnuplotProcess::GnuplotProcess(std::string path, int width, int height) : m_path(std::move(path)) {
  const std::string terminal = terminal_for(m_path, width, height);
  m_picture.reset(std::tmpfile());
  m_messages.reset(std::tmpfile());
  std::array<int, 2> ends{};
  if (!m_picture || !m_messages || pipe2(ends.data(), O_CLOEXEC) != 0) {
    fail_errno("preparing for gnuplot", errno);
  }
  const Fd read_end(ends[0]);
  Fd write_end(ends[1]);

  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, read_end.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, fileno(m_picture.get()), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, fileno(m_messages.get()), STDERR_FILENO);
  posix_spawnattr_init(&attributes);
  sigset_t pipe_signal{};
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &pipe_signal);
  posix_spawnattr_setsigmask(&attributes, &m_blocked.before());
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  // -d: neither the user's nor the system's start-up file.
  std::string name = "gnuplot";
  std::string option = "-d";
  const std::array<char*, 3> arguments{name.data(), option.data(), nullptr};
  ::unsetenv(k_token_variable);
  const int error =
      posix_spawnp(&m_child, "gnuplot", &actions, &attributes, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    m_child = -1;
    fail(ErrorKind::unavailable,
         fmt::format("starting gnuplot: {}; install it (Debian: gnuplot-nox) for plots",
                     std::strerror(error)));
  }
  std::FILE* input = fdopen(write_end.get(), "w");
  if (input == nullptr) {
    fail_errno("opening a pipe to gnuplot", errno);
  }
  write_end.release(); // the stream has it now
  m_out = std::make_unique<gnuplotio::Gnuplot>(input);
  *m_out << "set terminal " << terminal << "\nset encoding utf8\n";
}

GnuplotProcess::~GnuplotProcess() {
  if (m_child > 0) {
    static_cast<void>(end_input_and_wait());
  }
}

int GnuplotProcess::end_input_and_wait() {
  m_out.reset(); // flushes and closes
  int status = 0;
  while (waitpid(m_child, &status, 0) < 0 && errno == EINTR) {
  }
  m_child = -1;
  return status;
}

void GnuplotProcess::finish() {
  const int status = end_input_and_wait();
  const std::string picture = content_of(m_picture.get());
  const std::string messages = content_of(m_messages.get());
  const bool failed =
      !WIFEXITED(status) || WEXITSTATUS(status) != 0 || picture.empty() || !only_warnings(messages);
  if (failed) {
    const std::string_view said = first_columns(messages, 400);
    fail(ErrorKind::operation,
         fmt::format("gnuplot ({}): {}", m_path,
                     said.empty() ? "no picture came back" : printable(said)));
  }
  if (!messages.empty()) {
    log(LogLevel::info, "gnuplot: {}", printable(messages));
  }
  write_file(m_path, picture);
}

} // namespace reckon
