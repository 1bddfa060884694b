// SPDX-License-Identifier: Apache-2.0
#include "strategies/forest/cutting.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace reckon {
namespace {

/// Parts begin at whole multiples of this in their run; and sizes that differ by less are equal.
constexpr std::uint64_t k_alignment = 64;
constexpr double k_rounding = 1e-9;

/// A part before it has a place in the gradient.
struct Piece {
  double middle = 0; ///< of its place among its tree's, in [0, 1]
  std::size_t tree = 0;
  double bytes = 0;
};

/// Each tree's share in equal pieces, in the order in which they are sent.
std::vector<Piece> pieces_of(const std::vector<SumTree>& trees, double total, double most) {
  const auto step = static_cast<double>(k_alignment);
  std::vector<Piece> pieces;
  for (std::size_t t = 0; t < trees.size(); ++t) {
    const double bytes = trees[t].share * total;
    double count = std::max(1.0, std::ceil(bytes / most * (1 - k_rounding)));
    if (bytes / count > most - step &&
        std::fmod(most, step) + most - bytes / count > k_rounding * most) {
      ++count; // rounding would exceed the size
    }
    for (double i = 0; i < count; ++i) {
      pieces.push_back({(i + 0.5) / count, t, bytes / count});
    }
  }
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const Piece& a, const Piece& b) { return a.middle < b.middle; });
  return pieces;
}

Parts cut_by_shares(const GradientLayout& layout, const std::vector<SumTree>& trees,
                    std::uint64_t part_bytes) {
  std::uint64_t total = 0;
  for (const DTypeRun& run : layout.runs) {
    total += run.bytes;
  }
  const std::vector<Piece> pieces =
      pieces_of(trees, static_cast<double>(total), static_cast<double>(part_bytes));
  Parts parts;
  double end = 0, run_begin = 0;
  std::size_t run = 0;
  std::uint64_t taken = 0; // of the run
  for (const Piece& piece : pieces) {
    end += piece.bytes;
    while (run < layout.runs.size()) {
      const DTypeRun& in = layout.runs[run];
      const double until = std::max(0.0, end - run_begin) / static_cast<double>(k_alignment);
      const std::uint64_t stop =
          &piece == &pieces.back()
              ? in.bytes
              : std::min(in.bytes, k_alignment * static_cast<std::uint64_t>(std::llround(until)));
      if (stop > taken) {
        parts.offset_bytes.push_back(in.offset_bytes + taken);
        parts.bytes.push_back(stop - taken);
        parts.tree.push_back(piece.tree);
        taken = stop;
      }
      if (taken < in.bytes) {
        break;
      }
      run_begin += static_cast<double>(in.bytes);
      taken = 0;
      ++run;
    }
  }
  return parts;
}

/// Each part to the tree that is farthest behind its share.
void deal(Parts& parts, const std::vector<SumTree>& trees) {
  std::vector<double> given(trees.size(), 0);
  for (const std::uint64_t bytes : parts.bytes) {
    std::size_t to = 0;
    const auto after = [&](std::size_t tree) {
      return (given[tree] + static_cast<double>(bytes)) / trees[tree].share;
    };
    for (std::size_t t = 1; t < trees.size(); ++t) {
      to = after(t) < after(to) ? t : to;
    }
    given[to] += static_cast<double>(bytes);
    parts.tree.push_back(to);
  }
}

} // namespace

Parts cut_for_trees(const GradientLayout& layout, const Workload& workload,
                    const std::vector<SumTree>& trees, std::uint64_t part_bytes, Cutting cutting) {
  if (cutting == Cutting::fused && part_bytes >= k_alignment) {
    return cut_by_shares(layout, trees, part_bytes);
  }
  Parts parts = cut(layout, workload, part_bytes, cutting, 1);
  deal(parts, trees);
  return parts;
}

void give_lanes(Plan& plan, std::uint64_t lanes) {
  std::vector<std::uint64_t> turn(plan.trees.size(), 0);
  for (const std::uint64_t tree : plan.parts.tree) {
    plan.parts.lane.push_back(turn[tree]++ % lanes);
    plan.parts.server.push_back(plan.trees[tree].root());
  }
}

} // namespace reckon
