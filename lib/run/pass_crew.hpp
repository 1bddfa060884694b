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

/// What a rank computes in the time of its passes, and where.
struct PassCompute {
  std::string operation; ///< "gemm_N"
  int threads = 1;       ///< of each rank
  /// Lanes and computation on processors of their own (ACE's offload), or both on all of them.
  bool dedicated = true;
};
/// "gemm_N" or "gemm_N:THREADS". Throws Error{usage} that names the operations there are.
[[nodiscard]] PassCompute parse_pass_compute(const std::string& text);

/// The processor of each thread; -1: any.
struct ThreadPlaces {
  std::vector<int> lanes, compute;
};
/// Threads of one of `local_size` ranks on a machine, of which it may use `cpus`: lanes on these in
/// turn, rank after rank; computing threads as well, or, dedicated, on the last of them and lanes
/// on the rest, of which at least one is left. A rank that has its machine to itself keeps a lane
/// on the processor that `wanted` has for it (by lane; -1 or none: any) where lanes may use that.
/// Throws Error{usage} when a rank wants more computing threads than there are processors for.
[[nodiscard]] ThreadPlaces place_threads(std::span<const int> cpus, std::size_t lanes,
                                         int local_rank, int local_size,
                                         const std::optional<PassCompute>& compute,
                                         std::span<const int> wanted = {});

/// How often `round_s` seconds of work are done in each pass: after each pass, what was done until
/// then is within half a round of what the passes until then should take.
[[nodiscard]] std::vector<std::uint64_t> rounds_of(std::span<const std::int64_t> durations_ns,
                                                   double round_s);

/// Durations of the delays of a rank's program in order: every lane that has any has the same, for
/// they are the same passes. Throws Error{input} when lanes differ.
[[nodiscard]] std::vector<std::int64_t> passes_of_lanes(const RankProgram& program);

/// Threads that do real work in the time of a rank's passes, so that these compete with what the
/// lanes do. A pass begins when all lanes have come to it and is done once for all of them. Work is
/// cut into rounds: one product of all threads together.
class PassCrew {
public:
  /// One thread for each of `cpus`; one that cannot be bound says so and runs anywhere. Throws
  /// Error{operation} when the system starts no more of them.
  PassCrew(std::string_view operation, const std::vector<int>& cpus);
  PassCrew(const PassCrew&) = delete;
  PassCrew& operator=(const PassCrew&) = delete;
  ~PassCrew();

  /// What one round takes, measured as a cell of a profile (docs/measuring.md): as many rounds a
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
  /// Serves the delays of one of these lanes, its n-th by the n-th pass. Outlives nothing of this.
  [[nodiscard]] std::unique_ptr<Delays> delays_of(const LaneProgram& program);
  /// Rounds that every thread has done since ever.
  [[nodiscard]] std::uint64_t rounds_done() const noexcept;
  /// Time that the busiest thread was at work so far.
  [[nodiscard]] std::int64_t busy_ns() const noexcept;
  /// ComputeLoad::mistake(), after all work is done.
  [[nodiscard]] std::string mistake() const { return m_load->mistake(); }

private:
  class LaneDelays;
  struct Pass {
    std::uint64_t rounds = 0;
    std::size_t asked = 0;                ///< lanes that wait for it, before it begins
    std::atomic<std::size_t> left{0};     ///< threads that have not done their part
    std::atomic<std::uint64_t> times{0};  ///< that it was done; says that end_ns is there
    std::atomic<std::uint64_t> target{0}; ///< rounds of all work when it is done
    std::atomic<std::int64_t> end_ns{0};
  };
  struct alignas(128) Worker {
    std::atomic<std::uint64_t> rounds{0};  ///< done
    std::atomic<std::int64_t> since_ns{0}; ///< when the round under way began
    std::atomic<std::int64_t> busy_ns{0};
  };

  void stop();
  void ask(std::uint32_t pass) noexcept;
  void work(std::size_t rank, int cpu);
  void queue(std::uint32_t pass) noexcept; ///< with the mutex held
  /// About when the thread that has done least will have done so many rounds since ever.
  [[nodiscard]] std::int64_t expected_ns(std::uint64_t rounds) const noexcept;
  /// What so many rounds of all threads together take.
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
  std::uint64_t m_queued = 0;            ///< passes, since ever
  std::atomic<std::uint64_t> m_ended{0}; ///< of those that were queued
  std::uint64_t m_queued_rounds = 0;
  std::atomic<bool> m_stop{
      false}; ///< set with the mutex held; looked at in the middle of work, too
  std::vector<std::jthread> m_threads;
};

} // namespace reckon
