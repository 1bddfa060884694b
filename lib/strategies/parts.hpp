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
  fused, ///< neighbouring tensors of one element type are one run of bytes, cut into nearly equal,
         ///< page-aligned parts
  tensors, ///< each tensor by itself, as in BytePS: equal pieces of at most the part size
};

/// Throws Error{usage} where parts are asked for that are shorter than 64 bytes.
void check_part_bytes(std::uint64_t part_bytes);

/// Pieces of at most `part_bytes` that cover the layout's runs exactly, in gradient order. Only
/// offset and bytes are set. `multiple_of`: for `fused`, the number of parts becomes a multiple of
/// it if there are at least that many, so that shares in those proportions are exact. `part_bytes`
/// must be at least 64 (Error{usage}).
[[nodiscard]] Parts cut(const GradientLayout& layout, const Workload& workload,
                        std::uint64_t part_bytes, Cutting cutting, std::uint64_t multiple_of);

/// When a rank that owns this number of bytes is done: rises with the bytes.
using RankCost = std::function<double(std::size_t rank, double bytes)>;

/// Gives each part to one of the ranks with a share, so that the last rank is done as early as
/// possible. Equal parts (except the last): exactly the best (each part in turn to the rank that
/// would be done first), interleaved so that at any time every rank owns its proportion of the sent
/// parts. Unequal parts: the better of that and longest first. BytePS's hashing is tried as well,
/// so the result is never worse than it. Deterministic. Returns the greatest cost of a rank.
double assign_servers(Parts& parts, std::span<const double> shares, const RankCost& cost);

/// The model's passes for a play: `forward_seconds` and `backward_seconds` spread over the tensors
/// by the seconds of the workload's layers, else by their operations, else evenly.
[[nodiscard]] Passes passes_of(const GradientLayout& layout, const Workload& workload,
                               double forward_seconds, double backward_seconds);

/// Things that are ready at `ready_s` (ascending) and take `takes_s` each are served one after
/// another, always the last one that is ready. Returns their order.
[[nodiscard]] std::vector<std::size_t> latest_first(std::span<const double> ready_s,
                                                    std::span<const double> takes_s);

/// The best order in which a link that moves `bytes_per_s` of gradient takes the parts: of the
/// parts whose backward pass is done, the one whose forward pass comes first (BytePS 6.1,
/// ByteScheduler). The order is fixed in the plan, the same on every rank: a priority decided anew
/// at each rank would make servers wait for the last of them.
[[nodiscard]] std::vector<std::size_t> priority_order(const Parts& parts, const Passes& passes,
                                                      double bytes_per_s);
/// Puts parts without server and lane into that order.
void order_by_priority(Parts& parts, const Passes& passes, double bytes_per_s);

/// Whether parts go in the order of the backward pass.
[[nodiscard]] bool in_gradient_order(const Parts& parts);

/// BytePS 4.1: parts hashed into slots, which the ranks own in proportion to their shares. For
/// comparison.
void assign_by_hash(Parts& parts, std::span<const double> shares);

/// Gives each part a lane: the lanes get equal bytes of every server, longest part first (PHub's
/// balance).
void assign_lanes(Parts& parts, std::size_t servers, std::uint64_t lanes);

/// The plan with its first `count` parts only, for a play of a beginning.
[[nodiscard]] Plan beginning(const Plan& plan, std::size_t count);

/// The element type of each part.
[[nodiscard]] std::vector<DType> part_dtypes(const Plan& plan);

/// Bytes owned by each rank.
[[nodiscard]] std::vector<double> loads_of(const Parts& parts, std::size_t ranks);

} // namespace reckon
