// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/file.hpp"
#include "core/json.hpp"
#include "launch/connection.hpp"

#include <cstddef>
#include <optional>
#include <poll.h>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// A text between two ranks that are about to meet, after the proof that its sender knows the job's
/// token. `nonce` is a number that the receiver has just made up, so what was heard before is no
/// proof now; `sender` keeps rank 0's proofs apart from those of the others.
[[nodiscard]] std::string sealed(const std::string& token, std::string_view sender,
                                 std::string_view nonce, const std::string& text);
/// The text; nothing where its sender does not know the token.
[[nodiscard]] std::optional<std::string> unsealed(const std::string& token, std::string_view sender,
                                                  std::string_view nonce, const std::string& text);
inline constexpr std::string_view k_rank_0 = "rank 0", k_other_rank = "other rank";

/// Rank 0's way to let the others in: it listens, gives each newcomer a nonce, and turns away those
/// that do not answer with their description of themselves, sealed. A stranger costs one connection
/// for some seconds at most, whatever it does: says nothing, nonsense, half a word, or comes a
/// thousand times. Nothing here waits.
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
  /// A line about somebody that is let go: `why`, after the address. There are only some.
  void refuse(const Connection& who, std::string_view why);

private:
  void accept_newcomers();

  Fd m_listener;
  std::string m_token;
  std::size_t m_room;
  struct Stranger {
    Connection connection;
    std::string nonce;
    std::int64_t since_ns = 0;
  };
  std::vector<Stranger> m_strangers; ///< connected, not yet introduced; oldest first
  std::size_t m_refused = 0;
  bool m_full = false; ///< no descriptor for another, at the moment
};

} // namespace reckon
