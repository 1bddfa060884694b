// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/units.hpp"
#include "launch/rendezvous.hpp"

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace reckon {

/// A member of a message between ranks: its name in the text, and a reference to its value.
struct PeerField {
  const char* name;
  std::variant<bool*, std::int64_t*, std::uint64_t*, double*, std::string*,
               std::vector<std::uint64_t>*, std::vector<std::string>*>
      value;
};
/// The result of a message's member function fields(): the one description of the message for
/// writing and reading.
using PeerFields = std::vector<PeerField>;

/// The values as text. Numbers must be finite; bytes of a string that are not UTF-8 become U+FFFD.
[[nodiscard]] std::string fields_to_text(const PeerFields& fields);
/// Reads them from `sender`'s text. Throws PeerError that names the sender and the first field that
/// is missing, has another type, or is unknown here.
void fields_from_text(const PeerFields& fields, const std::string& text, const std::string& sender);

/// Every rank's message, in rank order. Throws PeerError, which names the rank whose message cannot
/// be read.
template <class Message>
std::vector<Message> gather(Rendezvous& rendezvous, Message mine, Seconds limit) {
  std::vector<Message> all;
  for (const std::string& text : rendezvous.all_gather(fields_to_text(mine.fields()), limit)) {
    const std::string sender = "rank " + std::to_string(all.size());
    fields_from_text(all.emplace_back().fields(), text, sender);
  }
  return all;
}

} // namespace reckon
