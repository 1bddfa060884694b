// SPDX-License-Identifier: Apache-2.0
#include "support/ranks.hpp"

#include "core/file.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <poll.h>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace reckon::support {
namespace {

// Blocking on purpose: the parent's deadline ends it.
void send_all(int socket, const void* data, std::size_t bytes) {
  const auto* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::send(socket, from, bytes, MSG_NOSIGNAL);
    if (n <= 0) {
      throw std::runtime_error("send: the other side is gone");
    }
    from += n;
    bytes -= static_cast<std::size_t>(n);
  }
}

void receive_all(int socket, void* data, std::size_t bytes) {
  auto* to = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::recv(socket, to, bytes, 0);
    if (n <= 0) {
      throw std::runtime_error("recv: the other side is gone");
    }
    to += n;
    bytes -= static_cast<std::size_t>(n);
  }
}

void send_text(int socket, const std::string& text) {
  const std::uint64_t size = text.size();
  send_all(socket, &size, sizeof size);
  send_all(socket, text.data(), text.size());
}

std::string receive_text(int socket) {
  std::uint64_t size = 0;
  receive_all(socket, &size, sizeof size);
  std::string text(size, '\0');
  receive_all(socket, text.data(), size);
  return text;
}

[[noreturn]] void be_rank(int rank, int ranks, int socket,
                          const std::function<void(RankProcess&)>& body) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL); // a test that is killed takes its ranks along
  int status = 0;
  try {
    RankProcess self(rank, ranks, socket);
    body(self);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
    status = 1;
  }
  if (testing::Test::HasFailure()) {
    status = 1;
  }
  std::exit(status); // not _exit: the leak check runs at exit
}

std::vector<pid_t> g_started;

struct Child {
  pid_t pid = -1;
  Fd socket;
  bool has_text = false, gone = false;
  std::string text;
};

} // namespace

std::vector<std::string> RankProcess::exchange(const std::string& mine) const {
  send_text(m_socket, mine);
  std::vector<std::string> all;
  for (int rank = 0; rank < m_ranks; ++rank) {
    all.push_back(receive_text(m_socket));
  }
  return all;
}

const std::vector<pid_t>& started_ranks() {
  return g_started;
}

void run_ranks(int ranks, std::chrono::seconds deadline,
               const std::function<void(RankProcess&)>& body,
               const std::vector<int>& expect_killed) {
  std::fflush(nullptr); // or each child would print what is buffered again
  const auto end = std::chrono::steady_clock::now() + deadline;
  std::vector<Child> children(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    std::array<int, 2> pair{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
    Child& child = children[static_cast<std::size_t>(rank)];
    child.socket = Fd(pair[0]);
    Fd theirs(pair[1]);
    child.pid = ::fork();
    ASSERT_GE(child.pid, 0);
    if (child.pid == 0) {
      for (Child& sibling : children) {
        sibling.socket = Fd(); // else nobody would see a dead sibling's socket close
      }
      be_rank(rank, ranks, theirs.get(), body);
    }
    g_started.push_back(child.pid);
  }
  const auto left_ms = [&] {
    return std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::milliseconds>(
                                         end - std::chrono::steady_clock::now())
                                         .count());
  };
  // Relay texts until every socket is closed, which is when every rank has ended.
  bool late = false;
  while (std::any_of(children.begin(), children.end(), [](const Child& c) { return !c.gone; })) {
    std::vector<pollfd> polled;
    std::vector<Child*> owners;
    for (Child& child : children) {
      if (!child.gone && !child.has_text) {
        polled.push_back({child.socket.get(), POLLIN, 0});
        owners.push_back(&child);
      }
    }
    if (::poll(polled.data(), polled.size(), static_cast<int>(left_ms())) <= 0 && left_ms() == 0) {
      late = true;
      break;
    }
    for (std::size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].revents != 0) {
        try {
          owners[i]->text = receive_text(polled[i].fd);
          owners[i]->has_text = true;
        } catch (const std::runtime_error&) {
          owners[i]->gone = true;
          owners[i]->text.clear();
        }
      }
    }
    if (std::all_of(children.begin(), children.end(),
                    [](const Child& c) { return c.gone || c.has_text; })) {
      for (Child& child : children) {
        if (child.gone) {
          continue;
        }
        child.has_text = false;
        try {
          for (const Child& from : children) {
            send_text(child.socket.get(), from.text);
          }
        } catch (const std::runtime_error&) {
          child.gone = true;
        }
      }
    }
  }
  if (late) {
    for (const Child& child : children) {
      ::kill(child.pid, SIGKILL); // not reaped yet, so the number is still theirs
    }
    ADD_FAILURE() << "the ranks did not end within " << deadline.count() << " s";
  }
  for (int rank = 0; rank < ranks; ++rank) {
    int status = 0;
    ::waitpid(children[static_cast<std::size_t>(rank)].pid, &status, 0);
    const bool should_die =
        std::find(expect_killed.begin(), expect_killed.end(), rank) != expect_killed.end();
    const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    const bool well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!late) {
      EXPECT_TRUE(should_die ? killed : well) << "rank " << rank << " ended with status " << status;
    }
  }
}

} // namespace reckon::support
