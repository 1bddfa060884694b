// SPDX-License-Identifier: Apache-2.0
#include "simulate/engine.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/interrupt.hpp"
#include "core/json.hpp"
#include "core/secrets.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <poll.h>
#include <string_view>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace reckon {
namespace {

constexpr const char* k_simulator = "reckon-sim";
/// An engine's last words are at the end of a backtrace at most that long.
constexpr std::size_t k_most_words = 1 << 16;
constexpr int k_poll_ms = 100;

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno != EINTR) {
      fail_errno("cannot hand the plan to the simulator", errno);
    }
    text.remove_prefix(n > 0 ? static_cast<std::size_t>(n) : 0);
  }
}

/// The graph's text, ready to be read, in a file without a name: the simulator reads as it likes,
/// and nobody waits for another.
Fd input_file(const SimGraph& graph) {
  Fd file(::memfd_create("reckon-sim input", MFD_CLOEXEC));
  if (!file) {
    fail_errno("cannot hand the plan to the simulator: memfd_create", errno);
  }
  write_graph(graph, [&](std::string_view text) { write_all(file.get(), text); });
  if (::lseek(file.get(), 0, SEEK_SET) != 0) {
    fail_errno("cannot hand the plan to the simulator: lseek", errno);
  }
  return file;
}

struct Pipe {
  Fd read, write;
};

Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    fail_errno("cannot start the simulator: pipe", errno);
  }
  return {Fd(ends[0]), Fd(ends[1])};
}

/// Kills and reaps the simulator when it goes.
class Child {
public:
  Child(const std::string& program, const Fd& input, const Fd& output, const Fd& words) {
    const pid_t parent = ::getpid();
    m_pid = ::fork();
    if (m_pid < 0) {
      fail_errno("cannot start the simulator: fork", errno);
    }
    if (m_pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() == parent && ::dup2(input.get(), STDIN_FILENO) >= 0 &&
          ::dup2(output.get(), STDOUT_FILENO) >= 0 && ::dup2(words.get(), STDERR_FILENO) >= 0) {
        ::unsetenv(k_token_variable);
        ::execl(program.c_str(), k_simulator, nullptr);
      }
      const std::string_view why = std::strerror(errno);
      static_cast<void>(!::write(words.get(), why.data(), why.size()));
      ::_exit(k_exit_bug);
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (!m_status) {
      ::kill(m_pid, SIGKILL);
      static_cast<void>(wait());
    }
  }
  int wait() {
    int status = 0;
    while (!m_status && ::waitpid(m_pid, &status, 0) < 0) {
      if (errno != EINTR) {
        break;
      }
    }
    m_status = m_status.value_or(status);
    return *m_status;
  }

private:
  pid_t m_pid = -1;
  std::optional<int> m_status;
};

/// Appends what there is to read; false when the other end is closed.
bool read_some(const Fd& from, std::string& to) {
  std::array<char, 1 << 16> buffer;
  const ssize_t n = ::read(from.get(), buffer.data(), buffer.size());
  if (n > 0) {
    to.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return n > 0 || (n < 0 && errno == EINTR);
}

SimResult result_of(const JsonView& json) {
  SimResult result;
  result.engine = json.at("engine").name();
  for (const auto& [name, value] : json.at("settings").members()) {
    result.settings[name] = value.string();
  }
  result.lane_seconds = json.at("lane_seconds").numbers();
  result.seconds = json.at("seconds").non_negative();
  result.flows = json.at("flows").count();
  result.most_flows = json.at("most_flows").count();
  result.background_bytes = json.at("background_bytes").numbers();
  result.cpu_seconds = json.at("cpu_seconds").non_negative();
  result.peak_bytes = json.at("peak_bytes").count();
  return result;
}

/// The line that says why: its own error, else the first in which the engine says something.
std::string reason_in(const std::string& words) {
  constexpr std::string_view k_error = "reckon-sim: error: ";
  if (const std::size_t at = words.find(k_error); at != std::string::npos) {
    return words.substr(at + k_error.size(), words.find('\n', at) - at - k_error.size());
  }
  return one_line(std::string_view(words).substr(0, words.find('\n')));
}

[[noreturn]] void fail_as_child(int status, const std::string& words) {
  const std::string reason = reason_in(words);
  if (WIFSIGNALED(status)) {
    fail(ErrorKind::operation,
         fmt::format(
             "signal {} ({}) ended the simulator{}", WTERMSIG(status), strsignal(WTERMSIG(status)),
             !reason.empty()               ? ": " + reason
             : WTERMSIG(status) == SIGKILL ? "; if memory ran out, merge more parts with --coarsen"
                                           : ""));
  }
  const int code = WEXITSTATUS(status);
  if (code == exit_status(ErrorKind::input) && !reason.empty()) {
    fail(ErrorKind::input, reason);
  }
  fail(ErrorKind::operation,
       fmt::format("the simulator exited with status {}{}{}", code,
                   code == 0 ? " and no result" : "", reason.empty() ? "" : ": " + reason));
}

} // namespace

std::string find_simulator() {
  std::error_code ignored; // no /proc: then it is not found, either
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const std::filesystem::path program = self.parent_path() / k_simulator;
  if (self.empty() || ::access(program.c_str(), X_OK) != 0) {
    fail(
        ErrorKind::unavailable,
        fmt::format("there is no simulator: no {}; put reckon-sim there, beside reckon, or install "
                    "libsimgrid-dev and build again, CMake says whether it found SimGrid",
                    program.string()));
  }
  return program.string();
}

SimResult simulate(const SimGraph& graph, const std::string& program,
                   const std::function<void(std::uint64_t)>& progress) {
  const Fd input = input_file(graph);
  Pipe output = make_pipe(), words = make_pipe();
  Child child(program, input, output.write, words.write);
  output.write = Fd();
  words.write = Fd();
  std::string text, last_words;
  std::optional<SimResult> result;
  bool open = true, speaks = true;
  while (open || speaks) {
    std::array<pollfd, 2> fds{pollfd{open ? output.read.get() : -1, POLLIN, 0},
                              pollfd{speaks ? words.read.get() : -1, POLLIN, 0}};
    ::poll(fds.data(), fds.size(), k_poll_ms);
    if (interrupted()) {
      fail(ErrorKind::operation, "interrupted; nothing was written");
    }
    if (fds[1].revents != 0) {
      speaks = read_some(words.read, last_words);
      last_words.resize(std::min(last_words.size(), k_most_words));
    }
    if (fds[0].revents == 0) {
      continue;
    }
    open = read_some(output.read, text);
    for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
      const Json json = parse_json(text.substr(0, end), "output of reckon-sim");
      text.erase(0, end + 1);
      const JsonView view(json, "output of reckon-sim");
      if (const auto done = view.find("done")) {
        progress(done->count());
      } else {
        result = result_of(view);
      }
    }
  }
  const int status = child.wait();
  if (status != 0 || !result) {
    fail_as_child(status, last_words);
  }
  return *result;
}

} // namespace reckon
