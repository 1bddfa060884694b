// SPDX-License-Identifier: Apache-2.0
#include "run/lanes.hpp"

#include "core/processors.hpp"
#include "core/threads.hpp"

#include <fmt/format.h>

namespace reckon {

Lanes::Lanes(std::span<const RankProgram* const> programs, Mover& mover,
             std::span<const std::span<std::byte>> buffers, const std::vector<int>& cpus,
             const MakeDelays& delays)
    : m_times(programs.front()->lanes.size()) {
  for (const RankProgram* program : programs) {
    std::vector<std::unique_ptr<LaneExecutor>>& executors = m_executors.emplace_back();
    for (std::size_t l = 0; l < m_times.size(); ++l) {
      executors.push_back(
          std::make_unique<LaneExecutor>(program->lanes[l], mover.lane(static_cast<int>(l)),
                                         buffers, delays ? delays(program->lanes[l]) : nullptr));
    }
  }
  try {
    for (std::size_t l = 0; l < m_times.size(); ++l) {
      // Also with more lanes than processors: left alone, the scheduler at times stacks lanes that
      // wake each other on one processor for a whole run, and the same plan then takes twice as
      // long.
      m_threads.push_back(start_thread("a lane", [this, l, cpu = cpus[l]] { work(l, cpu); }));
    }
  } catch (...) {
    end();
    throw;
  }
}

Lanes::~Lanes() {
  end();
}

void Lanes::end() {
  m_stop.store(true, std::memory_order_relaxed);
  {
    const std::lock_guard lock(m_mutex);
    m_quit = true;
  }
  m_wake.notify_all();
  m_threads.clear(); // joined
}

void Lanes::start(std::size_t program, std::uint64_t step) {
  {
    const std::lock_guard lock(m_mutex);
    ++m_round;
    m_program = program;
    m_step = step;
    m_running = m_times.size();
  }
  m_wake.notify_all();
}

bool Lanes::finished_within(std::chrono::milliseconds limit) {
  std::unique_lock lock(m_mutex);
  return m_finished.wait_for(lock, limit, [&] { return m_running == 0; });
}

RankTimeline Lanes::timeline() const {
  RankTimeline timeline;
  for (const std::unique_ptr<LaneExecutor>& executor : m_executors[m_program]) {
    timeline.push_back(executor->spans());
  }
  return timeline;
}

bool Lanes::stopped_within(std::chrono::milliseconds limit) {
  m_stop.store(true, std::memory_order_relaxed);
  return finished_within(limit);
}

std::string Lanes::stop_and_describe() {
  std::string text;
  if (stopped_within(std::chrono::milliseconds(2000))) {
    for (std::size_t l = 0; l < m_times.size(); ++l) {
      text += fmt::format("{}lane {} waits for {}", text.empty() ? "" : "; ", l,
                          m_executors[m_program][l]->first_open_op());
    }
  }
  return text.empty() ? "its lanes do not answer" : text;
}

std::string Lanes::error() const {
  for (std::size_t l = 0; l < m_times.size(); ++l) {
    if (const LaneExecutor& executor = *m_executors[m_program][l]; executor.failed()) {
      return fmt::format("lane {}: {}", l, executor.error());
    }
  }
  return "";
}

void Lanes::work(std::size_t lane, int cpu) {
  if (cpu >= 0) {
    static_cast<void>(bind_this_thread(cpu)); // else the lane runs where the system puts it
  }
  for (std::uint64_t round = 1;; ++round) {
    LaneExecutor* executor = nullptr;
    std::uint64_t step = 0;
    {
      std::unique_lock lock(m_mutex);
      m_wake.wait(lock, [&] { return m_round >= round || m_quit; });
      if (m_quit) {
        return;
      }
      executor = m_executors[m_program][lane].get();
      step = m_step;
    }
    m_times[lane] = executor->run(step, m_stop);
    {
      const std::lock_guard lock(m_mutex);
      --m_running;
    }
    m_finished.notify_one();
  }
}

} // namespace reckon
