// SPDX-License-Identifier: Apache-2.0
#include "core/shape.hpp"

#include "core/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string_view>
#include <system_error>

namespace reckon {
namespace {

constexpr std::uint64_t k_most_nodes = 1'000'000;

} // namespace

std::array<std::uint64_t, 3> parse_shape(const std::string& shape) {
  std::array<std::uint64_t, 3> counts{};
  std::string_view rest = shape;
  std::uint64_t nodes = 1;
  for (std::size_t d = 0; d < counts.size(); ++d) {
    const std::size_t end = std::min(rest.find('x'), rest.size());
    const auto [at, error] = std::from_chars(rest.data(), rest.data() + end, counts[d]);
    const bool last = d + 1 == counts.size();
    if (error != std::errc() || at != rest.data() + end || (end == rest.size()) != last ||
        counts[d] < 1 || counts[d] > k_most_nodes) {
      fail(ErrorKind::usage,
           fmt::format("--shape '{}': must be three counts from 1 to {}, LxVxH, for example 4x4x4",
                       shape, k_most_nodes));
    }
    rest.remove_prefix(last ? end : end + 1);
    nodes *= counts[d];
    if (nodes > k_most_nodes) {
      fail(ErrorKind::usage, fmt::format("--shape {}: more than {} nodes", shape, k_most_nodes));
    }
  }
  if (nodes == 1) {
    fail(ErrorKind::usage, "--shape 1x1x1: one node has nobody to talk to");
  }
  return counts;
}

} // namespace reckon
