// SPDX-License-Identifier: Apache-2.0
#include "probe/team.hpp"

#include "core/clock.hpp"
#include "core/threads.hpp"
#include "probe/pin.hpp"

#include <chrono>
#include <utility>

namespace reckon {

void SpinBarrier::wait() noexcept {
  const std::uint64_t round = m_round.load(std::memory_order_acquire);
  if (m_arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == m_threads) {
    m_arrived.store(0, std::memory_order_relaxed); // published by the store below
    m_round.store(round + 1, std::memory_order_release);
    return;
  }
  constexpr std::int64_t k_active_ns = 200'000;
  const std::int64_t begin = monotonic_ns();
  for (unsigned spins = 1; m_round.load(std::memory_order_acquire) == round; ++spins) {
    cpu_relax();
    if (spins % 64 == 0 && monotonic_ns() - begin > k_active_ns) {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
}

Team::Team(const std::vector<int>& cpus) {
  m_running = cpus.size(); // each thread first binds itself
  m_threads.reserve(cpus.size());
  try {
    for (std::size_t rank = 0; rank < cpus.size(); ++rank) {
      m_threads.push_back(
          start_thread("a processor", [this, rank, cpu = cpus[rank]] { serve(rank, cpu); }));
    }
    std::unique_lock lock(m_mutex);
    m_finished.wait(lock, [this] { return m_running == 0; });
    if (m_error) {
      std::rethrow_exception(m_error);
    }
  } catch (...) {
    end();
    throw;
  }
}

Team::~Team() {
  end();
}

void Team::end() {
  {
    const std::lock_guard lock(m_mutex);
    m_end = true;
  }
  m_start.notify_all();
  m_threads.clear(); // joined
}

void Team::serve(std::size_t rank, int cpu) {
  std::uint64_t done = 0;
  std::exception_ptr error;
  try {
    bind_to_cpu(cpu);
  } catch (...) {
    error = std::current_exception();
  }
  for (;;) {
    std::unique_lock lock(m_mutex);
    if (error && !m_error) {
      m_error = error;
    }
    error = nullptr;
    if (--m_running == 0) {
      m_finished.notify_one();
    }
    m_start.wait(lock, [&] { return m_end || m_job > done; });
    if (m_end) {
      return;
    }
    done = m_job;
    const auto* const work = m_work;
    lock.unlock();
    try {
      (*work)(rank);
    } catch (...) {
      error = std::current_exception();
    }
  }
}

void Team::run(const std::function<void(std::size_t)>& work) {
  std::unique_lock lock(m_mutex);
  m_work = &work;
  m_running = m_threads.size();
  m_error = nullptr;
  ++m_job;
  m_start.notify_all();
  m_finished.wait(lock, [this] { return m_running == 0; });
  if (m_error) {
    std::rethrow_exception(std::exchange(m_error, nullptr));
  }
}

Background::Background(const std::vector<int>& cpus,
                       std::function<void(std::size_t, std::uint64_t)> work)
    : m_team(cpus), m_work(std::move(work)), m_begun(static_cast<std::ptrdiff_t>(cpus.size())),
      m_runner(start_thread("work in the background", [this] {
        m_team.run([this](std::size_t rank) {
          m_work(rank, 0);
          m_begun.count_down();
          for (std::uint64_t index = 1; !m_stop.load(std::memory_order_relaxed); ++index) {
            m_work(rank, index);
          }
        });
      })) {
  m_begun.wait();
}

Background::~Background() {
  m_stop.store(true, std::memory_order_relaxed); // m_runner's end orders everything else
}

} // namespace reckon
