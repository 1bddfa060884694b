// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/units.hpp"
#include "documents/plan.hpp"
#include "documents/workload.hpp"
#include "launch/environment.hpp"
#include "launch/rendezvous.hpp"
#include "run/gates.hpp"
#include "run/job.hpp"
#include "run/session.hpp"
#include "schedule/schedule.hpp"
#include "training/staging.hpp"

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
#include <stop_token>
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
  bool checksums = false; ///< RunOptions::checksums; at all ranks or none
  bool average = false;   ///< the mean over all workers, instead of the sum
  bool pin_lanes = false; ///< lanes, each on one processor
  /// The tensors are the plan's parts in the order in which they lie, whatever the workload is.
  bool by_parts = false;
  Seconds limit{60}; ///< limit of joining, and of leaving once all have come to it
  Seconds peer_limit = k_default_peer_limit;
};

/// One rank of a plan in a training program: its owner says when each tensor's gradient is ready,
/// and gets the sums of all workers. A thread of its own conducts the steps, so the owner does not
/// wait for other ranks; between steps only a peer's death ends the job.
///
/// Thread-safe, but for left_within(), abandoned_within() and the destructor, which come last.
/// Calls throw what has ended the job: PeerError where that was another rank; Error{input} for
/// calls out of turn.
class Training {
public:
  /// Begins to join the job that the environment names (job_from_environment()). Throws
  /// Error{input} where the plan has more than sums of gradients, is for another number of ranks,
  /// or its workload is not found.
  explicit Training(const TrainingOptions& options);
  /// abandoned_within() however long that takes, unless it has left.
  ~Training();
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  /// Whether all ranks have joined and are connected, after at most `limit`; nothing: as long as
  /// TrainingOptions::limit lets it take. Throws as Rendezvous and Session. Until then nothing else
  /// may be called but joined() and abandoned_within().
  [[nodiscard]] bool joined_within(std::optional<Seconds> limit);
  [[nodiscard]] bool joined() const { return m_joined; }

  [[nodiscard]] std::size_t rank() const { return m_self; }
  [[nodiscard]] std::size_t size() const { return m_plan.ranks.size(); }
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
  /// At a worker, between steps: gradients may be on this GPU from now on, numbered as CUDA does.
  /// Throws Error{unavailable} without GPUs, Error{input} where there is no such one or the plan
  /// sums whole numbers.
  void use_gpu(int device);
  /// The work in `stream` of the GPU makes the gradient of a tensor at `gradient`, where its sum
  /// comes as well: Staging::ready(). Never waits for another call.
  void ready_on_stream(std::size_t tensor, std::byte* gradient, void* stream);
  /// Later work in `stream` of the GPU sees the sums of which summed_within() has said that they
  /// are there.
  void follow_on_stream(void* stream);
  /// Later work in `stream` of the GPU sees the sums, of a step in which all tensors are ready:
  /// Staging::wait(). The step is over when over_within() says so.
  void wait_on_stream(void* stream);
  /// Whether the sums of some tensors are in the lanes' memory, in this step or, after it, until
  /// the next one begins. Waits at most `limit`; absent: without limit.
  [[nodiscard]] bool summed_within(std::size_t first, std::size_t count,
                                   std::optional<Seconds> limit);
  /// Whether no step is under way, so that the next may begin. Waits at most `limit`; absent:
  /// without limit.
  [[nodiscard]] bool over_within(std::optional<Seconds> limit);
  /// At a rank that only sums: whether all workers leave, after at most `limit`.
  [[nodiscard]] bool served_within(std::optional<Seconds> limit);
  /// This rank's account of the steps so far: JSON, described in docs/library.md.
  [[nodiscard]] std::string report() const;
  /// Leaves with all other ranks, and whether it has after at most `limit`. Throws Error{input} in
  /// the middle of a step.
  [[nodiscard]] bool left_within(std::optional<Seconds> limit);
  /// Ends the job for all ranks, who are told why. A lane that hangs in something that nobody can
  /// end, a lock that a dead peer holds for example, is left behind with all that it uses. False:
  /// joining hangs so, a name server does not answer for example; then this must stay.
  [[nodiscard]] bool abandoned_within(const std::string& why, Seconds limit) noexcept;

private:
  struct Arrival;
  enum class Wish { none, step, leave };
  enum class Step { none, under_way, over };

  [[nodiscard]] Staging& staging() const;
  void require_worker() const;
  void require_open() const;
  void note_first(std::int64_t ready_ns);
  void require_tensors(std::size_t first, std::size_t count) const;
  void take(std::size_t first, std::size_t count);
  void prepare(const TrainingOptions& options, const JobEnvironment& job);
  void join(JobEnvironment job);
  void connect();
  void conduct(JobEnvironment job) noexcept;
  [[nodiscard]] Wish next_wish();
  [[nodiscard]] bool meet(Wish mine);
  void step();
  void note(const std::vector<Arrival>& all);
  void throw_failure() const; ///< with m_mutex held
  /// The same until that is so, at most for `limit` if any.
  template <typename Settled>
  void wait(std::unique_lock<std::mutex>& lock, std::optional<Seconds> limit, Settled settled);
  [[nodiscard]] std::span<std::byte> buffer() const; ///< where the lanes have the gradient

  Plan m_plan;
  DocumentLink m_link;
  Workload m_workload;
  GradientLayout m_layout;
  std::size_t m_self = 0, m_workers = 0;
  double m_factor = 1; ///< factor on every gradient, before it is summed
  bool m_pin = false;  ///< lanes
  std::string m_plan_file;
  Seconds m_peer_limit{0};
  std::span<std::byte> m_gradient;
  std::optional<Rendezvous> m_rendezvous;
  /// The data of the lanes' threads: left behind where a thread cannot be ended.
  struct Engine {
    Schedule schedule;
    RunOptions options;
    std::unique_ptr<Mover> mover; ///< until the session has it
    std::optional<Gates> gates;
    std::optional<Session> session;   ///< whose lanes use the gates
    std::unique_ptr<Staging> staging; ///< uses the session's memory, and the gates use it
  };
  std::unique_ptr<Engine> m_engine = std::make_unique<Engine>();

  std::atomic<bool> m_open{false};               ///< a step has begun and is not known to be over
  std::atomic<std::int64_t> m_ready_ns{0};       ///< monotonic: the last gradient of the step
  std::atomic<std::int64_t> m_first_ready_ns{0}; ///< the first one; 0: none yet
  std::atomic<bool> m_joined{false};
  std::stop_source m_cancel;

  mutable std::mutex m_mutex; ///< guards what follows
  std::condition_variable m_changed;
  Wish m_wish = Wish::none;
  Step m_step = Step::none;
  bool m_all_leave = false, m_left = false, m_conducted = false;
  std::exception_ptr m_failure;
  std::string m_why = "abandoned";
  std::uint64_t m_steps = 0;                           ///< steps that are over
  std::int64_t m_began_ns = 0;                         ///< monotonic: the step
  std::int64_t m_last_ready_ns = 0, m_last_end_ns = 0; ///< of the last step, rank 0's clock
  struct Times {                                       ///< in seconds, of the last steps
    std::deque<double> step, exposed, exchange, gradients;
  } m_times;

  std::thread m_conductor; ///< last: it uses all of these
};

} // namespace reckon
