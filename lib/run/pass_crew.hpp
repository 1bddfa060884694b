// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/units.hpp"
#include "kernels/compute_load.hpp"
#include "run/delays.hpp"

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace reckon {

/// The computation of a rank's passes, and its place.
struct PassCompute {
  std::string operation; ///< "gemm_N"
  int threads = 1;       ///< threads of each rank
  /// Lanes and computation on separate processors (ACE's offload), or both on all of them.
  bool dedicated = true;
};
/// Parses "gemm_N" or "gemm_N:THREADS". Throws Error{usage} that names the known operations.
[[nodiscard]] PassCompute parse_pass_compute(const std::string& text);

/// The processor of each thread; -1: any.
struct ThreadPlaces {
  std::vector<int> lanes, compute;
};
/// Threads of one of `local_size` ranks on a machine, of which it may use `cpus`: lanes on these in
/// turn, rank after rank; computing threads as well, or, dedicated, on the last of them and lanes
/// on the rest, of which at least one is left. A rank that has its machine to itself keeps a lane
/// on its processor in `wanted` (by lane; -1 or absent: any) where lanes may use that. Throws
/// Error{usage} when a rank wants more computing threads than it has processors.
[[nodiscard]] ThreadPlaces place_threads(std::span<const int> cpus, std::size_t lanes,
                                         int local_rank, int local_size,
                                         const std::optional<PassCompute>& compute,
                                         std::span<const int> wanted = {});

/// How often each pass does `round_s` seconds of work: after each pass, the finished work is within
/// half a round of the time of the passes until then.
[[nodiscard]] std::vector<std::uint64_t> rounds_of(std::span<const std::int64_t> durations_ns,
                                                   double round_s);

/// Durations of the delays of a rank's program in order. Every lane with delays has the same ones,
/// because they are the same passes. Throws Error{input} when lanes differ.
[[nodiscard]] std::vector<std::int64_t> passes_of_lanes(const RankProgram& program);

/// Threads that do real work in the time of a rank's passes and compete with the lanes. A pass
/// begins when all lanes have come to it and is done once for all of them. Work is cut into rounds:
/// one product of all threads together.
class PassCrew {
public:
  /// One thread for each of `cpus`; one that cannot be bound says so and runs anywhere. Throws
  /// Error{operation} when the system starts no more threads.
  PassCrew(std::string_view operation, const std::vector<int>& cpus);
  PassCrew(const PassCrew&) = delete;
  PassCrew& operator=(const PassCrew&) = delete;
  ~PassCrew();

  /// The time of one round, measured as a cell of a profile (docs/measuring.md): as many rounds a
  /// sample as take several turns of the scheduler, three samples to warm up, then for half a
  /// second and at least ten. Ends early on an interrupt.
  struct RoundTime {
    double median_s = 0;
    double spread = 0; ///< of the samples: (p90 - p10) / median
    std::size_t samples = 0;
  };
  [[nodiscard]] RoundTime time_round();
  /// From now on pass `p` is rounds[p] rounds, and `lanes` lanes come to each.
  void set_passes(std::vector<std::uint64_t> rounds, std::size_t lanes);
  /// Serves the delays of one of these lanes, its n-th by the n-th pass. Must not outlive this.
  [[nodiscard]] std::unique_ptr<Delays> delays_of(const LaneProgram& program);
  /// Rounds that every thread has finished since the start.
  [[nodiscard]] std::uint64_t rounds_done() const noexcept;
  /// Working time of the busiest thread so far.
  [[nodiscard]] std::int64_t busy_ns() const noexcept;
  /// ComputeLoad::mistake(), after all work is done.
  [[nodiscard]] std::string mistake() const { return m_load->mistake(); }

private:
  class LaneDelays;
  struct Pass {
    std::uint64_t rounds = 0;
    std::size_t asked = 0;                ///< lanes that wait for it, before it begins
    std::atomic<std::size_t> left{0};     ///< threads that have not done their part
    std::atomic<std::uint64_t> times{0};  ///< whether it is done; end_ns is valid then
    std::atomic<std::uint64_t> target{0}; ///< total rounds at its end
    std::atomic<std::int64_t> end_ns{0};
  };
  struct alignas(128) Worker {
    std::atomic<std::uint64_t> rounds{0};  ///< done
    std::atomic<std::int64_t> since_ns{0}; ///< begin of the round under way
    std::atomic<std::int64_t> busy_ns{0};
  };

  void stop();
  void ask(std::uint32_t pass) noexcept;
  void work(std::size_t rank, int cpu);
  void queue(std::uint32_t pass) noexcept; ///< with the mutex held
  /// About when the slowest thread will have done this many rounds since the start.
  [[nodiscard]] std::int64_t expected_ns(std::uint64_t rounds) const noexcept;
  /// The time of this many rounds of all threads together.
  double time_rounds(std::uint64_t rounds);

  std::vector<float> m_memory;
  std::unique_ptr<ComputeLoad> m_load;
  std::vector<Worker> m_workers;
  std::vector<Pass> m_passes;
  std::size_t m_lanes = 0;
  double m_round_s = 0;
  std::mutex m_mutex;
  std::condition_variable m_wake, m_finished;
  std::vector<std::uint32_t> m_queue;    ///< ring: a pass is in it at most once
  std::uint64_t m_queued = 0;            ///< passes since the start
  std::atomic<std::uint64_t> m_ended{0}; ///< of the queued ones
  std::uint64_t m_queued_rounds = 0;
  std::atomic<bool> m_stop{false}; ///< set with the mutex held; also read in the middle of work
  std::vector<std::jthread> m_threads;
};

} // namespace reckon
