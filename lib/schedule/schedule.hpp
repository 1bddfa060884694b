// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/collective.hpp"
#include "core/dtype.hpp"
#include "core/optimizer.hpp"
#include "core/slice.hpp"
#include "core/stores.hpp"
#include "core/units.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace reckon {

/// One step of a rank's program.
enum class OpKind : std::uint8_t {
  write,  ///< one-sided write of `bytes` from `source` here to `destination` at rank `peer`,
          ///< announced there as `tag`; done when the source may be overwritten
  await,  ///< the write from `peer` announced as `tag` has arrived
  reduce, ///< `destination` = elementwise sum of LaneProgram::sources(op), in that order; `bytes`
          ///< of each operand
  copy,   ///< `bytes` from `source` to `destination`, both here
  update, ///< one step of `optimizer` in place on the parameters at `destination`;
          ///< LaneProgram::sources(op) are the gradient's sum and the optimizer's states; all fp32
  to_fixed,   ///< fp32 at `source` to whole numbers at `destination`: times 2^exponent, rounded to
              ///< nearest, held within +-limit
  from_fixed, ///< and back
  narrow,     ///< fp32 at `source` rounded to `dtype` at `destination`; `bytes` of the latter
  widen,      ///< `dtype` at `source` as fp32 at `destination`; `bytes` of the former
  subtract,   ///< fp32: `destination` = `source` - `destination`; turns old parameters into a delta
  delay,      ///< `duration_ns` pass from when it may start; keeps no lane: a layer's pass on a GPU
  sum_in_place, ///< each of LaneProgram::sources(op) = elementwise sum of all of them, in that
                ///< order; `bytes` of each. They may be peers' (peer_buffers)
};

struct Op {
  OpKind kind = OpKind::write;
  Optimizer optimizer = Optimizer::sgd; ///< update
  Stores stores = Stores::cached;       ///< reduce: how the sum is written
  std::int16_t exponent = 0;            ///< to_fixed, from_fixed
  DType dtype = DType::fp32;            ///< reduce, sum_in_place, narrow, widen
  std::uint32_t peer = 0;               ///< write: receiver; await: sender
  std::uint32_t tag = 0;          ///< write, await: unique among the writes to one lane of one rank
  std::uint32_t part = 0;         ///< the plan's part that this works on
  std::uint32_t first_source = 0; ///< reduce, update, sum_in_place
  std::uint32_t source_count = 0; ///< reduce, update, sum_in_place
  std::int32_t limit = 0;         ///< to_fixed
  Slice source{}, destination{};
  std::uint64_t bytes = 0;      ///< await: 0, or expect_arrivals()
  std::int64_t duration_ns = 0; ///< delay
};

/// "write", "await", ...
[[nodiscard]] std::string_view name_of(OpKind kind);

/// Bytes that an op reads at its source, and writes at its destination.
[[nodiscard]] constexpr std::uint64_t source_bytes(const Op& op) {
  return op.kind == OpKind::narrow ? op.bytes / size_of(op.dtype) * size_of(DType::fp32) : op.bytes;
}
[[nodiscard]] constexpr std::uint64_t destination_bytes(const Op& op) {
  return op.kind == OpKind::widen ? op.bytes / size_of(op.dtype) * size_of(DType::fp32) : op.bytes;
}

/// The program of one lane of one rank in an iteration: a graph. An op may start when all its
/// dependencies are done; of the ready ops the earliest in `ops` goes first. Build it with
/// append(), dependencies before dependents.
class LaneProgram {
public:
  /// Adds an op that depends on the ops named (indices returned by earlier calls). Returns its
  /// index.
  std::uint32_t append(const Op& op, std::span<const std::uint32_t> depends_on);
  /// Adds a write of part `part` to rank `peer`, announced there as `tag`.
  std::uint32_t append_write(std::uint32_t part, std::uint32_t peer, std::uint32_t tag,
                             Slice source, Slice destination, std::uint64_t bytes,
                             std::span<const std::uint32_t> depends_on);
  /// Adds the await of a write of part `part` from rank `peer`, announced as `tag`.
  std::uint32_t append_await(std::uint32_t part, std::uint32_t peer, std::uint32_t tag);
  /// Says of an await what arrives then: expect_arrivals().
  void expect(std::uint32_t await, Slice destination, std::uint64_t bytes);
  /// Makes every delay `factor` times as long; returns how many there are.
  std::size_t scale_delays(double factor);
  /// Adds an op over `sources`: a reduction, an update or a sum in place.
  std::uint32_t append_over(const Op& op, std::span<const Slice> sources,
                            std::span<const std::uint32_t> depends_on);
  /// Adds an op of another program again, with other dependencies.
  std::uint32_t append_again(const LaneProgram& in, const Op& op,
                             std::span<const std::uint32_t> depends_on);
  /// Adds a reduction over `sources`.
  std::uint32_t append_reduce(Op op, std::span<const Slice> sources,
                              std::span<const std::uint32_t> depends_on);

  [[nodiscard]] std::span<const Op> ops() const { return m_ops; }
  [[nodiscard]] std::span<const Slice> sources(const Op& op) const {
    return std::span<const Slice>(m_sources).subspan(op.first_source, op.source_count);
  }
  [[nodiscard]] std::span<const std::uint32_t> dependencies(std::size_t op) const {
    return std::span<const std::uint32_t>(m_dependencies)
        .subspan(m_begin[op], m_begin[op + 1] - m_begin[op]);
  }

private:
  std::vector<Op> m_ops;
  std::vector<Slice> m_sources;
  std::vector<std::uint32_t> m_begin{0};
  std::vector<std::uint32_t> m_dependencies;
};

/// Buffer 0 holds the rank's gradient as it is sent, and its sum.
inline constexpr std::uint32_t k_gradient_buffer = 0;

/// A stretch of the model's parameters (fp32) that a rank holds from iteration to iteration. The
/// rest of the rank's memory except its optimizer states means nothing between iterations.
struct ParameterRun {
  Slice at;                          ///< place of the parameters here
  std::uint64_t gradient_offset = 0; ///< place of their gradient
  std::uint64_t bytes = 0;
  bool latest = false; ///< asynchronous: these are the latest, not a worker's copy of them
};

/// A stretch of one array that training evolves (the parameters or an optimizer's states), as a
/// rank holds it.
struct KeptRun {
  std::uint32_t array = 0;           ///< 0: parameters; from 1 on: the optimizer's states
  std::uint64_t gradient_offset = 0; ///< place of their gradient
  std::uint64_t bytes = 0;
  Slice at;
  auto operator<=>(const KeptRun&) const = default;
};

/// A kept stretch that this rank saves for the whole job, and the place that an iteration that
/// saves copies it to before it changes (snapshot.hpp).
struct SavedRun {
  KeptRun kept;
  Slice copy;
  auto operator<=>(const SavedRun&) const = default;
};

/// A buffer of another rank.
struct PeerBuffer {
  std::uint32_t rank = 0, buffer = 0;
  auto operator<=>(const PeerBuffer&) const = default;
};

struct RankProgram {
  /// Holds the rank's gradient when an iteration begins, and its sum when that is over. Another one
  /// than k_gradient_buffer where gradients are sent in another type (Schedule::wire).
  std::uint32_t gradient_buffer = k_gradient_buffer;
  std::vector<std::uint64_t> buffer_bytes;
  /// Peers' memory that sum_in_place works on directly, where ranks share it: buffer number
  /// buffer_bytes.size() + i in a slice is peer_buffers[i].
  std::vector<PeerBuffer> peer_buffers{};
  std::vector<LaneProgram> lanes;
  std::vector<ParameterRun> parameters;
  std::vector<std::uint32_t> state_buffers; ///< optimizer states: zeros at first, then kept
  // Empty unless the schedule saves or restores:
  std::vector<KeptRun> kept; ///< everything that is kept from one iteration to the next
  std::vector<SavedRun> saved;
  /// Whether a buffer's content is kept from one iteration to the next.
  [[nodiscard]] bool keeps(std::uint32_t buffer) const;
};

/// What holds when an iteration is over.
enum class Outcome : std::uint8_t {
  sums,       ///< every worker's gradient is the sum over all workers
  parameters, ///< all parameters have made one step of the optimizer with that sum
  latest,     ///< asynchronous: the latest parameters hold every change of every worker once, each
              ///< worker's hold all of its own and of the others' what there was
  fixed_sums, ///< sums, as exact as FixedPointRule allows
  restored,   ///< every rank holds of parameters and states what the ranks that save them had
};

/// How gradients become whole numbers: docs/equations.md, 22.
struct FixedPointRule {
  int exponent = 0;
  std::int32_t limit = 0;
  double gradient_bound = 0; ///< magnitude that no gradient exceeds
};

/// A stretch of the gradient, inside one run, with its root at a rank: its sum ends there, or all
/// get the rank's data.
struct OwnedRun {
  std::uint32_t rank = 0;
  std::uint64_t offset_bytes = 0, bytes = 0;
  auto operator<=>(const OwnedRun&) const = default;
};

/// A whole job: every rank's program of one iteration. The executor runs it, the simulator plays
/// it, the checker proves its properties.
struct Schedule {
  std::vector<DTypeRun> runs; ///< the same on every worker
  std::vector<bool> worker;   ///< by rank: has gradients and must end with the outcome
  std::vector<RankProgram> ranks;
  Outcome outcome = Outcome::sums;
  Optimizer optimizer = Optimizer::sgd; ///< for all updates
  std::uint32_t steps = 1;              ///< of each worker in an iteration: Outcome::latest
  FixedPointRule fixed;                 ///< Outcome::fixed_sums
  /// Gradients of fp32 are sent and summed as this; `runs` are then of k_gradient_buffer.
  std::optional<DType> wire{};
  /// For Outcome::sums: which rank ends with which sums. The rest of a rank's gradient then means
  /// nothing.
  Collective collective = Collective::all_reduce;
  std::vector<OwnedRun> owned; ///< ascending, every byte of the runs once; all-reduce: empty

  /// The runs in RankProgram::gradient_buffer: fp32 instead of the wire's type.
  [[nodiscard]] std::vector<DTypeRun> gradient_runs() const;
};

/// The location of a slice of a rank's program: a buffer of the rank itself, or one of a peer. A
/// number outside both stays as it is.
struct Located {
  std::uint32_t rank = 0;
  Slice at;
};
[[nodiscard]] Located locate(const Schedule& schedule, std::uint32_t rank, Slice slice);

/// Makes all delays of one rank `factor` times as long: a straggler. Returns how many it has.
std::size_t slow_down(Schedule& schedule, std::size_t rank, double factor);

/// Gives each await the place and the length of its write, whose checksum the executor compares
/// with what has arrived.
void expect_arrivals(Schedule& schedule);

/// The delays of the lane of a rank with the most of them: the rank's passes.
[[nodiscard]] Seconds delay_seconds(const RankProgram& rank);

/// Bytes that each rank sends to and receives from others in one iteration, including those that a
/// sum in place reads and writes at a peer.
struct Traffic {
  std::vector<std::uint64_t> egress_bytes, ingress_bytes;
};
[[nodiscard]] Traffic traffic_of(const Schedule& schedule);

} // namespace reckon
