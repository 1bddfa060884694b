// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace reckon {

/// Who sums for a rack: its machines that only serve, else its workers. `ranks` are a model's or a
/// plan's; ascending, empty when none of the rack may sum.
template <class Rank>
[[nodiscard]] std::vector<std::uint32_t> aggregators(const std::vector<Rank>& ranks,
                                                     const std::string& rack) {
  for (const bool worker : {false, true}) {
    std::vector<std::uint32_t> found;
    for (std::uint32_t r = 0; r < ranks.size(); ++r) {
      if (ranks[r].rack == rack && ranks[r].server && ranks[r].worker == worker) {
        found.push_back(r);
      }
    }
    if (!found.empty()) {
      return found;
    }
  }
  return {};
}

} // namespace reckon
