// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "documents/workload.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace reckon {

/// How tensors become parts.
enum class Cutting {
  fused,   ///< neighbouring tensors of one element type are one run of bytes, cut into nearly equal, page-aligned parts
  tensors, ///< each tensor by itself, as BytePS does: equal pieces, none above the part size
};

/// Pieces of at most `part_bytes` that cover the layout's runs exactly, in gradient order. Only offset and bytes are set.
/// `multiple_of`: for `fused`, the number of parts becomes a multiple of it where there are at least that many, so that
/// shares in those proportions come out exactly. `part_bytes` must be at least 64 (Error{usage}).
[[nodiscard]] Parts cut(const GradientLayout& layout, const Workload& workload, std::uint64_t part_bytes, Cutting cutting,
                        std::uint64_t multiple_of);

/// Gives each part to a rank in proportion to `shares`, interleaved, so that at any time every rank owns its share of
/// what has been sent. Three ways are tried (in order to the rank furthest behind; longest first; hashed into slots as
/// BytePS describes) and the one with the least `time_of(loads)` is kept, the first where they are equal.
/// Returns that time. Deterministic.
double assign_servers(Parts& parts, std::span<const double> shares,
                      const std::function<double(std::span<const double>)>& time_of);

/// BytePS 4.1: parts hashed into slots, which the ranks own in proportion to their shares. For comparison.
void assign_by_hash(Parts& parts, std::span<const double> shares);

/// Gives each part a lane: of every server the lanes get equal bytes, longest part first (PHub's balance).
void assign_lanes(Parts& parts, std::size_t servers, std::uint64_t lanes);

/// Bytes owned by each rank.
[[nodiscard]] std::vector<double> loads_of(const Parts& parts, std::size_t ranks);

} // namespace reckon
