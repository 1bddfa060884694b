// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/units.hpp"
#include "documents/plan.hpp"
#include "documents/workload.hpp"
#include "launch/rendezvous.hpp"
#include "run/gates.hpp"
#include "run/job.hpp"
#include "run/session.hpp"
#include "schedule/schedule.hpp"

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace reckon {

struct TrainingOptions {
  std::string plan;      ///< file
  std::string workload;  ///< file or shipped name; empty: the one that the plan names
  std::string transport; ///< choose_transports(); empty: the plan's
  /// The place of a worker's gradient, aligned to 64 bytes; empty: in the session's memory.
  std::span<std::byte> gradient{};
  bool average = false;   ///< the mean over all workers, instead of the sum
  bool pin_lanes = false; ///< lanes, each on one processor
  Seconds limit{60};      ///< limit of joining, and of leaving once all have come to it
  Seconds peer_limit = k_default_peer_limit;
};

/// One rank of a plan in a training program: its owner says when each tensor's gradient is ready,
/// and gets the sums of all workers. A thread of its own conducts the steps, so the owner does not
/// wait for other ranks; between steps only a peer's death ends the job.
///
/// Thread-safe, except leave(), abandon() and the destructor, which come last. Calls throw the
/// error that has ended the job: PeerError if that was another rank; Error{input} for calls out of
/// turn.
class Training {
public:
  /// Joins the job of the environment (job_from_environment()) and connects. Throws Error{input}
  /// where the plan has more than sums of gradients, is for another number of ranks, or its
  /// workload is not found; else as Rendezvous and Session.
  explicit Training(const TrainingOptions& options);
  /// abandon(), unless leave() has returned.
  ~Training();
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  [[nodiscard]] int rank() const { return m_rendezvous->rank(); }
  [[nodiscard]] int size() const { return m_rendezvous->size(); }
  [[nodiscard]] std::size_t workers() const { return m_workers; }
  [[nodiscard]] bool worker() const { return m_plan.ranks[m_self].worker; }
  /// In gradient order.
  [[nodiscard]] const std::vector<Tensor>& tensors() const { return m_workload.tensors; }
  [[nodiscard]] const GradientLayout& layout() const { return m_layout; }
  /// A worker's; empty at a rank that only sums.
  [[nodiscard]] std::span<std::byte> gradient() const { return m_gradient; }

  /// At a worker: begins a step.
  void begin();
  /// The gradients of tensors first .. first + count - 1 are written. Never waits for another call.
  void ready(std::size_t first, std::size_t count);
  /// Whether the step is over, so that the next may begin. Waits at most `limit`; absent: without
  /// limit.
  [[nodiscard]] bool over_within(std::optional<Seconds> limit);
  /// At a rank that only sums: whether all workers leave, after at most `limit`.
  [[nodiscard]] bool served_within(std::optional<Seconds> limit);
  /// This rank's account of the steps so far: JSON, described in docs/library.md.
  [[nodiscard]] std::string report() const;
  /// Together with all other ranks. Throws Error{input} in the middle of a step.
  void leave();
  /// Ends the job for all ranks, with this reason. A lane that cannot be ended, for example because
  /// a dead peer holds its lock, is left behind with all its memory.
  void abandon(const std::string& why) noexcept;

private:
  struct Arrival;
  enum class Wish { none, step, leave };
  enum class Step { none, under_way, over };

  void join(const TrainingOptions& options);
  void connect();
  void conduct() noexcept;
  [[nodiscard]] Wish next_wish();
  [[nodiscard]] bool meet(Wish mine);
  void step();
  void note(const std::vector<Arrival>& all);
  void throw_failure() const;                        ///< with m_mutex held
  [[nodiscard]] std::span<std::byte> buffer() const; ///< the gradient of the lanes

  Plan m_plan;
  DocumentLink m_link;
  Workload m_workload;
  GradientLayout m_layout;
  std::size_t m_self = 0, m_workers = 0;
  double m_factor = 1; ///< factor on every gradient, before it is summed
  bool m_pin = false;  ///< lanes
  std::span<std::byte> m_gradient;
  std::optional<Rendezvous> m_rendezvous;
  /// The data of the lanes' threads: left behind where a thread cannot be ended.
  struct Engine {
    Schedule schedule;
    RunOptions options;
    std::optional<Gates> gates;
    std::optional<Session> session; ///< whose lanes use the gates
  };
  std::unique_ptr<Engine> m_engine = std::make_unique<Engine>();

  std::atomic<bool> m_open{false};         ///< a step has begun and is not known to be over
  std::atomic<std::int64_t> m_ready_ns{0}; ///< monotonic: the last gradient of the step
  std::atomic<bool> m_cancelled{false};

  mutable std::mutex m_mutex; ///< guards what follows
  std::condition_variable m_changed;
  Wish m_wish = Wish::none;
  Step m_step = Step::none;
  bool m_all_leave = false, m_left = false;
  std::exception_ptr m_failure;
  std::string m_why = "abandoned";
  std::uint64_t m_steps = 0;                           ///< steps that are over
  std::int64_t m_began_ns = 0;                         ///< monotonic: the step
  std::int64_t m_last_ready_ns = 0, m_last_end_ns = 0; ///< of the last step, rank 0's clock
  struct Times {                                       ///< in seconds, of the last steps
    std::deque<double> step, exposed, exchange;
  } m_times;

  std::thread m_conductor; ///< last: it uses all of these
};

} // namespace reckon
