// SPDX-License-Identifier: Apache-2.0
#include "launch/rendezvous.hpp"

#include "core/clock.hpp"
#include "core/interrupt.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "core/version.hpp"
#include "launch/sockets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace reckon {
namespace {

constexpr char k_data = 'd';              ///< a message for all_gather or broadcast
constexpr char k_give_up = 'x';           ///< the sender ends, with the reason
constexpr std::size_t k_header_bytes = 5; ///< kind, length (little endian)
constexpr std::uint32_t k_longest_message = 1U << 30U;
constexpr std::uint32_t k_longest_hello = 4096; ///< before the token is known to be right

std::int64_t in(Seconds s) {
  return monotonic_ns() + static_cast<std::int64_t>(s.count() * 1e9);
}

int poll_timeout_ms(std::int64_t deadline_ns) {
  const std::int64_t left = (deadline_ns - monotonic_ns()) / 1'000'000;
  return static_cast<int>(
      std::clamp<std::int64_t>(left, 0, 100)); // wake up now and then to see an interrupt
}

void stop_if_interrupted() {
  if (interrupted()) {
    fail(ErrorKind::operation, "interrupted");
  }
}

std::string frame(char kind, const std::string& text) {
  std::string out(1, kind);
  const auto length = static_cast<std::uint32_t>(text.size());
  for (unsigned i = 0; i < 4; ++i) {
    out += static_cast<char>((length >> (8 * i)) & 0xFFU);
  }
  return out + text;
}

std::uint32_t length_of(const std::string& buffer) {
  std::uint32_t length = 0;
  for (unsigned i = 0; i < 4; ++i) {
    length |= static_cast<std::uint32_t>(static_cast<unsigned char>(buffer[1 + i])) << (8 * i);
  }
  return length;
}

void tune(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  // A machine that vanishes is noticed in about 15 s even when nobody sends.
  const int idle = 5, interval = 2, count = 5, user_timeout_ms = 15000;
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
  setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &user_timeout_ms, sizeof user_timeout_ms);
}

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

AddressList resolve(const std::string& host, int port, bool passive) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = passive ? AI_PASSIVE : 0;
  addrinfo* found = nullptr;
  const int rc = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (rc != 0) {
    fail(ErrorKind::operation, fmt::format("MASTER_ADDR '{}': {}", host, gai_strerror(rc)));
  }
  return {found, &freeaddrinfo};
}

} // namespace

Rendezvous::Rendezvous(const JobEnvironment& job, const std::string& digest, Seconds limit,
                       Fd listener)
    : m_job(job) {
  if (job.size == 1) {
    return;
  }
  try {
    const std::int64_t deadline = in(limit);
    if (m_job.board) {
      listener = meet_at_board(m_job, limit);
    } else if (job.rank == 0 && !listener) {
      listener = listen_on_master_address(m_job);
    }
    const Json hello{{"reckon", k_version}, {"token", m_job.token}, {"rank", job.rank},
                     {"size", job.size},    {"plan", digest},       {"host", host_name()}};
    if (job.rank == 0) {
      accept_all(std::move(listener), hello.dump(), deadline);
    } else {
      connect_to_root(hello.dump(), deadline);
    }
    m_job.board.reset();
    measure_clock(deadline);
  } catch (const std::exception& e) {
    give_up(e.what()); // those who are here already learn why
    throw;
  }
}

Rendezvous::~Rendezvous() = default;

std::string Rendezvous::name_of(const Peer& peer) const {
  return peer.rank < 0 ? fmt::format("a process on {}", peer.host)
                       : fmt::format("rank {} ({})", peer.rank, peer.host);
}

void Rendezvous::accept_all(Fd listener, const std::string& hello, std::int64_t deadline_ns) {
  const Json ours = Json::parse(hello);
  m_peers.resize(static_cast<std::size_t>(m_job.size) - 1);
  for (int r = 1; r < m_job.size; ++r) {
    m_peers[static_cast<std::size_t>(r) - 1].rank = r;
  }
  std::vector<Peer> strangers; // connected, not yet introduced
  std::size_t missing = m_peers.size();
  const auto welcome = [&](Peer& stranger) {
    const std::uint32_t length = length_of(stranger.received);
    const Json theirs =
        Json::parse(stranger.received.substr(k_header_bytes, length), nullptr, false);
    stranger.received.erase(0, k_header_bytes + length); // what follows belongs to the job already
    if (theirs.is_discarded() || !theirs.is_object() || theirs.value("token", "") != m_job.token) {
      log(LogLevel::warn, "refused a connection from {} that does not know the job's token",
          stranger.host);
      return; // its socket closes, the job goes on
    }
    const int rank = theirs.value("rank", -1);
    stranger.host = theirs.value("host", stranger.host);
    std::string problem;
    if (rank < 1 || rank >= m_job.size || theirs.value("size", 0) != m_job.size) {
      problem = fmt::format("says it is rank {} of {}, but the job has ranks 0 to {}", rank,
                            theirs.value("size", 0), m_job.size - 1);
    } else if (m_peers[static_cast<std::size_t>(rank) - 1].socket) {
      problem = fmt::format("says it is rank {}, which is already here", rank);
    } else if (theirs.value("reckon", "") != ours.value("reckon", "")) {
      problem = fmt::format("rank {} runs reckon {}, rank 0 runs {}; install the same version",
                            rank, theirs.value("reckon", "?"), ours.value("reckon", "?"));
    } else if (theirs.value("plan", "") != ours.value("plan", "")) {
      problem = fmt::format(
          "rank {} was started with another plan than rank 0; give all ranks the same file", rank);
    }
    if (!problem.empty()) {
      send(stranger, k_give_up, problem);
      fail(ErrorKind::operation, fmt::format("{} on {}", problem, stranger.host));
    }
    Peer& peer = m_peers[static_cast<std::size_t>(rank) - 1];
    peer.socket = std::move(stranger.socket);
    peer.received = std::move(stranger.received);
    take_messages(peer);
    peer.host = stranger.host;
    --missing;
  };
  while (missing > 0) {
    std::vector<pollfd> fds{{listener.get(), POLLIN, 0}};
    for (const Peer& s : strangers) {
      fds.push_back({s.socket.get(), POLLIN, 0});
    }
    for (const Peer& p : m_peers) { // somebody who is here may die while we wait for the rest
      fds.push_back({p.socket.get(), POLLIN, 0});
    }
    ::poll(fds.data(), fds.size(), poll_timeout_ms(deadline_ns));
    stop_if_interrupted();
    if (monotonic_ns() > deadline_ns) {
      std::vector<int> absent;
      for (const Peer& p : m_peers) {
        if (!p.socket) {
          absent.push_back(p.rank);
        }
      }
      throw PeerError(fmt::format("rank{} {} did not join in time", absent.size() > 1 ? "s" : "",
                                  fmt::join(absent, ", ")));
    }
    for (std::size_t i = 0; i < m_peers.size(); ++i) {
      char byte = 0;
      if ((fds[1 + strangers.size() + i].revents & (POLLIN | POLLHUP | POLLERR)) != 0 &&
          ::recv(m_peers[i].socket.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0) {
        throw PeerError(fmt::format("{} died while the job was starting", name_of(m_peers[i])));
      }
    }
    for (std::size_t i = strangers.size(); i-- > 0;) {
      if (fds[1 + i].revents == 0) {
        continue;
      }
      char buffer[k_longest_hello];
      const ssize_t n = ::recv(strangers[i].socket.get(), buffer, sizeof buffer, MSG_DONTWAIT);
      bool finished = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
      if (n > 0) {
        Peer& s = strangers[i];
        s.received.append(buffer, static_cast<std::size_t>(n));
        const bool whole = s.received.size() >= k_header_bytes &&
                           s.received.size() >= k_header_bytes + length_of(s.received);
        if (whole) {
          welcome(s);
        }
        finished = whole || s.received.size() > k_longest_hello;
      }
      if (finished) {
        strangers.erase(strangers.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    if ((fds[0].revents & POLLIN) != 0) {
      sockaddr_storage from{};
      socklen_t length = sizeof from;
      Fd socket(
          ::accept4(listener.get(), reinterpret_cast<sockaddr*>(&from), &length, SOCK_CLOEXEC));
      if (socket && strangers.size() < 4096) {
        char host[NI_MAXHOST] = "?";
        getnameinfo(reinterpret_cast<sockaddr*>(&from), length, host, sizeof host, nullptr, 0,
                    NI_NUMERICHOST);
        tune(socket.get());
        Peer stranger;
        stranger.socket = std::move(socket);
        stranger.host = host;
        strangers.push_back(std::move(stranger));
      }
    }
  }
}

void Rendezvous::connect_to_root(const std::string& hello, std::int64_t deadline_ns) {
  m_peers.resize(1);
  Peer& root = m_peers.front();
  root.rank = 0;
  root.host = m_job.master_address;
  int error = 0;
  for (;;) {
    stop_if_interrupted();
    try {
      const AddressList addresses = resolve(m_job.master_address, m_job.master_port, false);
      for (const addrinfo* a = addresses.get(); a != nullptr && !root.socket; a = a->ai_next) {
        Fd socket(::socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol));
        if (socket && ::connect(socket.get(), a->ai_addr, a->ai_addrlen) == 0) {
          root.socket = std::move(socket);
        } else {
          error = errno;
        }
      }
    } catch (const Error&) {
      if (monotonic_ns() >
          deadline_ns) { // a name that is not known yet may be known soon (Kubernetes)
        throw;
      }
    }
    if (root.socket) {
      break;
    }
    if (monotonic_ns() > deadline_ns) {
      throw PeerError(fmt::format("rank {} cannot reach rank 0 at {} port {}: {}", m_job.rank,
                                  m_job.master_address, m_job.master_port,
                                  std::generic_category().message(error)));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50)); // rank 0 may not listen yet
  }
  tune(root.socket.get());
  send(root, k_data, hello);
}

void Rendezvous::measure_clock(std::int64_t deadline_ns) {
  // Rank 0 answers each rank's eight pings in turn; the quickest round trip bounds the offset by
  // half its time.
  constexpr int k_pings = 8;
  if (m_job.rank == 0) {
    for (Peer& peer : m_peers) {
      for (int i = 0; i < k_pings; ++i) {
        static_cast<void>(next_message(peer, deadline_ns, "the start"));
        send(peer, k_data, std::to_string(monotonic_ns()));
      }
    }
    return;
  }
  std::int64_t best = INT64_MAX;
  for (int i = 0; i < k_pings; ++i) {
    const std::int64_t sent = monotonic_ns();
    send(m_peers.front(), k_data, "t");
    const std::string answer = next_message(m_peers.front(), deadline_ns, "the start");
    const std::int64_t back = monotonic_ns();
    if (back - sent < best) {
      best = back - sent;
      m_offset = {std::stoll(answer) - (sent + back) / 2, (back - sent) / 2};
    }
  }
  if (std::abs(m_offset.offset_ns) <= m_offset.uncertainty_ns) {
    m_offset.offset_ns = 0; // the same machine's clock
  }
}

void Rendezvous::send(Peer& peer, char kind, const std::string& text) {
  const std::string bytes = frame(kind, text);
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n =
        ::send(peer.socket.get(), bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) {
      stop_if_interrupted();
      continue;
    }
    if (n < 0) {
      throw PeerError(
          fmt::format("{} is gone: {}", name_of(peer), std::generic_category().message(errno)));
    }
    done += static_cast<std::size_t>(n);
  }
}

void Rendezvous::take_messages(Peer& peer) {
  while (peer.received.size() >= k_header_bytes) {
    const std::uint32_t length = length_of(peer.received);
    if (length > k_longest_message) {
      throw PeerError(fmt::format("{} sent a message that is not ours", name_of(peer)));
    }
    if (peer.received.size() < k_header_bytes + length) {
      break;
    }
    std::string text = peer.received.substr(k_header_bytes, length);
    const char kind = peer.received.front();
    peer.received.erase(0, k_header_bytes + length);
    if (kind == k_give_up) {
      throw PeerError(m_job.rank == 0 ? fmt::format("{} gave up: {}", name_of(peer), text) : text);
    }
    peer.messages.push_back(std::move(text));
  }
}

void Rendezvous::pump(std::int64_t deadline_ns) {
  std::vector<pollfd> fds;
  for (const Peer& p : m_peers) {
    fds.push_back({p.socket.get(), POLLIN, 0});
  }
  ::poll(fds.data(), fds.size(), poll_timeout_ms(deadline_ns));
  stop_if_interrupted();
  for (std::size_t i = 0; i < m_peers.size(); ++i) {
    if (fds[i].revents == 0) {
      continue;
    }
    Peer& peer = m_peers[i];
    char buffer[65536];
    const ssize_t n = ::recv(peer.socket.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
      continue;
    }
    if (n <= 0) {
      throw PeerError(n == 0 ? fmt::format("{} died: it closed its connection", name_of(peer))
                             : fmt::format("{} died: {}", name_of(peer),
                                           std::generic_category().message(errno)));
    }
    peer.received.append(buffer, static_cast<std::size_t>(n));
    take_messages(peer);
  }
}

std::string Rendezvous::next_message(Peer& peer, std::int64_t deadline_ns, const char* doing) {
  while (peer.messages.empty()) {
    if (monotonic_ns() > deadline_ns) {
      throw PeerError(fmt::format("{} does not answer ({})", name_of(peer), doing));
    }
    pump(deadline_ns);
  }
  std::string text = std::move(peer.messages.front());
  peer.messages.erase(peer.messages.begin());
  return text;
}

std::vector<std::string> Rendezvous::all_gather(const std::string& mine, Seconds limit) {
  if (m_job.size == 1) {
    return {mine};
  }
  const std::int64_t deadline = in(limit);
  std::vector<std::string> all{mine};
  std::string packed;
  if (m_job.rank == 0) {
    for (Peer& peer : m_peers) {
      all.push_back(next_message(peer, deadline, "waiting for everybody"));
    }
    for (const std::string& text : all) {
      packed += frame(k_data, text);
    }
    for (Peer& peer : m_peers) {
      send(peer, k_data, packed);
    }
    return all;
  }
  send(m_peers.front(), k_data, mine);
  packed = next_message(m_peers.front(), deadline, "waiting for everybody");
  all.clear();
  for (std::size_t at = 0; at + k_header_bytes <= packed.size();) {
    const std::string header = packed.substr(at, k_header_bytes);
    all.push_back(packed.substr(at + k_header_bytes, length_of(header)));
    at += k_header_bytes + length_of(header);
  }
  return all;
}

std::string Rendezvous::broadcast(const std::string& from_root, Seconds limit) {
  if (m_job.rank == 0) {
    for (Peer& peer : m_peers) {
      send(peer, k_data, from_root);
    }
    return from_root;
  }
  return next_message(m_peers.front(), in(limit), "waiting for rank 0");
}

void Rendezvous::watch(Seconds limit) {
  if (m_job.size == 1) {
    stop_if_interrupted();
    return;
  }
  pump(in(limit));
}

void Rendezvous::give_up(const std::string& why) noexcept {
  const std::string bytes = frame(k_give_up, why);
  for (Peer& peer : m_peers) {
    if (peer.socket) {
      [[maybe_unused]] const ssize_t n =
          ::send(peer.socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      ::shutdown(peer.socket.get(), SHUT_WR);
    }
  }
  // Closing a socket with unread data resets it, and the reset overtakes what we just said: read
  // until the peer has closed too, but not for long.
  const std::int64_t deadline = in(Seconds(1));
  for (Peer& peer : m_peers) {
    pollfd fd{peer.socket.get(), POLLIN, 0};
    std::array<char, 4096> rest{};
    while (peer.socket && monotonic_ns() < deadline) {
      const ssize_t n = ::recv(peer.socket.get(), rest.data(), rest.size(), MSG_DONTWAIT);
      if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        break;
      }
      if (n < 0) {
        ::poll(&fd, 1, poll_timeout_ms(deadline));
      }
    }
  }
}

} // namespace reckon
