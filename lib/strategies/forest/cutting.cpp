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

/// A tree's part, and its place among its tree's, in [0, 1].
struct Piece {
  double middle = 0;
  std::size_t tree = 0;
  double bytes = 0;
  std::uint64_t offset = 0; ///< of the part, in the buffer
};

std::uint64_t bytes_of(const std::vector<DTypeRun>& runs) {
  std::uint64_t total = 0;
  for (const DTypeRun& run : runs) {
    total += run.bytes;
  }
  return total;
}

void take_turns(std::vector<Piece>& pieces) {
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const Piece& a, const Piece& b) { return a.middle < b.middle; });
}

/// The gradient by root.
std::vector<std::vector<DTypeRun>> stretches(const GradientLayout& layout, std::uint64_t roots) {
  if (roots == 1) {
    return {layout.runs};
  }
  const std::uint64_t total = bytes_of(layout.runs);
  std::uint64_t before = 0;
  std::vector<std::vector<DTypeRun>> out(roots);
  for (const DTypeRun& run : layout.runs) {
    const auto end_of = [&](std::uint64_t nths) { // in this run
      const std::uint64_t end = total / roots * nths + total % roots * nths / roots;
      const std::uint64_t within = std::clamp(end, before, before + run.bytes) - before;
      return within / size_of(run.dtype) * size_of(run.dtype);
    };
    for (std::uint64_t k = 0; k < roots; ++k) {
      const std::uint64_t begin = end_of(k), end = end_of(k + 1);
      if (begin < end) {
        out[k].push_back({run.offset_bytes + begin, end - begin, run.dtype});
      }
    }
    before += run.bytes;
  }
  return out;
}

/// One stretch of the gradient, which is that of these of the trees: their shares, times `whole`,
/// add up to 1.
std::vector<Piece> cut_stretch(const std::vector<DTypeRun>& runs, const std::vector<SumTree>& all,
                               const std::vector<std::size_t>& trees, double whole, double most) {
  const auto total = static_cast<double>(bytes_of(runs)), step = static_cast<double>(k_alignment);
  std::vector<Piece> pieces, out;
  for (const std::size_t t : trees) {
    const double bytes = all[t].share * whole * total;
    double count = std::max(1.0, std::ceil(bytes / most * (1 - k_rounding)));
    if (bytes / count > most - step &&
        std::fmod(most, step) + most - bytes / count > k_rounding * most) {
      ++count; // rounding would exceed the size
    }
    for (double i = 0; i < count; ++i) {
      pieces.push_back({(i + 0.5) / count, t, bytes / count});
    }
  }
  take_turns(pieces);
  double end = 0, run_begin = 0;
  std::size_t run = 0;
  std::uint64_t taken = 0; // of the run
  for (const Piece& piece : pieces) {
    end += piece.bytes;
    while (run < runs.size()) {
      const DTypeRun& in = runs[run];
      const double until = std::max(0.0, end - run_begin) / step;
      const std::uint64_t stop =
          &piece == &pieces.back()
              ? in.bytes
              : std::min(in.bytes, k_alignment * static_cast<std::uint64_t>(std::llround(until)));
      if (stop > taken) {
        out.push_back(
            {piece.middle, piece.tree, static_cast<double>(stop - taken), in.offset_bytes + taken});
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
  return out;
}

Parts cut_by_shares(const GradientLayout& layout, const std::vector<SumTree>& trees,
                    std::uint64_t part_bytes, std::size_t roots) {
  const std::vector<std::vector<DTypeRun>> by_root = stretches(layout, roots);
  std::vector<Piece> pieces;
  for (std::size_t root = 0; root < roots; ++root) {
    std::vector<std::size_t> own;
    for (std::size_t t = 0; t < trees.size(); ++t) {
      if (roots == 1 || trees[t].root() == root) {
        own.push_back(t);
      }
    }
    const std::vector<Piece> cut = cut_stretch(
        by_root[root], trees, own, static_cast<double>(roots), static_cast<double>(part_bytes));
    pieces.insert(pieces.end(), cut.begin(), cut.end());
  }
  if (roots > 1) {
    take_turns(pieces);
  }
  Parts parts;
  for (const Piece& piece : pieces) {
    parts.offset_bytes.push_back(piece.offset);
    parts.bytes.push_back(static_cast<std::uint64_t>(piece.bytes));
    parts.tree.push_back(piece.tree);
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
                    const std::vector<SumTree>& trees, std::uint64_t part_bytes, Cutting cutting,
                    std::size_t roots) {
  if (cutting == Cutting::fused && part_bytes >= k_alignment) {
    return cut_by_shares(layout, trees, part_bytes, roots);
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
