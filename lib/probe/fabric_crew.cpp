// SPDX-License-Identifier: Apache-2.0
#include "probe/fabric_crew.hpp"

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/json.hpp"

#include <fmt/format.h>

#include <algorithm>
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
namespace {

constexpr Seconds k_start_limit(20); // for opening, and again for connecting

} // namespace

std::uint64_t fabric_footprint(int rank, std::uint64_t most) {
  // The first pair goes round 64 MiB by itself. The others need less, as all together count.
  const std::uint64_t mib = rank < 2 ? 64 : rank < 4 ? 32 : 16;
  return std::min(mib << 20U, most);
}

FabricCrew::FabricCrew(std::string transport, int ranks, FabricCrewOptions options)
    : m_transport(std::move(transport)), m_options(std::move(options)) {
  try {
    for (int rank = 0; rank < ranks; ++rank) {
      start(rank);
    }
    const Json addresses =
        gather(m_members.size(), FrameKind::address, k_start_limit, "opening its endpoint");
    for (const Member& member : m_members) {
      send(member.socket.get(), FrameKind::addresses, addresses.dump());
    }
    static_cast<void>(gather(m_members.size(), FrameKind::ready, k_start_limit, "connecting"));
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
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()) != 0) {
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
      serve(rank, theirs.get());
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

/// The life of a rank: opens its lane, exchanges addresses, then carries out tasks until the socket
/// closes. Every error goes into the socket.
void FabricCrew::serve(int rank, int socket) const {
  try {
    FlowRank::Options options;
    options.rank = rank;
    options.seed = m_options.seed;
    options.memory = fabric_footprint(rank, m_options.footprint);
    if (!m_options.cpus.empty()) {
      options.cpus = {m_options.cpus[static_cast<std::size_t>(rank) % m_options.cpus.size()]};
    }
    FlowRank self(m_options.make(m_transport, rank), options);
    send(socket, FrameKind::address, self.address());
    FrameKind kind{};
    std::string text;
    if (!receive(socket, kind, text)) {
      return;
    }
    self.connect(parse_json(text, "addresses").get<std::vector<std::string>>());
    send(socket, FrameKind::ready, "");
    while (receive(socket, kind, text)) {
      self.prepare(decode_task(text));
      send(socket, FrameKind::ready, "");
      if (!receive(socket, kind, text)) {
        return;
      }
      self.begin();
      // What broke is told at once: the peer may wait for us in vain.
      send(socket, FrameKind::outcome, encode(self.outcome()));
    }
  } catch (const std::exception& cause) {
    const Error error = as_error(cause);
    send(socket, error.kind() == ErrorKind::unavailable ? FrameKind::unavailable : FrameKind::error,
         error.what());
  }
}

/// A frame is a packet: its kind and a text. Throws Error{operation} when the other side is gone.
void FabricCrew::send(int socket, FrameKind kind, const std::string& text) {
  const std::string frame = static_cast<char>(kind) + text;
  while (::send(socket, frame.data(), frame.size(), MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) {
      fail_errno("send to a process of the measurement", errno);
    }
  }
}

/// Waits; false when the other side is gone.
bool FabricCrew::receive(int socket, FrameKind& kind, std::string& text) {
  const auto next = [&](int flags) {
    ssize_t bytes = 0;
    do {
      bytes = ::recv(socket, text.data(), text.size(), flags);
    } while (bytes < 0 && errno == EINTR);
    return bytes;
  };
  text.clear();
  const ssize_t bytes = next(MSG_PEEK | MSG_TRUNC); // how long it is
  if (bytes <= 0) {
    return false;
  }
  text.resize(static_cast<std::size_t>(bytes));
  if (next(0) != bytes) {
    return false;
  }
  kind = static_cast<FrameKind>(text.front());
  text.erase(0, 1);
  return true;
}

std::vector<std::string> FabricCrew::gather(std::size_t ranks, FrameKind wanted, Seconds limit,
                                            const char* doing) {
  constexpr int k_look_ms = 50; // for an interrupt
  const std::int64_t end_ns = deadline_after(limit);
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
      throw FabricTimeout(fmt::format("{}: rank {} has been {} for more than {}", m_transport,
                                      who.front(), doing, to_text(limit)));
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
  if (!receive(member.socket.get(), kind, text)) {
    int status = 0;
    if (::waitpid(member.pid, &status, 0) == member.pid) {
      member.pid = -1;
    }
    fail(ErrorKind::operation,
         WIFSIGNALED(status) ? fmt::format("{}: rank {} died of signal {} while {}", m_transport,
                                           rank, WTERMSIG(status), doing)
                             : fmt::format("{}: rank {} ended while {}", m_transport, rank, doing));
  }
  if (kind == FrameKind::error || kind == FrameKind::unavailable) {
    fail(kind == FrameKind::unavailable ? ErrorKind::unavailable : ErrorKind::operation, text);
  }
  if (kind != wanted) {
    fail(ErrorKind::internal, fmt::format("{}: rank {} answers out of turn", m_transport, rank));
  }
  return text;
}

std::vector<FlowOutcome> FabricCrew::run(const FlowTask& task, std::size_t ranks, Seconds limit) {
  const std::string text = encode(task);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    send(m_members.at(rank).socket.get(), FrameKind::task, text);
  }
  static_cast<void>(gather(ranks, FrameKind::ready, limit, "preparing"));
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    send(m_members[rank].socket.get(), FrameKind::go, "");
  }
  std::vector<FlowOutcome> outcomes;
  for (const std::string& outcome : gather(ranks, FrameKind::outcome, limit, "moving data")) {
    outcomes.push_back(decode_flow_outcome(outcome));
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
