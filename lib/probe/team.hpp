// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <latch>
#include <mutex>
#include <thread>
#include <vector>

namespace reckon {

/// Lets a fixed number of threads pass together, over and over. Waits actively, as timed work
/// follows; after 0.2 ms it sleeps in between, so that more threads than processors come through,
/// too. Never at real-time priority: a spinner there starves the thread that it waits for. Never by
/// sched_yield(): since Linux 6.18 each call gives up a slice of future running time, and thousands
/// of them starve the caller itself for minutes on a busy machine (seen: 96 s).
class SpinBarrier {
public:
  explicit SpinBarrier(std::size_t threads) : m_threads(threads) {}
  void wait() noexcept;

private:
  std::size_t m_threads;
  alignas(128) std::atomic<std::size_t> m_arrived{0};
  alignas(128) std::atomic<std::uint64_t> m_round{0};
};

/// Threads, each bound to its own processor, that run one function at a time and sleep in between.
/// Thread-compatible: one thread calls run().
class Team {
public:
  /// One thread for each of `cpus`. Throws Error when one cannot be started or bound.
  explicit Team(const std::vector<int>& cpus);
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  ~Team();

  [[nodiscard]] std::size_t size() const { return m_threads.size(); }
  /// Calls work(rank) on every thread, rank in [0, size()), and waits for all of them. Rethrows an
  /// exception of a thread; a function that uses a barrier must not let one thread leave early.
  void run(const std::function<void(std::size_t)>& work);

private:
  void serve(std::size_t rank, int cpu);
  void end();

  std::mutex m_mutex;
  std::condition_variable m_start;
  std::condition_variable m_finished;
  const std::function<void(std::size_t)>* m_work = nullptr;
  std::uint64_t m_job = 0;
  std::size_t m_running = 0;
  bool m_end = false;
  std::exception_ptr m_error;
  std::vector<std::jthread> m_threads;
};

/// A hint to the processor that this is a waiting loop.
inline void cpu_relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Keeps threads at work during a measurement.
class Background {
public:
  /// Each of the threads on `cpus` calls work(rank, 0), work(rank, 1), ...; all have done so once
  /// when this returns. `work` must not throw. Throws Error when a thread cannot be started or
  /// bound.
  Background(const std::vector<int>& cpus,
             std::function<void(std::size_t rank, std::uint64_t index)> work);
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  /// Waits until the calls under way are done.
  ~Background();

private:
  Team m_team;
  std::function<void(std::size_t, std::uint64_t)> m_work;
  std::latch m_begun;
  std::atomic<bool> m_stop{false};
  std::jthread m_runner;
};

} // namespace reckon
