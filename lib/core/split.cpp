// SPDX-License-Identifier: Apache-2.0
#include "core/split.hpp"

#include <algorithm>
#include <cstddef>

namespace reckon {

std::vector<std::string> split(std::string_view text, std::string_view separator) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    parts.emplace_back(text.substr(at, end - at));
    at = end + separator.size();
  }
  return parts;
}

} // namespace reckon
