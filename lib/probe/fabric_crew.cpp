// SPDX-License-Identifier: Apache-2.0
#include "probe/fabric_crew.hpp"

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/json.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace reckon {

FabricCrew::FabricCrew(Options options) : m_options(std::move(options)) {
  try {
    for (int rank = 0; rank < m_options.ranks; ++rank) {
      start(rank);
    }
    const Json addresses =
        gather(m_members.size(), FrameKind::address, m_options.start_limit, "opening its endpoint");
    for (const Member& member : m_members) {
      send_frame(member.socket.get(), FrameKind::addresses, addresses.dump());
    }
    static_cast<void>(
        gather(m_members.size(), FrameKind::ready, m_options.start_limit, "connecting"));
  } catch (...) {
    end();
    throw;
  }
}

FabricCrew::~FabricCrew() {
  end();
}

void FabricCrew::start(int rank) {
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) {
    fail_errno("socketpair", errno);
  }
  Member member{-1, Fd(pair[0])};
  const Fd theirs(pair[1]);
  const pid_t parent = ::getpid();
  member.pid = ::fork();
  if (member.pid < 0) {
    fail_errno("fork", errno);
  }
  if (member.pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) { // it died before the line above
      ::_exit(0);
    }
    // Ctrl-C reaches all processes of the terminal; it is for the parent to end this one.
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      std::signal(signal, SIG_IGN);
    }
    member.socket = Fd();
    for (Member& sibling : m_members) {
      sibling.socket = Fd(); // or it would seem alive as long as we are
    }
    try {
      serve_fabric_rank({rank, m_options.transport, m_options.seed, m_options.footprint},
                        theirs.get(), m_options.make);
    } catch (const std::exception&) { // the parent is gone: nobody to tell
      ::_exit(1);
    }
    ::_exit(0); // nothing of the parent's may be flushed or run twice
  }
  if (m_options.started) {
    m_options.started(member.pid);
  }
  m_members.push_back(std::move(member));
}

std::vector<std::string> FabricCrew::gather(std::size_t ranks, FrameKind wanted, Seconds limit,
                                            const char* doing) {
  constexpr int k_look_ms = 50; // for an interrupt
  const std::int64_t end_ns = monotonic_ns() + static_cast<std::int64_t>(limit.count() * 1e9);
  std::vector<std::string> texts(ranks);
  std::vector<bool> has(ranks);
  for (std::size_t missing = ranks; missing > 0;) {
    std::vector<pollfd> polled;
    std::vector<std::size_t> who;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      if (!has[rank]) {
        polled.push_back({m_members.at(rank).socket.get(), POLLIN, 0});
        who.push_back(rank);
      }
    }
    const int ready = ::poll(polled.data(), polled.size(), k_look_ms);
    if (m_options.interrupted && m_options.interrupted()) {
      throw FabricInterrupt();
    }
    if (ready <= 0 && monotonic_ns() > end_ns) {
      throw FabricTimeout(fmt::format("{}: rank {} has been {} for more than {}",
                                      m_options.transport, who.front(), doing, to_text(limit)));
    }
    for (std::size_t i = 0; ready > 0 && i < polled.size(); ++i) {
      if (polled[i].revents != 0) {
        texts[who[i]] = take(who[i], wanted, doing);
        has[who[i]] = true;
        --missing;
      }
    }
  }
  return texts;
}

std::string FabricCrew::take(std::size_t rank, FrameKind wanted, const char* doing) {
  Member& member = m_members[rank];
  FrameKind kind{};
  std::string text;
  constexpr int k_whole_frame_ms = 5000; // it has begun: the rest is on its way
  if (!receive_frame(member.socket.get(), kind, text, k_whole_frame_ms)) {
    int status = 0;
    if (::waitpid(member.pid, &status, 0) == member.pid) {
      member.pid = -1;
    }
    fail(ErrorKind::operation,
         WIFSIGNALED(status)
             ? fmt::format("{}: rank {} died of signal {} while {}", m_options.transport, rank,
                           WTERMSIG(status), doing)
             : fmt::format("{}: rank {} ended while {}", m_options.transport, rank, doing));
  }
  if (kind == FrameKind::error || kind == FrameKind::unavailable) {
    fail(kind == FrameKind::unavailable ? ErrorKind::unavailable : ErrorKind::operation, text);
  }
  if (kind != wanted) {
    fail(ErrorKind::internal,
         fmt::format("{}: rank {} answers out of turn", m_options.transport, rank));
  }
  return text;
}

std::vector<FabricOutcome> FabricCrew::run(const std::vector<FabricOrder>& orders, Seconds limit) {
  for (std::size_t rank = 0; rank < orders.size(); ++rank) {
    send_frame(m_members.at(rank).socket.get(), FrameKind::order, encode(orders[rank]));
  }
  static_cast<void>(gather(orders.size(), FrameKind::ready, limit, "preparing"));
  for (std::size_t rank = 0; rank < orders.size(); ++rank) {
    send_frame(m_members[rank].socket.get(), FrameKind::go, "");
  }
  std::vector<FabricOutcome> outcomes;
  for (const std::string& text : gather(orders.size(), FrameKind::outcome, limit, "moving data")) {
    outcomes.push_back(decode_outcome(text));
  }
  return outcomes;
}

void FabricCrew::end() noexcept {
  for (const Member& member : m_members) {
    if (member.pid > 0) {
      ::kill(member.pid, SIGKILL); // not waited for yet, so the number is still its own
    }
  }
  for (Member& member : m_members) {
    while (member.pid > 0 && ::waitpid(member.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    member.pid = -1;
  }
  m_members.clear();
}

} // namespace reckon
