// SPDX-License-Identifier: Apache-2.0
#include "launch/reception.hpp"

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "core/secrets.hpp"
#include "launch/sockets.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <fcntl.h>
#include <optional>
#include <sys/socket.h>
#include <utility>

namespace reckon {
namespace {

constexpr std::int64_t k_patience_ns = 5'000'000'000; ///< for the first message of a stranger
/// With too few descriptors for more; a rank introduces itself sooner.
constexpr std::int64_t k_least_patience_ns = 1'000'000'000;
constexpr std::size_t k_extra_room = 64; ///< strangers beside the ranks
constexpr std::size_t k_named = 3;       ///< strangers that get a line each

std::string proof_in(const std::string& token, std::string_view sender, std::string_view nonce,
                     std::string_view text) {
  return proof_of(token, fmt::format("{}:{}:{}", sender, nonce, text));
}

} // namespace

std::string sealed(const std::string& token, std::string_view sender, std::string_view nonce,
                   const std::string& text) {
  return proof_in(token, sender, nonce, text) + text;
}

std::optional<std::string> unsealed(const std::string& token, std::string_view sender,
                                    std::string_view nonce, const std::string& text) {
  constexpr std::size_t k_proof = 64;
  if (text.size() < k_proof) {
    return std::nullopt;
  }
  std::string said = text.substr(k_proof);
  return same_secret(text.substr(0, k_proof), proof_in(token, sender, nonce, said))
             ? std::optional(std::move(said))
             : std::nullopt;
}

Reception::Reception(Fd listener, std::string token, std::size_t ranks)
    : m_listener(std::move(listener)), m_token(std::move(token)), m_room(ranks + k_extra_room) {
  const int flags = ::fcntl(m_listener.get(), F_GETFL);
  if (flags < 0 || ::fcntl(m_listener.get(), F_SETFL, flags | O_NONBLOCK) != 0) {
    fail_errno("rank 0 cannot listen", errno);
  }
}

Reception::~Reception() {
  if (m_refused > k_named) {
    log(LogLevel::warn, "refused {} connections of strangers in all", m_refused);
  }
}

void Reception::add_to(std::vector<pollfd>& fds) const {
  if (!m_full) {
    fds.push_back({m_listener.get(), POLLIN, 0});
  }
  for (const Stranger& s : m_strangers) {
    fds.push_back({s.connection.fd(), POLLIN, 0});
  }
}

void Reception::refuse(const Connection& who, std::string_view why) {
  if (++m_refused <= k_named) {
    log(LogLevel::warn, "refused a connection from {}: {}", who.host, why);
  }
}

void Reception::accept_newcomers() {
  // No more than the extra room at a time: who came in this round is heard before anybody has to
  // go.
  m_full = false;
  for (std::size_t i = 0; i < k_extra_room; ++i) {
    sockaddr_storage from{};
    socklen_t length = sizeof from;
    auto* const address = reinterpret_cast<sockaddr*>(&from);
    Fd socket(::accept4(m_listener.get(), address, &length, SOCK_CLOEXEC));
    const int why = errno;
    const bool full = !socket && (why == EMFILE || why == ENFILE);
    if (!socket && !full) {
      return; // nobody there, or he has gone again
    }
    if (full && m_strangers.empty()) {
      fail_errno("cannot accept another rank", why);
    }
    if (full && monotonic_ns() - m_strangers.front().since_ns < k_least_patience_ns) {
      m_full = true; // who waits at the door would make every poll return
      return;
    }
    if (full || m_strangers.size() >= m_room) {
      refuse(m_strangers.front().connection, "it does not introduce itself, and others wait");
      m_strangers.front().connection.send(MessageKind::goodbye, "");
      m_strangers.erase(m_strangers.begin());
    }
    if (!socket) {
      return; // with room again, next time
    }
    Stranger& stranger =
        m_strangers.emplace_back(Stranger{Connection(std::move(socket), address_text(*address)),
                                          fmt::format("{:016x}", secret_number()), monotonic_ns()});
    stranger.connection.send(MessageKind::data, stranger.nonce);
  }
}

std::vector<Reception::Guest> Reception::admit() {
  std::vector<Guest> guests;
  std::vector<Stranger> still;
  const std::int64_t now = monotonic_ns();
  for (Stranger& s : m_strangers) {
    s.connection.receive();
    if (const std::optional<Message> message = s.connection.next()) {
      const auto text = unsealed(m_token, k_other_rank, s.nonce, message->text);
      Json hello = text ? Json::parse(*text, nullptr, false) : Json();
      if (message->kind == MessageKind::data && hello.is_object()) {
        s.connection.trust();
        guests.push_back({std::move(s.connection), std::move(hello)});
      } else {
        refuse(s.connection, "it does not know the job's token");
      }
    } else if (!s.connection.fault().empty()) {
      refuse(s.connection, "it is no rank of this job");
    } else if (now - s.since_ns > k_patience_ns) {
      refuse(s.connection, "it does not introduce itself");
    } else {
      still.push_back(std::move(s));
    }
  }
  m_strangers = std::move(still);
  accept_newcomers();
  return guests;
}

} // namespace reckon
