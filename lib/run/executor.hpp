// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "movers/mover.hpp"
#include "run/delays.hpp"
#include "schedule/schedule.hpp"
#include "schedule/timeline.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace reckon {

/// The use of one lane's time in one iteration, in nanoseconds.
struct LaneTimes {
  /// Processor time of the summation kernels (copies, conversions) and of the optimizer; for work
  /// of a GPU, the time of handing it over.
  std::int64_t reduce_ns = 0, update_ns = 0;
  std::int64_t wait_ns = 0; ///< asleep: nothing was ready
  std::int64_t total_ns = 0;
};

/// Runs one lane's program over one mover lane, iteration after iteration, without knowledge of
/// strategies or of the memory's place (the lane's engine has it). An op starts when its
/// dependencies are done, writes before sums (they are quick to post and keep the link busy),
/// earlier ops first. One thread; no locks; noexcept functions here allocate nothing: the text of
/// an error is made when somebody asks for it.
class LaneExecutor {
public:
  /// `buffers` are the rank's, in the schedule's order; all must outlive the executor. `delays`
  /// serves the program's delays; null: their time passes.
  LaneExecutor(const LaneProgram& program, MoverLane& lane,
               std::span<const std::span<std::byte>> buffers,
               std::unique_ptr<Delays> delays = nullptr);

  /// Forgets the last iteration. All ops are open again, the optimizer's as this step (from 1 on).
  void start(std::uint64_t step) noexcept;
  /// Handles completions, then does at most one op. False: there is nothing to do now.
  bool advance() noexcept;
  [[nodiscard]] bool done() const noexcept { return m_left == 0; }
  [[nodiscard]] bool failed() const noexcept { return m_fault != Fault::none; }
  /// The failure in words; empty without a failure.
  [[nodiscard]] std::string error() const;

  /// start(), then advance() until all is done, something failed, or `stop` is set (checked
  /// whenever nothing is ready, at least every 20 ms). Sleeps when there is nothing to do.
  LaneTimes run(std::uint64_t step, const std::atomic<bool>& stop) noexcept;
  /// Begin and end of each op in the last iteration: monotonic_ns(), read where the executor reads
  /// the clock anyway, after completions and local ops.
  [[nodiscard]] const std::vector<OpSpan>& spans() const noexcept { return m_spans; }
  /// For a message about a lane that did not finish: its first open op.
  [[nodiscard]] std::string first_open_op() const;

private:
  void complete(std::uint32_t op) noexcept;
  void make_ready(std::uint32_t op) noexcept;
  void handle(const Completion& completion) noexcept;
  [[nodiscard]] bool is_as_sent(const Op& await, const Completion& arrived) const noexcept;
  void begin(std::uint32_t op) noexcept { m_spans[op].begin_ns = m_now_ns; }
  bool post_write() noexcept;
  bool compute() noexcept;
  [[nodiscard]] LocalOp local(const Op& op) noexcept;
  bool end_delays() noexcept;
  void wait_until(std::int64_t then_ns, std::int64_t now_ns, int bell) noexcept;
  [[nodiscard]] std::byte* at(Slice slice) const noexcept {
    return m_buffers[slice.buffer].data() + slice.offset;
  }

  const LaneProgram& m_program;
  MoverLane& m_lane;
  std::span<const std::span<std::byte>> m_buffers;
  std::vector<std::uint32_t> m_successor_begin, m_successors; ///< the ops that wait for each op
  std::vector<std::uint32_t> m_missing_at_start,
      m_missing; ///< open dependencies; an await counts its arrival
  std::vector<std::pair<std::uint32_t, std::uint32_t>> m_tags; ///< (tag, await), sorted
  std::vector<std::uint32_t> m_ready_writes, m_ready_sums;     ///< heaps, the earliest op on top
  std::unique_ptr<Delays> m_delays;
  std::size_t m_open_delays = 0; ///< without delays nobody reads the clock
  std::int64_t m_now_ns =
      0; ///< the time from which an op that becomes ready could run: a delay's end, or now
  std::vector<const void*> m_operands;
  std::vector<bool> m_done;
  std::vector<OpSpan> m_spans;
  std::size_t m_left = 0;
  std::int64_t m_reduce_ns = 0, m_update_ns = 0;
  std::uint64_t m_step = 0;
  enum class Fault : std::uint8_t {
    none,
    lane,        ///< MoverLane::error() says why
    nobodys_tag, ///< a write arrived with m_fault_tag, which no op awaits
    changed,     ///< the write with m_fault_tag has other bytes than it was sent with
  };
  Fault m_fault = Fault::none;
  std::uint32_t m_fault_tag = 0;
};

} // namespace reckon
