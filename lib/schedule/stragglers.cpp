// SPDX-License-Identifier: Apache-2.0
#include "schedule/stragglers.hpp"

#include "core/error.hpp"
#include "core/json.hpp"
#include "core/units.hpp"
#include "core/whole_number.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace reckon {

std::vector<Straggler> parse_stragglers(std::span<const std::string> texts, std::size_t ranks) {
  std::vector<Straggler> stragglers;
  for (const std::string& text : texts) {
    const std::string option = fmt::format("--straggler {}", one_line(text));
    std::string_view what = text;
    const bool with_words = what.starts_with("rank=");
    what.remove_prefix(with_words ? 5 : 0);
    const std::size_t between = what.find(with_words ? ':' : '=');
    const auto rank = whole_number<std::uint32_t>(what.substr(0, between));
    if (between == std::string_view::npos || !rank || *rank >= ranks) {
      fail(ErrorKind::usage,
           fmt::format("{}: write RANK=FACTORx or rank=RANK:FACTOR with a rank from 0 to {} and a "
                       "factor of at least 1, e.g. 0=2x",
                       option, ranks - 1));
    }
    const Straggler straggler{*rank, parse_factor(what.substr(between + 1), option, 1)};
    if (std::ranges::any_of(stragglers,
                            [&](const Straggler& s) { return s.rank == straggler.rank; })) {
      fail(ErrorKind::usage, fmt::format("{}: rank {} is one already", option, straggler.rank));
    }
    stragglers.push_back(straggler);
  }
  return stragglers;
}

} // namespace reckon
