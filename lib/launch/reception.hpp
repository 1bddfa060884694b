// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/file.hpp"
#include "core/json.hpp"
#include "launch/connection.hpp"

#include <cstddef>
#include <poll.h>
#include <string>
#include <vector>

namespace reckon {

/// Rank 0's way to let the others in: it listens, identifies newcomers and turns away those without
/// the token. A stranger costs one connection for some seconds at most, whatever it does: says
/// nothing, nonsense, half a word, or comes a thousand times. Nothing here waits.
class Reception {
public:
  /// `ranks` is the number that may come at once without being mistaken for strangers.
  Reception(Fd listener, std::string token, std::size_t ranks);
  Reception(const Reception&) = delete;
  Reception& operator=(const Reception&) = delete;
  /// Says how many strangers there were.
  ~Reception();

  /// Appends what is to be polled.
  void add_to(std::vector<pollfd>& fds) const;

  /// A newcomer with the token, and its description of itself (an object).
  struct Guest {
    Connection connection;
    Json hello;
  };
  /// After a poll: reads all connections, lets newcomers in. Returns those that have introduced
  /// themselves.
  [[nodiscard]] std::vector<Guest> admit();

private:
  void accept_newcomers();
  void refuse(const Connection& who, const char* why);

  Fd m_listener;
  std::string m_token;
  std::size_t m_room;
  struct Stranger {
    Connection connection;
    std::int64_t since_ns = 0;
  };
  std::vector<Stranger> m_strangers; ///< connected, not yet introduced; oldest first
  std::size_t m_refused = 0;
};

} // namespace reckon
