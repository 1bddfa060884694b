// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/file.hpp"
#include "launch/unshared_fd.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

namespace reckon {

/// The kind of a message on a connection; the values are transmitted.
enum class MessageKind : char {
  data = 'd',    ///< for the ranks' gathers and broadcasts
  give_up = 'x', ///< the sender ends, with the reason
  beat = 'h',    ///< the sender lives
  waiting = 'w', ///< the sender lives, and waits for another rank's message itself
  /// The sender has everything it needs and closes; before a rank is welcome: it shall call again.
  goodbye = 'b',
};

struct Message {
  MessageKind kind = MessageKind::data;
  std::string text;
};

/// Whole messages over a TCP connection. Nothing blocks and nothing throws; fault() describes a
/// broken connection. Thread-compatible.
class Connection {
public:
  /// Before the other side is known to belong to the job its messages may only be short, and
  /// reasons to give up always.
  static constexpr std::uint32_t k_longest_hello = 4096;
  static constexpr std::uint32_t k_longest_message = 1U << 30U;

  Connection() = default;
  /// `host` is the other side's name or address, for messages.
  Connection(Fd socket, std::string host);

  [[nodiscard]] bool open() const noexcept { return static_cast<bool>(m_socket); }
  [[nodiscard]] int fd() const noexcept { return m_socket.get(); }
  void close();
  /// Nothing will follow: the other side reads the sent messages, then an end.
  void end_sending() noexcept;

  /// Queues a message and sends as much as the system takes now. A reason to give up is cut to the
  /// length of a hello.
  void send(MessageKind kind, std::string_view text);
  void flush();
  [[nodiscard]] bool sending() const noexcept { return !m_unsent.empty(); }

  /// Reads the available bytes.
  void receive();
  [[nodiscard]] std::optional<Message> next();
  void trust() noexcept { m_longest = k_longest_message; }
  /// Why nothing will come any more, in words that follow the other side's name; empty while it is
  /// well.
  [[nodiscard]] const std::string& fault() const noexcept { return m_fault; }

  /// Adds `ns` to the time without a byte from there, which receive() sets back to zero.
  void pass(std::int64_t ns) noexcept { m_silent_ns += ns; }
  [[nodiscard]] std::int64_t silent_ns() const noexcept { return m_silent_ns; }

  std::string host;

private:
  UnsharedFd m_socket;
  std::string m_unsent, m_received;
  std::deque<Message> m_messages;
  std::uint32_t m_longest = k_longest_hello;
  std::string m_fault;
  std::int64_t m_silent_ns = 0;
};

} // namespace reckon
