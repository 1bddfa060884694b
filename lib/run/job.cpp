// SPDX-License-Identifier: Apache-2.0
#include "run/job.hpp"

#include "core/clock.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "core/processors.hpp"
#include "launch/sockets.hpp"
#include "movers/mover.hpp"
#include "run/executor.hpp"
#include "run/fixed_values.hpp"
#include "run/latest.hpp"
#include "run/replica.hpp"
#include "run/values.hpp"
#include "stats/stopping.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <fstream>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

namespace reckon {
namespace {

constexpr std::size_t k_least_iterations = 3;

std::int64_t cpu_ns() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto ns = [](const timeval& t) {
    return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_usec * 1000;
  };
  return ns(usage.ru_utime) + ns(usage.ru_stime);
}

/// Time that the machine's processors were not idle since it started, whoever used them
/// (/proc/stat, steps of 10 ms).
std::int64_t machine_busy_ns() {
  std::ifstream stat("/proc/stat");
  std::string label;
  std::array<std::int64_t, 8> ticks{}; // user nice system idle iowait irq softirq steal
  stat >> label;
  for (std::int64_t& t : ticks) {
    stat >> t;
  }
  const std::int64_t busy = ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6] + ticks[7];
  return stat ? busy * (1'000'000'000 / ::sysconf(_SC_CLK_TCK)) : 0;
}

/// The lanes of this rank, each a thread that sleeps between iterations.
class Lanes {
public:
  Lanes(const RankProgram& program, Mover& mover, std::span<const std::span<std::byte>> buffers,
        const RunOptions& options) {
    for (std::size_t l = 0; l < program.lanes.size(); ++l) {
      m_executors.push_back(std::make_unique<LaneExecutor>(
          program.lanes[l], mover.lane(static_cast<int>(l)), buffers));
    }
    m_times.resize(m_executors.size());
    const std::vector<int> cpus = allowed_cpus();
    for (std::size_t l = 0; l < m_executors.size(); ++l) {
      // Also with more lanes than processors: left alone, the scheduler at times stacks lanes that
      // wake each other on one processor for a whole run, and the same plan then takes twice as
      // long.
      const std::size_t slot =
          static_cast<std::size_t>(options.local_rank) * m_executors.size() + l;
      const int cpu = cpus.empty() ? -1 : cpus[slot % cpus.size()];
      m_threads.emplace_back([this, l, cpu] { work(l, cpu); });
    }
  }
  ~Lanes() {
    m_stop.store(true, std::memory_order_relaxed);
    {
      const std::lock_guard lock(m_mutex);
      m_quit = true;
    }
    m_wake.notify_all();
  }
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  void start() {
    {
      const std::lock_guard lock(m_mutex);
      ++m_round;
      m_running = m_executors.size();
    }
    m_wake.notify_all();
  }
  /// True when all lanes have finished their round.
  bool finished_within(std::chrono::milliseconds limit) {
    std::unique_lock lock(m_mutex);
    return m_finished.wait_for(lock, limit, [&] { return m_running == 0; });
  }
  [[nodiscard]] const std::vector<LaneTimes>& times() const { return m_times; }
  /// Makes the lanes end soon, then says which op each of them was waiting for.
  std::string stop_and_describe() {
    m_stop.store(true, std::memory_order_relaxed);
    std::string text;
    if (finished_within(std::chrono::milliseconds(2000))) {
      for (std::size_t l = 0; l < m_executors.size(); ++l) {
        text += fmt::format("{}lane {} waits for {}", text.empty() ? "" : "; ", l,
                            m_executors[l]->first_open_op());
      }
    }
    return text.empty() ? "its lanes do not answer" : text;
  }
  [[nodiscard]] std::string error() const {
    for (std::size_t l = 0; l < m_executors.size(); ++l) {
      if (m_executors[l]->failed()) {
        return fmt::format("lane {}: {}", l, m_executors[l]->error());
      }
    }
    return "";
  }

private:
  void work(std::size_t lane, int cpu) {
    if (cpu >= 0) {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(static_cast<std::size_t>(cpu), &set);
      pthread_setaffinity_np(pthread_self(), sizeof set, &set);
    }
    for (std::uint64_t round = 1;; ++round) {
      {
        std::unique_lock lock(m_mutex);
        m_wake.wait(lock, [&] { return m_round >= round || m_quit; });
        if (m_quit) {
          return;
        }
      }
      m_times[lane] = m_executors[lane]->run(m_stop);
      {
        const std::lock_guard lock(m_mutex);
        --m_running;
      }
      m_finished.notify_one();
    }
  }

  std::vector<std::unique_ptr<LaneExecutor>> m_executors;
  std::vector<LaneTimes> m_times; ///< written by the lane, read after finished_within()
  std::mutex m_mutex;
  std::condition_variable m_wake, m_finished;
  std::uint64_t m_round = 0;
  std::size_t m_running = 0;
  bool m_quit = false;
  std::atomic<bool> m_stop{false};
  std::vector<std::jthread> m_threads; ///< last: joined before anything they use goes
};

class Rank {
public:
  Rank(Rendezvous& rendezvous, const Schedule& schedule, const RunOptions& options)
      : m_rendezvous(rendezvous), m_schedule(schedule), m_options(options),
        m_program(schedule.ranks.at(static_cast<std::size_t>(rendezvous.rank()))) {
    std::uint32_t workers = 0;
    for (std::size_t r = 0; r < schedule.worker.size(); ++r) {
      if (r == static_cast<std::size_t>(rendezvous.rank())) {
        m_worker_index = workers;
      }
      workers += schedule.worker[r] ? 1U : 0U;
    }
    m_values.emplace(workers);
    if (schedule.outcome == Outcome::latest) {
      m_latest.emplace(workers, schedule.steps);
    } else if (schedule.outcome == Outcome::fixed_sums) {
      m_fixed.emplace(workers, schedule.fixed);
    }
    m_worker = schedule.worker[static_cast<std::size_t>(rendezvous.rank())];
  }

  JobResult run(const std::function<void(std::size_t, double)>& progress) {
    log(LogLevel::debug, "registration");
    connect();
    JobResult result;
    result.verification.resize(static_cast<std::size_t>(m_rendezvous.size()));
    Lanes lanes(m_program, *m_mover, m_buffers, m_options);
    std::unique_ptr<StoppingRule> rule = stopping_rule();
    double measured = 0;
    for (std::uint32_t iteration = 0;; ++iteration) {
      const bool counted = iteration >= m_options.warm_up;
      const bool go = m_rendezvous.rank() != 0 || !counted || !rule->done() ||
                      (!m_options.iterations && result.iterations.size() < k_least_iterations);
      prepare(iteration);
      log(LogLevel::debug, "iteration {}", iteration);
      std::vector<RankSample> samples(static_cast<std::size_t>(m_rendezvous.size()));
      if (!everybody_ready(go, samples, result)) {
        break;
      }
      iterate(lanes, samples);
      log(LogLevel::debug, "verification {}", iteration);
      const double seconds = seconds_of(samples);
      m_last = verify(iteration);
      if (m_rendezvous.rank() == 0) {
        if (counted) {
          measured += seconds;
          rule->add(seconds, Seconds(measured));
          result.iterations.push_back(samples);
        }
        progress(iteration + 1, seconds);
      }
    }
    log(LogLevel::debug, "end");
    m_mover->disconnect(
        [this] { static_cast<void>(m_rendezvous.all_gather("", m_options.limit)); });
    if (m_fixed) {
      result.error_bound = m_fixed->error_bound();
    }
    result.context["binding"] =
        fmt::format("each lane on one of {} processors, in turn", allowed_cpus().size());
    return result;
  }

private:
  [[nodiscard]] std::unique_ptr<StoppingRule> stopping_rule() const {
    if (m_options.iterations) {
      return std::make_unique<FixedCountRule>(*m_options.iterations);
    }
    StoppingLimits limits;
    limits.budget = m_options.budget;
    return std::make_unique<MedianStoppingRule>(limits);
  }

  void connect() {
    m_mover =
        m_options.mover
            ? m_options.mover()
            : make_mover(m_options.transport, m_options.habits,
                         {m_options.local_rank, m_options.host_memory, m_options.pci_address});
    std::uint64_t longest = 0;
    for (const LaneProgram& lane : m_program.lanes) {
      for (const Op& op : lane.ops()) {
        longest = std::max(longest, op.kind == OpKind::write ? op.bytes : 0);
      }
    }
    if (longest > m_mover->capabilities().max_write_bytes) {
      fail(
          ErrorKind::unavailable,
          fmt::format("transport {} writes at most {} at once, and a part of the plan has {}; plan "
                      "with a smaller --part-bytes",
                      m_options.transport, to_text(Bytes(m_mover->capabilities().max_write_bytes)),
                      to_text(Bytes(longest))));
    }
    for (const std::uint64_t bytes : m_program.buffer_bytes) {
      m_buffers.push_back(m_mover->allocate(bytes));
      m_views.push_back(m_mover->view(m_buffers.back()));
    }
    if (m_schedule.outcome == Outcome::parameters) {
      m_replica.emplace(m_schedule, static_cast<std::size_t>(m_rendezvous.rank()), *m_values);
      m_replica->fill(m_views);
    }
    m_mover->open(static_cast<int>(m_program.lanes.size()));
    const std::vector<std::string> addresses =
        m_rendezvous.all_gather(m_mover->address(), m_options.limit);
    m_mover->set_meanwhile([this] { m_rendezvous.watch(Seconds(0)); });
    try {
      m_mover->connect(m_rendezvous.rank(), addresses);
    } catch (const PeerError&) {
      throw;
    } catch (const Error&) {
      m_rendezvous.blame_a_peer(Seconds(1)); // a peer that just ended cannot be connected to
      throw;
    }
  }

  void prepare(std::uint32_t iteration) {
    for (std::uint32_t b = 0; b < m_views.size(); ++b) {
      if (b != k_gradient_buffer && !m_program.keeps(b)) {
        poison(m_views[b]);
      }
    }
    if (m_latest) {
      m_latest->fill_parameters(m_schedule, m_program, m_views);
    }
    if (m_worker && m_latest) {
      m_latest->fill_gradient(m_views[k_gradient_buffer], m_schedule.runs, m_worker_index);
    } else if (m_worker && m_fixed) {
      m_fixed->fill(m_views[k_gradient_buffer], m_schedule.runs, m_worker_index, iteration);
    } else if (m_worker) {
      m_values->fill(m_views[k_gradient_buffer], m_schedule.runs, m_worker_index, iteration);
    }
    for (const std::span<std::byte> buffer : m_buffers) {
      m_mover->push(buffer);
    }
  }

  [[nodiscard]] TestValues::Result verify(std::uint32_t iteration) {
    for (const std::span<std::byte> buffer : m_buffers) {
      m_mover->pull(buffer);
    }
    if (m_replica) {
      return m_replica->check(m_views, iteration);
    }
    if (m_latest) {
      return m_latest->check(m_schedule, m_program, m_views,
                             m_worker ? std::optional(m_worker_index) : std::nullopt);
    }
    if (m_fixed && m_worker) {
      return m_fixed->check(m_views[k_gradient_buffer], m_schedule.runs, iteration);
    }
    return m_worker ? m_values->check(m_views[k_gradient_buffer], m_schedule.runs, iteration)
                    : TestValues::Result{};
  }

  [[nodiscard]] std::int64_t root_clock() const {
    return monotonic_ns() + m_rendezvous.clock_offset().offset_ns;
  }

  /// Barrier before an iteration; brings rank 0 the last one's verification. False: rank 0 says
  /// that it is enough.
  bool everybody_ready(bool go, std::vector<RankSample>& samples, JobResult& result) {
    const Json mine{{"ready", root_clock()},
                    {"go", go},
                    {"checked", m_last.checked_bytes},
                    {"wrong", m_last.wrong_elements},
                    {"error", m_last.first_error},
                    {"max_error", m_last.max_error},
                    {"host", host_name()},
                    {"uncertainty", m_rendezvous.clock_offset().uncertainty_ns}};
    const std::vector<std::string> all = m_rendezvous.all_gather(mine.dump(), m_options.limit);
    for (std::size_t r = 0; r < all.size(); ++r) {
      const Json theirs = Json::parse(all[r]);
      samples[r].ready_ns = theirs.at("ready").get<std::int64_t>();
      if (r == 0) {
        go = theirs.at("go").get<bool>();
      }
      RankVerification& v = result.verification[r];
      v.checked_bytes += theirs.at("checked").get<std::uint64_t>();
      v.wrong_elements += theirs.at("wrong").get<std::uint64_t>();
      v.max_error = std::max(v.max_error, theirs.at("max_error").get<double>());
      if (v.first_error.empty()) {
        v.first_error = theirs.at("error").get<std::string>();
      }
      result.hosts.resize(all.size());
      result.hosts[r] = theirs.at("host").get<std::string>();
      result.clock_uncertainty_ns =
          std::max(result.clock_uncertainty_ns, theirs.at("uncertainty").get<std::int64_t>());
    }
    return go;
  }

  void iterate(Lanes& lanes, std::vector<RankSample>& samples) {
    const std::int64_t cpu_before = cpu_ns();
    const std::int64_t busy_before = machine_busy_ns();
    RankSample mine;
    mine.start_ns = root_clock();
    lanes.start();
    const std::int64_t deadline =
        monotonic_ns() + static_cast<std::int64_t>(m_options.limit.count() * 1e9);
    while (!lanes.finished_within(std::chrono::milliseconds(20))) {
      m_rendezvous.watch(Seconds(0));
      if (monotonic_ns() > deadline) {
        throw PeerError(fmt::format("rank {} made no end of an iteration within {}: {}",
                                    m_rendezvous.rank(), to_text(m_options.limit),
                                    lanes.stop_and_describe()));
      }
    }
    mine.end_ns = root_clock();
    if (const std::string error = lanes.error(); !error.empty()) {
      // A transport notices a dead peer at once, or, when packets vanish, after a time of its own.
      m_rendezvous.blame_a_peer(m_rendezvous.peer_limit() + Seconds(1));
      fail(ErrorKind::operation, fmt::format("rank {} {}", m_rendezvous.rank(), error));
    }
    mine.cpu_ns = cpu_ns() - cpu_before;
    mine.machine_busy_ns = machine_busy_ns() - busy_before;
    for (const LaneTimes& t : lanes.times()) {
      mine.reduce_ns += t.reduce_ns;
      mine.update_ns += t.update_ns;
      mine.wait_ns += t.wait_ns;
      mine.lane_ns += t.total_ns;
    }
    const Json text{mine.start_ns, mine.end_ns, mine.reduce_ns,       mine.wait_ns,
                    mine.lane_ns,  mine.cpu_ns, mine.machine_busy_ns, mine.update_ns};
    const std::vector<std::string> all = m_rendezvous.all_gather(text.dump(), m_options.limit);
    for (std::size_t r = 0; r < all.size(); ++r) {
      const auto v = Json::parse(all[r]).get<std::vector<std::int64_t>>();
      RankSample& s = samples[r];
      s.start_ns = v.at(0);
      s.end_ns = v.at(1);
      s.reduce_ns = v.at(2);
      s.wait_ns = v.at(3);
      s.lane_ns = v.at(4);
      s.cpu_ns = v.at(5);
      s.machine_busy_ns = v.at(6);
      s.update_ns = v.at(7);
    }
  }

  /// Last arrival to last completion.
  static double seconds_of(const std::vector<RankSample>& samples) {
    std::int64_t arrival = INT64_MIN, completion = INT64_MIN;
    for (const RankSample& s : samples) {
      arrival = std::max(arrival, s.ready_ns);
      completion = std::max(completion, s.end_ns);
    }
    return static_cast<double>(completion - arrival) * 1e-9;
  }

  Rendezvous& m_rendezvous;
  const Schedule& m_schedule;
  const RunOptions& m_options;
  const RankProgram& m_program;
  std::optional<TestValues> m_values;
  std::optional<LatestValues> m_latest;      ///< Outcome::latest
  std::optional<FixedValues> m_fixed;        ///< Outcome::fixed_sums
  std::optional<ParameterReplica> m_replica; ///< where the schedule makes optimizer steps
  std::uint32_t m_worker_index = 0;
  bool m_worker = false;
  std::unique_ptr<Mover> m_mover;
  std::vector<std::span<std::byte>> m_buffers;
  std::vector<std::span<std::byte>> m_views; ///< where the processor fills and checks them
  TestValues::Result m_last;
};

} // namespace

JobResult run_rank(Rendezvous& rendezvous, const Schedule& schedule, const RunOptions& options,
                   const std::function<void(std::size_t, double)>& progress) {
  try {
    return Rank(rendezvous, schedule, options).run(progress);
  } catch (const std::exception& e) {
    rendezvous.give_up(e.what());
    throw;
  }
}

} // namespace reckon
