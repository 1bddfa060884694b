// SPDX-License-Identifier: Apache-2.0
#include "schedule/reach.hpp"

#include <algorithm>
#include <array>
#include <tuple>

namespace reckon {

std::vector<WayQuestion> without_way(const OrderedGraph& graph,
                                     std::vector<WayQuestion> questions) {
  constexpr std::size_t k_words = 8;
  constexpr std::size_t k_block = 64 * k_words; // nodes that ways are followed from at a time
  std::sort(questions.begin(), questions.end(), [](const WayQuestion& a, const WayQuestion& b) {
    return std::tie(a.from, a.to, a.about) < std::tie(b.from, b.to, b.about);
  });
  std::vector<WayQuestion> none;
  std::vector<std::array<std::uint64_t, k_words>> from; // of a node: which of the block lead to it
  for (std::size_t q = 0; q < questions.size();) {
    const std::size_t begin = questions[q].from;
    const std::size_t asked = q;
    std::size_t end = begin;
    for (; q < questions.size() && questions[q].from < begin + k_block; ++q) {
      end = std::max<std::size_t>(end, questions[q].to + std::size_t{1});
    }
    from.assign(end - begin, {});
    for (std::size_t node = begin; node < end; ++node) {
      std::array<std::uint64_t, k_words>& mine = from[node - begin];
      for (const std::uint32_t before : graph.predecessors(node)) {
        if (before < begin) {
          continue;
        }
        const std::size_t p = before - begin;
        for (std::size_t w = 0; w < k_words; ++w) {
          mine[w] |= from[p][w];
        }
        if (p < k_block) {
          mine[p / 64] |= std::uint64_t{1} << (p % 64);
        }
      }
    }
    for (std::size_t i = asked; i < q; ++i) {
      const std::size_t p = questions[i].from - begin;
      if (questions[i].to < begin ||
          (from[questions[i].to - begin][p / 64] >> (p % 64) & 1U) == 0) {
        none.push_back(questions[i]);
      }
    }
  }
  return none;
}

} // namespace reckon
