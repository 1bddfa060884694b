// SPDX-License-Identifier: Apache-2.0
#include "run/executor.hpp"

#include "core/clock.hpp"
#include "movers/checksum.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <thread>

namespace reckon {
namespace {

constexpr std::chrono::milliseconds k_longest_sleep{20};
/// A lane that finds nothing to do lets others run and looks again, so often before it sleeps. What
/// it waits for is mostly the work of a rank that shares its processor, and a transport that nobody
/// wakes (libfabric's shm) sleeps blindly: there servers are 1.5 times as fast with it.
constexpr int k_looks = 100;

/// Without what other lanes on this processor took in between.
std::int64_t thread_cpu_ns() noexcept {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

void push(std::vector<std::uint32_t>& heap, std::uint32_t op) noexcept {
  heap.push_back(op); // capacity was reserved
  std::push_heap(heap.begin(), heap.end(), std::greater<>());
}

std::uint32_t pop(std::vector<std::uint32_t>& heap) noexcept {
  std::pop_heap(heap.begin(), heap.end(), std::greater<>());
  const std::uint32_t op = heap.back();
  heap.pop_back();
  return op;
}

/// Of an op that the lane's engine does.
LocalOp::Kind local_kind(OpKind kind) noexcept {
  switch (kind) {
  case OpKind::subtract:
    return LocalOp::Kind::subtract;
  case OpKind::to_fixed:
    return LocalOp::Kind::to_fixed;
  case OpKind::from_fixed:
    return LocalOp::Kind::from_fixed;
  case OpKind::narrow:
    return LocalOp::Kind::narrow;
  case OpKind::widen:
    return LocalOp::Kind::widen;
  case OpKind::reduce:
    return LocalOp::Kind::sum;
  case OpKind::update:
    return LocalOp::Kind::update;
  case OpKind::sum_in_place:
    return LocalOp::Kind::sum_in_place;
  case OpKind::copy:
  case OpKind::delay:
  case OpKind::write:
  case OpKind::await:
    break; // the last three: never among these
  }
  return LocalOp::Kind::copy;
}

} // namespace

LaneExecutor::LaneExecutor(const LaneProgram& program, MoverLane& lane,
                           std::span<const std::span<std::byte>> buffers,
                           std::unique_ptr<Delays> delays)
    : m_program(program), m_lane(lane), m_buffers(buffers),
      m_delays(delays ? std::move(delays) : std::make_unique<TimedDelays>(program)) {
  const std::size_t count = program.ops().size();
  m_successor_begin.assign(count + 1, 0);
  m_missing_at_start.assign(count, 0);
  std::size_t operands = 1;
  for (std::size_t i = 0; i < count; ++i) {
    const Op& op = program.ops()[i];
    for (const std::uint32_t d : program.dependencies(i)) {
      ++m_successor_begin[d + 1];
      ++m_missing_at_start[i];
    }
    if (op.kind == OpKind::await) {
      ++m_missing_at_start[i];
      m_tags.emplace_back(op.tag, static_cast<std::uint32_t>(i));
    }
    operands = std::max<std::size_t>(operands, op.source_count);
  }
  for (std::size_t i = 0; i < count; ++i) {
    m_successor_begin[i + 1] += m_successor_begin[i];
  }
  m_successors.resize(m_successor_begin.back());
  std::vector<std::uint32_t> next(m_successor_begin.begin(), m_successor_begin.end() - 1);
  for (std::size_t i = 0; i < count; ++i) {
    for (const std::uint32_t d : program.dependencies(i)) {
      m_successors[next[d]++] = static_cast<std::uint32_t>(i);
    }
  }
  std::sort(m_tags.begin(), m_tags.end());
  m_spans.resize(count);
  m_missing.resize(count);
  m_done.resize(count);
  m_ready_writes.reserve(count);
  m_ready_sums.reserve(count);
  m_operands.resize(operands);
}

void LaneExecutor::start(std::uint64_t step) noexcept {
  m_ready_writes.clear();
  m_ready_sums.clear();
  m_delays->reset();
  m_open_delays = 0;
  m_now_ns = monotonic_ns();
  m_fault = Fault::none;
  m_reduce_ns = m_update_ns = 0;
  m_step = step;
  std::copy(m_missing_at_start.begin(), m_missing_at_start.end(), m_missing.begin());
  std::fill(m_done.begin(), m_done.end(), false);
  m_left = m_missing.size();
  for (std::uint32_t i = 0; i < m_missing.size(); ++i) {
    if (m_missing[i] == 0) {
      make_ready(i);
    }
  }
}

void LaneExecutor::make_ready(std::uint32_t op) noexcept {
  switch (m_program.ops()[op].kind) {
  case OpKind::write:
    push(m_ready_writes, op);
    break;
  case OpKind::reduce:
  case OpKind::copy:
  case OpKind::update:
  case OpKind::subtract:
  case OpKind::to_fixed:
  case OpKind::from_fixed:
  case OpKind::narrow:
  case OpKind::widen:
  case OpKind::sum_in_place:
    push(m_ready_sums, op);
    break;
  case OpKind::await: // its arrival was the last thing missing
    begin(op);
    complete(op);
    break;
  case OpKind::delay:
    begin(op);
    m_delays->start(op, m_now_ns);
    ++m_open_delays;
    break;
  }
}

void LaneExecutor::complete(std::uint32_t op) noexcept {
  m_done[op] = true;
  m_spans[op].end_ns = m_now_ns;
  --m_left;
  for (std::uint32_t i = m_successor_begin[op]; i < m_successor_begin[op + 1]; ++i) {
    if (--m_missing[m_successors[i]] == 0) {
      make_ready(m_successors[i]);
    }
  }
}

bool LaneExecutor::is_as_sent(const Op& await, const Completion& arrived) const noexcept {
  return !arrived.checksum ||
         *arrived.checksum == checksum_of({at(await.destination), await.bytes});
}

void LaneExecutor::handle(const Completion& completion) noexcept {
  switch (completion.kind) {
  case Completion::Kind::sent:
  case Completion::Kind::computed:
    complete(static_cast<std::uint32_t>(completion.id));
    break;
  case Completion::Kind::arrived: {
    const auto it = std::lower_bound(m_tags.begin(), m_tags.end(), std::pair(completion.tag, 0U));
    if (it == m_tags.end() || it->first != completion.tag || m_missing[it->second] == 0) {
      m_fault = Fault::nobodys_tag;
      m_fault_tag = completion.tag;
    } else if (!is_as_sent(m_program.ops()[it->second], completion)) {
      m_fault = Fault::changed;
      m_fault_tag = completion.tag;
    } else if (--m_missing[it->second] == 0) {
      make_ready(it->second);
    }
    break;
  }
  case Completion::Kind::failed:
    m_fault = Fault::lane;
    break;
  }
}

bool LaneExecutor::post_write() noexcept {
  const std::uint32_t index = m_ready_writes.front();
  const Op& op = m_program.ops()[index];
  begin(index);
  if (!m_lane.write(static_cast<int>(op.peer), op.source, op.destination, op.bytes, op.tag,
                    index)) {
    return false;
  }
  pop(m_ready_writes);
  return true;
}

bool LaneExecutor::compute() noexcept {
  const std::uint32_t index = m_ready_sums.front();
  const Op& op = m_program.ops()[index];
  begin(index);
  const std::int64_t start = thread_cpu_ns();
  const bool steps = op.kind == OpKind::update || op.kind == OpKind::subtract;
  const Engine::Started started = m_lane.engine().start(local(op), index);
  if (started == Engine::Started::full) {
    return false;
  }
  pop(m_ready_sums);
  (steps ? m_update_ns : m_reduce_ns) += thread_cpu_ns() - start;
  m_now_ns = monotonic_ns();
  if (started == Engine::Started::done) {
    complete(index);
  } else if (started == Engine::Started::failed) {
    m_fault = Fault::lane;
  }
  return true;
}

LocalOp LaneExecutor::local(const Op& op) noexcept {
  LocalOp local;
  local.dtype = op.dtype;
  local.stores = op.stores;
  local.optimizer = op.optimizer;
  local.step = m_step;
  local.exponent = op.exponent;
  local.limit = op.limit;
  local.to = at(op.destination);
  local.bytes = op.bytes;
  local.kind = local_kind(op.kind);
  // An op over several sources names them; the others have one.
  const std::span<const Slice> sources =
      op.source_count > 0 ? m_program.sources(op) : std::span(&op.source, 1);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    m_operands[i] = at(sources[i]);
  }
  local.sources = std::span(m_operands).first(sources.size());
  return local;
}

/// A delay that follows another starts at the other's end, however late we look.
bool LaneExecutor::end_delays() noexcept {
  const std::int64_t now = monotonic_ns();
  bool any = false;
  while (const std::optional<Delays::Over> over = m_delays->next_over(now)) {
    m_now_ns = over->end_ns;
    --m_open_delays;
    complete(over->op);
    any = true;
  }
  m_now_ns = now;
  return any;
}

bool LaneExecutor::advance() noexcept {
  if (m_open_delays > 0 && end_delays()) {
    return true;
  }
  std::array<Completion, 16> completions;
  const std::size_t count = m_lane.poll(completions);
  if (count > 0) {
    m_now_ns = monotonic_ns();
  }
  for (std::size_t i = 0; i < count && !failed(); ++i) {
    handle(completions[i]);
  }
  if (failed()) {
    return true;
  }
  if (!m_ready_writes.empty() && post_write()) {
    return true;
  }
  if (!m_ready_sums.empty() && compute()) {
    return true;
  }
  return count > 0;
}

/// The transport sleeps in whole milliseconds; what is left is slept in short naps, after each of
/// which it is looked at. A delay that somebody else ends wakes us by its bell.
void LaneExecutor::wait_until(std::int64_t then_ns, std::int64_t now_ns, int bell) noexcept {
  const std::chrono::nanoseconds left(then_ns - now_ns);
  if (bell >= 0) {
    if (const auto sleep =
            m_lane.before_sleep(std::min<std::chrono::nanoseconds>(left, k_longest_sleep))) {
      sleep_on(std::array{*sleep, LaneSleep{bell, sleep->limit}});
      m_lane.after_sleep();
    }
    return;
  }
  const auto whole = std::chrono::duration_cast<std::chrono::milliseconds>(left);
  if (whole.count() > 0) {
    m_lane.wait(std::min(whole, k_longest_sleep));
  } else if (left.count() > 0) {
    constexpr std::chrono::nanoseconds k_nap{100'000};
    std::this_thread::sleep_for(std::min(left, k_nap));
  }
}

LaneTimes LaneExecutor::run(std::uint64_t step, const std::atomic<bool>& stop) noexcept {
  const std::int64_t begin = monotonic_ns();
  LaneTimes times;
  int looks = 0; // since there was something to do
  start(step);
  while (!done() && !failed()) {
    if (advance()) {
      looks = 0;
      continue;
    }
    if (stop.load(
            std::memory_order_relaxed)) { // no data hang on it: the thread is joined afterwards
      break;
    }
    const int bell = m_open_delays > 0 ? m_delays->bell() : -1;
    const std::int64_t asleep = monotonic_ns();
    if (const std::optional<std::int64_t> then = m_delays->ask_again_ns(asleep)) {
      wait_until(*then, asleep, bell);
    } else if (++looks <= k_looks) {
      ::sched_yield();
    } else {
      m_lane.wait(k_longest_sleep);
    }
    times.wait_ns += monotonic_ns() - asleep;
  }
  times.reduce_ns = m_reduce_ns;
  times.update_ns = m_update_ns;
  times.total_ns = monotonic_ns() - begin;
  return times;
}

std::string LaneExecutor::first_open_op() const {
  const auto it = std::find(m_done.begin(), m_done.end(), false);
  if (it == m_done.end()) {
    return "none";
  }
  const Op& op = m_program.ops()[static_cast<std::size_t>(it - m_done.begin())];
  const auto part = [&](std::string_view what) {
    return fmt::format("the {} of part {}", what, op.part);
  };
  switch (op.kind) {
  case OpKind::write:
    return fmt::format("{} to rank {}", part("write"), op.peer);
  case OpKind::await:
    return fmt::format("{} from rank {}", part("arrival"), op.peer);
  case OpKind::delay:
    return fmt::format("the end of a pass of {} ms", static_cast<double>(op.duration_ns) * 1e-6);
  case OpKind::reduce:
  case OpKind::sum_in_place:
    return part("sum");
  case OpKind::copy:
    return part("copy");
  case OpKind::update:
    return part("update");
  case OpKind::subtract:
    return part("delta");
  case OpKind::to_fixed:
  case OpKind::from_fixed:
  case OpKind::narrow:
  case OpKind::widen:
    return part("conversion");
  }
  return "?";
}

std::string LaneExecutor::error() const {
  if (m_fault == Fault::nobodys_tag) {
    return fmt::format("a write arrived with tag {}, which nobody waits for", m_fault_tag);
  }
  if (m_fault == Fault::changed) {
    const auto it = std::lower_bound(m_tags.begin(), m_tags.end(), std::pair(m_fault_tag, 0U));
    const Op& op = m_program.ops()[it->second];
    return fmt::format("part {} came from rank {} with other bytes than were sent; look at the "
                       "error counters of both machines' network cards and memory",
                       op.part, op.peer);
  }
  const std::string why = failed() ? m_lane.error() : "";
  return failed() && why.empty() ? "the transport reported a failure without a reason" : why;
}

} // namespace reckon
