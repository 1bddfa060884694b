// SPDX-License-Identifier: Apache-2.0
#include "launch/connection.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <system_error>
#include <utility>

namespace reckon {
namespace {

constexpr std::size_t k_header_bytes = 5; ///< kind, length (little endian)

std::uint32_t length_in(const std::string& header) {
  std::uint32_t length = 0;
  for (unsigned i = 0; i < 4; ++i) {
    length |= static_cast<std::uint32_t>(static_cast<unsigned char>(header[1 + i])) << (8 * i);
  }
  return length;
}

/// The longest text of a message of that kind; nothing where there is no such kind.
std::optional<std::uint32_t> longest_text(char kind, std::uint32_t longest_data) {
  switch (static_cast<MessageKind>(kind)) {
  case MessageKind::data:
    return longest_data;
  case MessageKind::give_up:
    return Connection::k_longest_hello;
  case MessageKind::beat:
  case MessageKind::waiting:
  case MessageKind::goodbye:
    return 0;
  }
  return std::nullopt;
}

} // namespace

Connection::Connection(Fd socket, std::string host_name)
    : host(std::move(host_name)), m_socket(std::move(socket)) {
  const int on = 1;
  setsockopt(m_socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void Connection::close() {
  m_socket.reset();
  m_unsent.clear();
}

void Connection::end_sending() noexcept {
  ::shutdown(m_socket.get(), SHUT_WR);
}

void Connection::send(MessageKind kind, std::string_view text) {
  text = kind == MessageKind::give_up ? text.substr(0, k_longest_hello) : text;
  m_unsent += static_cast<char>(kind);
  const auto length = static_cast<std::uint32_t>(text.size());
  for (unsigned i = 0; i < 4; ++i) {
    m_unsent += static_cast<char>((length >> (8 * i)) & 0xFFU);
  }
  m_unsent += text;
  flush();
}

void Connection::flush() {
  std::size_t done = 0;
  while (open() && done < m_unsent.size()) {
    const ssize_t n = ::send(m_socket.get(), m_unsent.data() + done, m_unsent.size() - done,
                             MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n < 0 && errno != EAGAIN) {
      // It is broken, but what the other side said before may still be here to read: receive()
      // comes to the end.
      m_unsent.clear();
      return;
    }
    if (n < 0) {
      break;
    }
    done += static_cast<std::size_t>(n);
  }
  m_unsent.erase(0, done);
}

void Connection::receive() {
  std::array<char, 65536> buffer; // NOLINT: filled by recv
  const ssize_t n = ::recv(m_socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
    return;
  }
  if (n <= 0) {
    m_fault = n == 0 ? "it closed its connection" : std::generic_category().message(errno);
    return;
  }
  m_silent_ns = 0;
  m_received.append(buffer.data(), static_cast<std::size_t>(n));
  std::size_t at = 0;
  while (m_received.size() - at >= k_header_bytes) {
    const std::string header = m_received.substr(at, k_header_bytes);
    const std::uint32_t length = length_in(header);
    if (const auto most = longest_text(header.front(), m_longest); !most || length > *most) {
      m_fault = "it sent something that is no message of ours";
      break;
    }
    if (m_received.size() - at - k_header_bytes < length) {
      break;
    }
    m_messages.push_back(
        {static_cast<MessageKind>(header.front()), m_received.substr(at + k_header_bytes, length)});
    at += k_header_bytes + length;
  }
  m_received.erase(0, at);
}

std::optional<Message> Connection::next() {
  if (m_messages.empty()) {
    return std::nullopt;
  }
  Message message = std::move(m_messages.front());
  m_messages.pop_front();
  return message;
}

} // namespace reckon
