// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "launch/peer_fields.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace reckon::test {

/// A message between ranks with a field of each type.
struct EveryPeerField {
  bool yes = false;
  std::int64_t whole = 0;
  std::uint64_t count = 0;
  double number = 0;
  std::string text;
  std::vector<std::uint64_t> counts;
  std::vector<std::string> texts;
  [[nodiscard]] PeerFields fields() {
    return {{"yes", &yes},   {"whole", &whole},   {"count", &count}, {"number", &number},
            {"text", &text}, {"counts", &counts}, {"texts", &texts}};
  }
  bool operator==(const EveryPeerField&) const = default;
};

} // namespace reckon::test
