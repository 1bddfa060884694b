// SPDX-License-Identifier: Apache-2.0
#include "launch/local.hpp"

#include "core/clock.hpp"
#include "core/interrupt.hpp"
#include "core/secrets.hpp"
#include "launch/sockets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace reckon {
namespace {

constexpr Seconds k_grace{5}; ///< for the others to end by themselves after one has failed

// What a child tells its parent: one character and a text up to the next zero byte.
constexpr char k_progress = 'p';
constexpr char k_result = 'r';
constexpr char k_error = 'e';      ///< kind as a digit, then the text
constexpr char k_peer_error = 'q'; ///< the text

/// As of a process that ended with exit status 255.
constexpr int k_unknown_status = 0xFF00;

struct Child {
  pid_t pid = -1;
  Fd pipe;
  std::string received;
  std::optional<int> status;
  int lost = 0;        ///< errno's number when the system does not say how it ended
  bool killed = false; ///< by us, because others had failed
  std::string result;
  std::optional<ErrorKind> error_kind;
  bool peer_error = false;
  std::string error;
};

void tell(int fd, char kind, const std::string& text) {
  std::string bytes = kind + text;
  bytes.push_back('\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n <= 0) {
      return; // the parent is gone, and we soon are
    }
    done += static_cast<std::size_t>(n);
  }
}

[[noreturn]] void be_child(int pipe, const std::function<std::string()>& body) {
  int status = k_exit_bug;
  try {
    tell(pipe, k_result, body());
    status = k_exit_ok;
  } catch (const PeerError& e) {
    tell(pipe, k_peer_error, e.what());
    status = exit_status(e.kind());
  } catch (const std::exception& e) {
    const Error error = as_error(e);
    tell(pipe, k_error, std::to_string(static_cast<int>(error.kind())) + error.what());
    status = exit_status(error.kind());
  }
  ::_exit(status); // no destructors of what belongs to the parent
}

class Family {
public:
  Family() = default;
  Family(const Family&) = delete;
  Family& operator=(const Family&) = delete;
  ~Family() { kill_all(); }

  void add(Child child) { m_children.push_back(std::move(child)); }

  void wait_for_all(const std::function<void(const std::string&)>& on_progress) {
    std::int64_t deadline = INT64_MAX;
    for (;;) {
      std::vector<pollfd> fds;
      std::vector<Child*> readers;
      for (Child& c : m_children) {
        if (c.pipe) {
          fds.push_back({c.pipe.get(), POLLIN, 0});
          readers.push_back(&c);
        }
      }
      if (fds.empty()) {
        break;
      }
      ::poll(fds.data(), fds.size(), 100);
      for (std::size_t i = 0; i < fds.size(); ++i) {
        if (fds[i].revents != 0) {
          read(*readers[i], on_progress);
        }
      }
      const bool failed = std::any_of(m_children.begin(), m_children.end(), [](const Child& c) {
        return c.error_kind || (c.status && *c.status != 0);
      });
      if ((failed || interrupted()) && deadline == INT64_MAX) {
        deadline = deadline_after(k_grace);
        if (interrupted()) { // from a terminal they got the signal too; from `kill` only we did
          for (const Child& c : m_children) {
            if (!c.status) {
              ::kill(c.pid, SIGTERM);
            }
          }
        }
      }
      if (monotonic_ns() > deadline) {
        kill_all();
      }
      const bool ending = std::any_of(m_children.begin(), m_children.end(),
                                      [](const Child& c) { return c.status == 0; });
      for (const Child& c : m_children) {
        if (ending && !c.status) {
          ::kill(c.pid, SIGCONT); // all leave together, so only one that is stopped stays
        }
      }
    }
    for (Child& c : m_children) {
      reap(c);
    }
  }

  /// The trouble that started it, if there was any.
  void throw_first_cause() const {
    if (interrupted()) {
      fail(ErrorKind::operation, "interrupted; nothing was written");
    }
    for (std::size_t r = 0; r < m_children.size(); ++r) {
      const int status = m_children[r].status.value_or(0);
      if (WIFSIGNALED(status) && !m_children[r].killed) {
        fail(ErrorKind::operation, fmt::format("rank {} was ended by signal {} ({})", r,
                                               WTERMSIG(status), strsignal(WTERMSIG(status))));
      }
    }
    for (const bool peer_errors : {false, true}) {
      for (std::size_t r = 0; r < m_children.size(); ++r) {
        const Child& c = m_children[r];
        if (c.error_kind && c.peer_error == peer_errors) {
          // What is wrong with the job is so at all ranks; an operation failed at one.
          const bool own = !peer_errors && *c.error_kind == ErrorKind::operation;
          fail(*c.error_kind, own ? fmt::format("rank {}: {}", r, c.error) : c.error);
        }
      }
    }
    for (std::size_t r = 0; r < m_children.size(); ++r) {
      if (m_children[r].lost != 0) {
        fail_errno(fmt::format("cannot learn how rank {} ended: waitpid", r), m_children[r].lost);
      }
      if (m_children[r].status.value_or(0) != 0) {
        fail(ErrorKind::operation, fmt::format("rank {} ended without a word", r));
      }
    }
  }

  [[nodiscard]] const std::string& result_of_root() const { return m_children.front().result; }

private:
  static void read(Child& c, const std::function<void(const std::string&)>& on_progress) {
    char buffer[65536];
    const ssize_t n = ::read(c.pipe.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) {
      return;
    }
    if (n <= 0) {
      c.pipe = Fd();
      reap(c);
      return;
    }
    c.received.append(buffer, static_cast<std::size_t>(n));
    for (std::size_t end = c.received.find('\0'); end != std::string::npos;
         end = c.received.find('\0')) {
      const std::string message = c.received.substr(0, end);
      c.received.erase(0, end + 1);
      switch (message.front()) {
      case k_progress:
        on_progress(message.substr(1));
        break;
      case k_result:
        c.result = message.substr(1);
        break;
      case k_error:
        c.error_kind = static_cast<ErrorKind>(message[1] - '0');
        c.error = message.substr(2);
        break;
      case k_peer_error:
        c.error_kind = ErrorKind::operation;
        c.peer_error = true;
        c.error = message.substr(1);
        break;
      default:
        break;
      }
    }
  }

  static void reap(Child& c) {
    int status = 0;
    while (!c.status) {
      if (::waitpid(c.pid, &status, 0) == c.pid) {
        c.status = status;
      } else if (errno != EINTR) {
        c.lost = errno;
        c.status = k_unknown_status;
      }
    }
  }

  void kill_all() {
    for (Child& c : m_children) {
      if (!c.status) {
        ::kill(c.pid, SIGKILL);
        c.killed = true;
        c.pipe = Fd();
        reap(c);
      }
    }
  }

  std::vector<Child> m_children;
};

} // namespace

std::string run_locally(
    int ranks,
    const std::function<std::string(const JobEnvironment& job, Fd listener,
                                    const std::function<void(const std::string&)>& progress)>& body,
    const std::function<void(const std::string&)>& on_progress) {
  // A parent may have left it so that the system forgets how children end.
  std::signal(SIGCHLD, SIG_DFL);
  Listener listener = listen_locally();
  JobEnvironment job;
  job.size = job.local_size = ranks;
  job.master_address = "127.0.0.1";
  job.master_port = listener.port;
  job.token = secret_text();
  Family family;
  const pid_t parent = ::getpid();
  for (int r = 0; r < ranks; ++r) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
      fail_errno("cannot start the ranks: pipe", errno);
    }
    Fd read_end(ends[0]), write_end(ends[1]);
    const pid_t pid = ::fork();
    if (pid < 0) {
      fail_errno(fmt::format("cannot start rank {}: fork", r), errno);
    }
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) { // it died before we asked to die with it
        ::_exit(k_exit_operation);
      }
      job.rank = job.local_rank = r;
      Fd mine = r == 0 ? std::move(listener.socket) : Fd();
      listener.socket = Fd();
      const int pipe = write_end.get();
      be_child(pipe, [&] {
        return body(job, std::move(mine),
                    [&](const std::string& text) { tell(pipe, k_progress, text); });
      });
    }
    Child child;
    child.pid = pid;
    child.pipe = std::move(read_end);
    family.add(std::move(child));
  }
  listener.socket = Fd(); // only rank 0 listens: if it dies, connecting fails at once
  family.wait_for_all(on_progress);
  family.throw_first_cause();
  return family.result_of_root();
}

} // namespace reckon
