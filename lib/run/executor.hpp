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

/// Where one lane's time went in one iteration, in nanoseconds.
struct LaneTimes {
  /// Processor time of the summation kernels (copies, conversions) and of the optimizer; of what a
  /// GPU does, the time of handing it over.
  std::int64_t reduce_ns = 0, update_ns = 0;
  std::int64_t wait_ns = 0; ///< asleep: nothing was ready
  std::int64_t total_ns = 0;
};

/// Runs one lane's program over one mover lane, iteration after iteration. It knows nothing of
/// strategies, nor of where the memory is (the lane's engine does): an op starts when its
/// dependencies are done, writes before sums (they are quick to post and keep the link busy),
/// earlier ops first. One thread; no locks; what is noexcept here allocates nothing: words for what
/// went wrong are made when somebody asks for them.
class LaneExecutor {
public:
  /// `buffers` are the rank's, in the schedule's order; all must outlive the executor. `delays`
  /// serves those of the program; null: their time passes.
  LaneExecutor(const LaneProgram& program, MoverLane& lane,
               std::span<const std::span<std::byte>> buffers,
               std::unique_ptr<Delays> delays = nullptr);

  /// Forgets the last iteration. Every op is to do again, the optimizer's as that step (from 1 on).
  void start(std::uint64_t step) noexcept;
  /// Handles completions, then does at most one op. False: there is nothing to do now.
  bool advance() noexcept;
  [[nodiscard]] bool done() const noexcept { return m_left == 0; }
  [[nodiscard]] bool failed() const noexcept { return m_fault != Fault::none; }
  /// What failed, in words; empty when nothing has.
  [[nodiscard]] std::string error() const;

  /// start(), then advance() until all is done, something failed, or `stop` is set (looked at
  /// whenever nothing is ready, at least every 20 ms). Sleeps when there is nothing to do.
  LaneTimes run(std::uint64_t step, const std::atomic<bool>& stop) noexcept;
  /// When each op of the last iteration began and ended: monotonic_ns(), read where the executor
  /// looks at the clock anyway, after completions and local ops.
  [[nodiscard]] const std::vector<OpSpan>& spans() const noexcept { return m_spans; }
  /// For a message about a lane that did not finish: the first op that is not done.
  [[nodiscard]] std::string first_open_op() const;

private:
  void complete(std::uint32_t op) noexcept;
  void make_ready(std::uint32_t op) noexcept;
  void handle(const Completion& completion) noexcept;
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
  std::vector<std::uint32_t> m_successor_begin, m_successors; ///< who waits for an op
  std::vector<std::uint32_t> m_missing_at_start,
      m_missing; ///< dependencies not done; an await counts its arrival
  std::vector<std::pair<std::uint32_t, std::uint32_t>> m_tags; ///< (tag, await), sorted
  std::vector<std::uint32_t> m_ready_writes, m_ready_sums;     ///< heaps, the earliest op on top
  std::unique_ptr<Delays> m_delays;
  std::size_t m_open_delays = 0; ///< so that without any nobody looks at the clock
  std::int64_t m_now_ns = 0;     ///< since when what becomes ready could be: a delay's end, or now
  std::vector<const void*> m_operands;
  std::vector<bool> m_done;
  std::vector<OpSpan> m_spans;
  std::size_t m_left = 0;
  std::int64_t m_reduce_ns = 0, m_update_ns = 0;
  std::uint64_t m_step = 0;
  enum class Fault : std::uint8_t {
    none,
    lane,       ///< MoverLane::error() says why
    nobodys_tag ///< a write arrived with m_fault_tag, which nobody waits for
  };
  Fault m_fault = Fault::none;
  std::uint32_t m_fault_tag = 0;
};

} // namespace reckon
