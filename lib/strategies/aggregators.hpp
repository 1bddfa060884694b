// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace reckon {

/// Who sums for a rack with these members: those that only serve, else its workers. `ranks` are a
/// model's or a plan's; in the members' order, empty when none of them may sum.
template <class Rank>
[[nodiscard]] std::vector<std::uint32_t>
aggregators_among(const std::vector<Rank>& ranks, const std::vector<std::uint32_t>& members) {
  for (const bool worker : {false, true}) {
    std::vector<std::uint32_t> found;
    for (const std::uint32_t r : members) {
      if (ranks[r].server && ranks[r].worker == worker) {
        found.push_back(r);
      }
    }
    if (!found.empty()) {
      return found;
    }
  }
  return {};
}

/// The same of one rack, by its name; ascending.
template <class Rank>
[[nodiscard]] std::vector<std::uint32_t> aggregators(const std::vector<Rank>& ranks,
                                                     const std::string& rack) {
  std::vector<std::uint32_t> members;
  for (std::uint32_t r = 0; r < ranks.size(); ++r) {
    if (ranks[r].rack == rack) {
      members.push_back(r);
    }
  }
  return aggregators_among(ranks, members);
}

} // namespace reckon
