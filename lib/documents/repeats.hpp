// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/json_fwd.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

/// Lists of whole numbers that refer to repeated numbers instead of holding them again: an element
/// [count, back, step] stands for `count` numbers, each `step` more than the one `back` places
/// before it. 0, 1, 2, ..., 9 is 0, [9, 1, 1]; the turns of a ring are one round and a repeat; a
/// tree that is another one shifted by eight ranks is a few repeats of it. Not for other modules.
namespace reckon::documents {

/// Writes these lists. The numbers of one list count as before those of the next one.
class RepeatWriter {
public:
  /// The elements that stand for `numbers`. The choice of repeats depends only on the numbers of
  /// this list and those before: equal lists have equal text.
  [[nodiscard]] Json elements(const std::vector<std::int64_t>& numbers);

private:
  /// Where this many differences were last seen in this order, by their hash. Latest places only,
  /// and no chains: time does not grow faster than the list. Another place with the same hash only
  /// makes the text longer.
  struct Seen {
    std::size_t differences;
    std::uint64_t power = 1;             ///< of the hash's base, to this number of differences
    std::size_t next = 0;                ///< first place that is not in it yet
    std::vector<std::uint32_t> places{}; ///< plus 1; 0: none
  };
  struct Repeat {
    std::size_t count = 0, back = 0;
  };

  void append(const std::vector<std::int64_t>& numbers);
  [[nodiscard]] std::uint32_t& place(Seen& seen, std::size_t at) const;
  [[nodiscard]] Repeat longest(std::size_t at);

  std::vector<std::int64_t> m_numbers;
  std::vector<std::uint64_t> m_hashes; ///< of all differences up to a number
  std::array<Seen, 4> m_seen{Seen{64}, Seen{16}, Seen{4}, Seen{2}};
};

/// The element of a list, read from a document, that its number `i` comes from.
[[nodiscard]] JsonView source_of(const JsonView& list, std::size_t i);

} // namespace reckon::documents
