// SPDX-License-Identifier: Apache-2.0
#include "run/job.hpp"

#include "core/clock.hpp"
#include "core/digest.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "core/processors.hpp"
#include "launch/sockets.hpp"
#include "movers/mover.hpp"
#include "run/executor.hpp"
#include "run/fixed_values.hpp"
#include "run/folder_lock.hpp"
#include "run/lane_memory.hpp"
#include "run/latest.hpp"
#include "run/load_checkpoint.hpp"
#include "run/pass_crew.hpp"
#include "run/replica.hpp"
#include "run/values.hpp"
#include "stats/stopping.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <numeric>
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

bool same_folder(const std::string& a, const std::string& b) {
  std::error_code error;
  return a == b || std::filesystem::equivalent(a, b, error);
}

/// The lanes of this rank, each a thread that sleeps between iterations.
class Lanes {
public:
  /// `programs`: what a round can be, with the same number of lanes each. `cpus`: of each lane.
  /// `crew` works in the passes; null: their time passes. `trace`: notes when ops begin and end.
  Lanes(std::span<const RankProgram* const> programs, Mover& mover,
        std::span<const std::span<std::byte>> buffers, const std::vector<int>& cpus, PassCrew* crew,
        bool trace)
      : m_times(programs.front()->lanes.size()) {
    for (const RankProgram* program : programs) {
      std::vector<std::unique_ptr<LaneExecutor>>& executors = m_executors.emplace_back();
      for (std::size_t l = 0; l < m_times.size(); ++l) {
        executors.push_back(std::make_unique<LaneExecutor>(
            program->lanes[l], mover.lane(static_cast<int>(l)), buffers,
            crew != nullptr ? crew->delays_of(program->lanes[l]) : nullptr));
      }
    }
    for (std::size_t l = 0; trace && l < m_times.size(); ++l) {
      m_timeline.emplace_back(programs.front()->lanes[l].ops().size());
    }
    for (std::size_t l = 0; l < m_timeline.size(); ++l) {
      m_executors.front()[l]->record(&m_timeline[l]);
    }
    for (std::size_t l = 0; l < m_times.size(); ++l) {
      // Also with more lanes than processors: left alone, the scheduler at times stacks lanes that
      // wake each other on one processor for a whole run, and the same plan then takes twice as
      // long.
      m_threads.emplace_back([this, l, cpu = cpus[l]] { work(l, cpu); });
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

  /// A round of program number `program`, the optimizer's step `step`.
  void start(std::size_t program, std::uint64_t step) {
    {
      const std::lock_guard lock(m_mutex);
      ++m_round;
      m_program = program;
      m_step = step;
      m_running = m_times.size();
    }
    m_wake.notify_all();
  }
  /// True when all lanes have finished their round.
  bool finished_within(std::chrono::milliseconds limit) {
    std::unique_lock lock(m_mutex);
    return m_finished.wait_for(lock, limit, [&] { return m_running == 0; });
  }
  [[nodiscard]] const std::vector<LaneTimes>& times() const { return m_times; }
  /// Of the last round of the first program, where that was asked for.
  [[nodiscard]] const RankTimeline& timeline() const { return m_timeline; }
  /// Makes the lanes end soon, then says which op each of them was waiting for.
  std::string stop_and_describe() {
    m_stop.store(true, std::memory_order_relaxed);
    std::string text;
    if (finished_within(std::chrono::milliseconds(2000))) {
      for (std::size_t l = 0; l < m_times.size(); ++l) {
        text += fmt::format("{}lane {} waits for {}", text.empty() ? "" : "; ", l,
                            m_executors[m_program][l]->first_open_op());
      }
    }
    return text.empty() ? "its lanes do not answer" : text;
  }
  [[nodiscard]] std::string error() const {
    for (std::size_t l = 0; l < m_times.size(); ++l) {
      if (const LaneExecutor& executor = *m_executors[m_program][l]; executor.failed()) {
        return fmt::format("lane {}: {}", l, executor.error());
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

  std::vector<std::vector<std::unique_ptr<LaneExecutor>>> m_executors; ///< [program][lane]
  RankTimeline m_timeline;                                             ///< as m_times
  std::vector<LaneTimes> m_times; ///< written by the lane, read after finished_within()
  std::mutex m_mutex;
  std::condition_variable m_wake, m_finished;
  std::uint64_t m_round = 0, m_step = 0;
  std::size_t m_running = 0, m_program = 0;
  bool m_quit = false;
  std::atomic<bool> m_stop{false};
  std::vector<std::jthread> m_threads; ///< last: joined before anything they use goes
};

/// What an iteration of the lanes can be: numbers of programs. What restores is the last one.
enum Round : std::size_t { k_usual, k_saving };

class Rank {
public:
  Rank(Rendezvous& rendezvous, const JobSchedules& schedules, const RunOptions& options)
      : m_rendezvous(rendezvous), m_schedule(schedules.usual), m_options(options) {
    const auto self = static_cast<std::size_t>(rendezvous.rank());
    for (const Schedule* schedule :
         {&schedules.usual, schedules.saving ? &*schedules.saving : nullptr,
          schedules.restoring ? &*schedules.restoring : nullptr}) {
      if (schedule != nullptr) {
        m_programs.push_back(&schedule->ranks.at(self));
      }
    }
    std::uint32_t workers = 0;
    for (std::size_t r = 0; r < m_schedule.worker.size(); ++r) {
      if (r == self) {
        m_worker_index = workers;
      }
      workers += m_schedule.worker[r] ? 1U : 0U;
    }
    m_values.emplace(workers);
    if (m_schedule.outcome == Outcome::latest) {
      m_latest.emplace(workers, m_schedule.steps);
    } else if (m_schedule.outcome == Outcome::fixed_sums) {
      m_fixed.emplace(workers, m_schedule.fixed);
    }
    m_worker = m_schedule.worker[self];
  }

  JobResult run(const std::function<void(std::size_t, double)>& progress) {
    log(LogLevel::debug, "registration");
    const ThreadPlaces places =
        place_threads(allowed_cpus(), m_programs.front()->lanes.size(), m_options.local_rank,
                      m_options.local_size, m_options.compute, m_options.lane_cpus);
    JobResult result;
    connect(places.lanes, result);
    result.verification.resize(static_cast<std::size_t>(m_rendezvous.size()));
    for (const RankProgram& rank : m_schedule.ranks) {
      result.passes = std::max(result.passes, delay_seconds(rank));
    }
    if (m_options.compute) {
      result.context["compute"] = assemble_crew(places.compute);
    }
    Lanes lanes(m_programs, *m_mover, m_buffers, places.lanes, m_crew ? &*m_crew : nullptr,
                m_options.trace != nullptr);
    if (const std::string& folder = m_options.checkpoints.save_folder; !folder.empty()) {
      m_lock.emplace(m_rendezvous, folder, m_options.limit);
    }
    const std::vector<std::uint64_t> resumed = resume(lanes);
    const std::uint64_t first = m_options.carried != nullptr ? take_over(lanes)
                                : resumed.empty()            ? 0
                                                             : resumed.back();
    result.warm_up = warm_up_after(first);
    if (!resumed.empty()) {
      result.resumed_from = first;
    }
    start_checkpoints(resumed);
    std::unique_ptr<StoppingRule> rule = stopping_rule(first);
    double measured = 0;
    for (auto iteration = static_cast<std::uint32_t>(first);; ++iteration) {
      const bool counted = iteration - first >= result.warm_up;
      bool go = m_rendezvous.rank() != 0 || !counted || !rule->done() ||
                (!m_options.iterations && result.iterations.size() < k_least_iterations);
      const std::uint64_t done = counted ? iteration - first - result.warm_up : 0;
      if (m_options.pause.every > 0 && done > 0 && done % m_options.pause.every == 0) {
        log(LogLevel::debug, "pause {}", iteration);
        go = m_options.pause.call(go);
      }
      prepare(iteration);
      log(LogLevel::debug, "iteration {}", iteration);
      std::vector<RankSample> samples(static_cast<std::size_t>(m_rendezvous.size()));
      const std::optional<IterationKind> kind = everybody_ready(iteration, go, samples, result);
      if (!kind) {
        result.steps = iteration;
        break;
      }
      const bool saves = *kind == IterationKind::saving;
      iterate(lanes, saves ? k_saving : k_usual, iteration, samples);
      log(LogLevel::debug, "verification {}", iteration);
      const double seconds = seconds_of(samples);
      pull(saves);
      if (saves) {
        const TestValues::Result copies = check_copies(iteration);
        m_checkpoints->save(iteration, copies.first_error);
        m_last = verify(iteration);
        m_last.checked_bytes += copies.checked_bytes;
        m_last.wrong_elements += copies.wrong_elements;
        m_last.first_error =
            copies.first_error.empty() ? m_last.first_error : "saved " + copies.first_error;
      } else {
        m_last = verify(iteration);
      }
      if (m_rendezvous.rank() == 0) {
        if (counted) {
          measured += seconds;
          rule->add(seconds, Seconds(measured));
          result.iterations.push_back(samples);
          result.kinds.push_back(*kind);
        }
        progress(iteration + 1, seconds);
      }
    }
    log(LogLevel::debug, "end");
    finish(result);
    if (const std::string mistake = m_crew ? m_crew->mistake() : ""; !mistake.empty()) {
      fail(ErrorKind::operation,
           fmt::format("rank {} computed wrongly in its passes: {}", m_rendezvous.rank(), mistake));
    }
    if (m_options.trace) {
      m_options.trace(on_root_clock(lanes.timeline()));
    }
    if (m_options.at_end) {
      m_options.at_end(m_views, result.steps);
    }
    m_mover->disconnect(
        [this] { static_cast<void>(m_rendezvous.all_gather("", m_options.limit)); });
    if (m_fixed) {
      result.error_bound = m_fixed->error_bound();
    }
    result.context["binding"] =
        m_options.compute && m_options.compute->dedicated
            ? fmt::format("lanes and computation on different ones of {} processors",
                          allowed_cpus().size())
            : fmt::format("each lane on one of {} processors, in turn", allowed_cpus().size());
    return result;
  }

private:
  /// Of the iterations that are left at least one counts.
  [[nodiscard]] std::uint32_t warm_up_after(std::uint64_t first) const {
    if (!m_options.iterations) {
      return m_options.warm_up;
    }
    return static_cast<std::uint32_t>(
        std::min<std::uint64_t>(m_options.warm_up, steps_left(first) - 1));
  }
  [[nodiscard]] std::uint64_t steps_left(std::uint64_t first) const {
    const std::uint64_t all = std::uint64_t{*m_options.iterations} + m_options.warm_up;
    if (first >= all) {
      fail(ErrorKind::input,
           fmt::format("{}: its checkpoint is after step {}, and {} iterations with {} to warm up "
                       "are {} steps in all; ask for more --iterations",
                       m_options.checkpoints.resume_folder, first, *m_options.iterations,
                       m_options.warm_up, all));
    }
    return all - first;
  }

  [[nodiscard]] std::unique_ptr<StoppingRule> stopping_rule(std::uint64_t first) const {
    if (m_options.iterations) {
      return std::make_unique<FixedCountRule>(steps_left(first) - warm_up_after(first));
    }
    StoppingLimits limits;
    limits.budget = m_options.budget;
    return std::make_unique<MedianStoppingRule>(limits);
  }

  /// `cpus`: of the lanes.
  void connect(const std::vector<int>& cpus, JobResult& result) {
    m_mover =
        m_options.mover
            ? m_options.mover()
            : make_mover(m_options.transport, m_options.habits,
                         {m_options.local_rank, m_options.host_memory, m_options.pci_address});
    std::uint64_t longest = 0;
    for (const RankProgram* program : m_programs) {
      for (const LaneProgram& lane : program->lanes) {
        for (const Op& op : lane.ops()) {
          longest = std::max(longest, op.kind == OpKind::write ? op.bytes : 0);
        }
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
    for (const std::uint64_t bytes : m_programs.back()->buffer_bytes) {
      m_buffers.push_back(m_mover->allocate(bytes));
      m_views.push_back(m_mover->view(m_buffers.back()));
    }
    if (const std::string homes = gather_homes(settle(cpus)); !homes.empty()) {
      result.context["lanes"] = homes;
    }
    if (m_schedule.outcome == Outcome::parameters) {
      m_replica.emplace(m_schedule, static_cast<std::size_t>(m_rendezvous.rank()), *m_values);
      m_replica->fill(m_views);
    }
    m_mover->open(static_cast<int>(m_programs.front()->lanes.size()));
    const std::vector<std::string> addresses =
        m_rendezvous.all_gather(m_mover->address(), m_options.limit);
    m_mover->set_meanwhile([this] { m_rendezvous.watch(Seconds(0)); });
    // A peer that just ended cannot be connected to.
    m_rendezvous.or_blame_a_peer(k_news_limit,
                                 [&] { m_mover->connect(m_rendezvous.rank(), addresses); });
  }

  /// Brings the memory that a lane works in to the NUMA node of its thread, before anything pins
  /// it. Returns what is worth saying of the lanes' places; nothing where all processors and all
  /// memory are alike.
  [[nodiscard]] std::string settle(const std::vector<int>& cpus) const {
    std::string text;
    const auto wanted = std::count_if(m_options.lane_cpus.begin(), m_options.lane_cpus.end(),
                                      [](int cpu) { return cpu >= 0; });
    if (wanted > 0) {
      const std::size_t lanes = std::min(cpus.size(), m_options.lane_cpus.size());
      std::size_t there = 0;
      for (std::size_t l = 0; l < lanes; ++l) {
        there += m_options.lane_cpus[l] >= 0 && cpus[l] == m_options.lane_cpus[l] ? 1U : 0U;
      }
      text = fmt::format("{} of {} lanes on the plan's processors", there, wanted);
    }
    const bool here = std::equal(m_views.begin(), m_views.end(), m_buffers.begin(),
                                 [](auto a, auto b) { return a.data() == b.data(); });
    if (!has_several_numa_nodes() || !here) { // else all memory is alike, or a GPU's
      return text;
    }
    std::vector<std::optional<int>> nodes;
    for (const int cpu : cpus) {
      nodes.push_back(cpu >= 0 ? numa_node_of_cpu(cpu) : std::nullopt);
    }
    const PageMove moved = move_home(
        page_homes(program(), m_views, nodes, static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))));
    return text + fmt::format("{}{} of {} pages on their lane's NUMA node{}{}",
                              text.empty() ? "" : ", ", moved.pages - moved.elsewhere, moved.pages,
                              moved.problem.empty() ? "" : ": ", moved.problem);
  }

  /// "rank 8: ..." of all ranks that have something to say.
  [[nodiscard]] std::string gather_homes(const std::string& mine) {
    std::string text;
    const std::vector<std::string> all = m_rendezvous.all_gather(mine, m_options.limit);
    for (std::size_t r = 0; r < all.size(); ++r) {
      if (!all[r].empty()) {
        text += fmt::format("{}rank {}: {}", text.empty() ? "" : "; ", r, all[r]);
      }
    }
    return text;
  }

  /// Threads that work in this rank's passes, and what a round of that work takes while all ranks
  /// do it and nothing is communicated. Returns what rank 0's report says of it.
  std::string assemble_crew(const std::vector<int>& cpus) {
    const std::vector<std::int64_t> passes = passes_of_lanes(*m_programs.front());
    if (!passes.empty()) {
      m_crew.emplace(m_options.compute->operation, cpus);
    }
    m_rendezvous.all_gather("", m_options.limit); // so that all begin together
    PassCrew::RoundTime round;
    std::vector<std::uint64_t> rounds;
    if (m_crew) {
      round = m_crew->time_round();
      rounds = rounds_of(passes, round.median_s);
      m_crew->set_passes(rounds, m_programs.front()->lanes.size());
    }
    const std::uint64_t all = std::accumulate(rounds.begin(), rounds.end(), std::uint64_t{0});
    std::string text;
    const Json mine{all, round.median_s, round.spread};
    const std::vector<std::string> theirs = m_rendezvous.all_gather(mine.dump(), m_options.limit);
    for (std::size_t r = 0; r < theirs.size(); ++r) {
      const Json rank = Json::parse(theirs[r]);
      if (rank.at(0).get<std::uint64_t>() == 0) {
        continue;
      }
      text +=
          fmt::format("{}rank {}: {} rounds of {} (spread {:.0f} %)", text.empty() ? "" : "; ", r,
                      rank.at(0).get<std::uint64_t>(), to_text(Seconds(rank.at(1).get<double>())),
                      100 * rank.at(2).get<double>());
    }
    if (text.empty()) {
      fail(ErrorKind::input,
           fmt::format("--compute {}: no rank has passes as long as one round of it takes ({} "
                       "here); plan with longer --forward and --backward",
                       m_options.compute->operation, to_text(Seconds(round.median_s))));
    }
    return fmt::format(
        "{} on {} thread{} a rank, {}, timed alone; {}", m_options.compute->operation,
        m_options.compute->threads, m_options.compute->threads == 1 ? "" : "s",
        m_options.compute->dedicated ? "on processors of their own" : "on the lanes' processors",
        text);
  }

  void prepare(std::uint32_t iteration) {
    for (std::uint32_t b = 0; b < m_views.size(); ++b) {
      if (b != k_gradient_buffer && !m_programs.back()->keeps(b)) {
        poison(m_views[b]);
      }
    }
    if (m_checkpoints && m_checkpoints->due(iteration) && m_checkpoints->idle()) {
      for (const SavedRun& run : m_programs[k_saving]->saved) {
        poison(m_views[run.copy.buffer].subspan(run.copy.offset, run.kept.bytes));
      }
    }
    if (m_latest) {
      m_latest->fill_parameters(m_schedule, program(), m_views);
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

  /// Brings what the lanes made to where the processor sees it; of a snapshot only a new one, for
  /// one that is being written must not be touched.
  void pull(bool with_snapshot) {
    for (std::size_t b = 0; b < m_buffers.size(); ++b) {
      if (with_snapshot || b < program().buffer_bytes.size()) {
        m_mover->pull(m_buffers[b]);
      }
    }
  }

  /// What this rank saves, against what it had before the step.
  [[nodiscard]] TestValues::Result check_copies(std::uint32_t iteration) const {
    std::vector<KeptRun> places;
    for (const SavedRun& run : m_programs[k_saving]->saved) {
      places.push_back(run.kept);
      places.back().at = run.copy;
    }
    return m_replica->compare(m_views, places, iteration);
  }

  [[nodiscard]] TestValues::Result verify(std::uint32_t iteration) {
    if (m_replica) {
      return m_replica->check(m_views, iteration);
    }
    if (m_latest) {
      return m_latest->check(m_schedule, program(), m_views,
                             m_worker ? std::optional(m_worker_index) : std::nullopt);
    }
    if (m_fixed && m_worker) {
      return m_fixed->check(m_views[k_gradient_buffer], m_schedule.runs, iteration);
    }
    return m_worker ? m_values->check(m_views[k_gradient_buffer], m_schedule.runs, iteration)
                    : TestValues::Result{};
  }

  [[nodiscard]] const RankProgram& program() const { return *m_programs[k_usual]; }

  [[nodiscard]] std::int64_t root_clock() const {
    return monotonic_ns() + m_rendezvous.clock_offset().offset_ns;
  }

  /// Barrier before an iteration; brings rank 0 the last one's verification. Says what the
  /// iteration is; nothing: rank 0 says that it is enough.
  std::optional<IterationKind> everybody_ready(std::uint32_t iteration, bool go,
                                               std::vector<RankSample>& samples,
                                               JobResult& result) {
    Json mine{{"ready", root_clock()},
              {"go", go},
              {"checked", m_last.checked_bytes},
              {"wrong", m_last.wrong_elements},
              {"error", m_last.first_error},
              {"max_error", m_last.max_error},
              {"host", host_name()},
              {"uncertainty", m_rendezvous.clock_offset().uncertainty_ns}};
    if (m_checkpoints) {
      mine["checkpoints"] = m_checkpoints->state();
    }
    std::vector<Json> checkpoints;
    const std::vector<std::string> all = m_rendezvous.all_gather(mine.dump(), m_options.limit);
    for (std::size_t r = 0; r < all.size(); ++r) {
      const Json theirs = Json::parse(all[r]);
      if (m_checkpoints) {
        checkpoints.push_back(theirs.at("checkpoints"));
      }
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
    const bool saves = m_checkpoints &&
                       m_checkpoints->hear(checkpoints, go ? std::optional<std::uint64_t>(iteration)
                                                           : std::nullopt);
    if (!go) {
      return std::nullopt;
    }
    return saves                                               ? IterationKind::saving
           : m_checkpoints && m_checkpoints->somebody_writes() ? IterationKind::writing
                                                               : IterationKind::usual;
  }

  void iterate(Lanes& lanes, Round round, std::uint32_t iteration,
               std::vector<RankSample>& samples) {
    const std::int64_t cpu_before = cpu_ns();
    const std::int64_t busy_before = machine_busy_ns();
    const std::int64_t computed_before = m_crew ? m_crew->busy_ns() : 0;
    RankSample mine;
    mine.start_ns = root_clock();
    run_round(lanes, round, iteration);
    mine.end_ns = root_clock();
    check_lanes(lanes);
    mine.cpu_ns = cpu_ns() - cpu_before;
    mine.machine_busy_ns = machine_busy_ns() - busy_before;
    mine.compute_ns = m_crew ? m_crew->busy_ns() - computed_before : 0;
    for (const LaneTimes& t : lanes.times()) {
      mine.reduce_ns += t.reduce_ns;
      mine.update_ns += t.update_ns;
      mine.wait_ns += t.wait_ns;
      mine.lane_ns += t.total_ns;
    }
    const Json text{mine.start_ns,        mine.end_ns,    mine.reduce_ns,
                    mine.wait_ns,         mine.lane_ns,   mine.cpu_ns,
                    mine.machine_busy_ns, mine.update_ns, mine.compute_ns};
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
      s.compute_ns = v.at(8);
    }
  }

  void run_round(Lanes& lanes, std::size_t round, std::uint32_t iteration) {
    lanes.start(round, std::uint64_t{iteration} + 1);
    const std::int64_t deadline =
        monotonic_ns() + static_cast<std::int64_t>(m_options.limit.count() * 1e9);
    while (!lanes.finished_within(std::chrono::milliseconds(20))) {
      m_rendezvous.watch(Seconds(0));
      if (monotonic_ns() > deadline) {
        throw PeerError(fmt::format("rank {} made no end of an iteration within {} (--limit): {}",
                                    m_rendezvous.rank(), to_text(m_options.limit),
                                    lanes.stop_and_describe()));
      }
    }
  }

  void check_lanes(const Lanes& lanes) {
    if (const std::string error = lanes.error(); !error.empty()) {
      // A transport notices a dead peer at once, or, when packets vanish, after a time of its own.
      m_rendezvous.blame_a_peer(m_rendezvous.patience());
      fail(ErrorKind::operation, fmt::format("rank {} {}", m_rendezvous.rank(), error));
    }
  }

  [[nodiscard]] CheckpointJob checkpoint_job() const {
    return {m_options.checkpoints.plan, m_rendezvous.rank(), m_rendezvous.size()};
  }

  /// Goes on from the newest checkpoint of which every rank's part is whole. Returns the steps of
  /// the one before, if there is one, and of that one; nothing when this run is from the start.
  std::vector<std::uint64_t> resume(Lanes& lanes) {
    if (m_options.checkpoints.resume_folder.empty()) {
      return {};
    }
    const Resumed resumed =
        load_checkpoint(m_rendezvous, CheckpointFolder(m_options.checkpoints.resume_folder),
                        checkpoint_job(), *m_programs[k_saving], m_options.limit);
    const std::uint64_t steps = resumed.steps.back();
    if (m_rendezvous.rank() == 0) {
      log(LogLevel::info, "making {} steps again, to compare them with the checkpoint", steps);
    }
    const TestValues::Result found = restore(lanes, resumed.part.data, steps);
    if (found.wrong_elements > 0) {
      fail(ErrorKind::input,
           fmt::format("{}: the checkpoint after step {} is whole, but {} of its elements are not "
                       "what that many steps give; first: rank {}, {}",
                       m_options.checkpoints.resume_folder, steps, found.wrong_elements,
                       m_rendezvous.rank(), found.first_error));
    }
    if (m_rendezvous.rank() == 0) {
      log(LogLevel::info, "resumed after step {}", steps);
    }
    return resumed.steps;
  }

  /// Goes on with what the ranks had under another plan. Returns the steps made so far.
  std::uint64_t take_over(Lanes& lanes) {
    const Carried& carried = *m_options.carried;
    const TestValues::Result found = restore(lanes, carried.bytes, carried.steps);
    if (found.wrong_elements > 0) {
      fail(ErrorKind::operation,
           fmt::format("rank {}: {} elements that came from the plan before are not what {} steps "
                       "give; first: {}",
                       m_rendezvous.rank(), found.wrong_elements, carried.steps,
                       found.first_error));
    }
    return carried.steps;
  }

  /// Puts this rank's saved stretches where they belong, brings them to all others that keep them,
  /// makes as many steps by itself, and compares.
  [[nodiscard]] TestValues::Result restore(Lanes& lanes, std::string_view saved,
                                           std::uint64_t steps) {
    const RankProgram& restoring = *m_programs.back();
    for (const std::span<std::byte> view : m_views) {
      poison(view);
    }
    for (const SavedRun& run : restoring.saved) {
      std::memcpy(m_views[run.kept.at.buffer].data() + run.kept.at.offset, saved.data(),
                  run.kept.bytes);
      saved.remove_prefix(run.kept.bytes);
    }
    for (const std::span<std::byte> buffer : m_buffers) {
      m_mover->push(buffer);
    }
    m_rendezvous.all_gather("", m_options.limit);
    run_round(lanes, m_programs.size() - 1, 0);
    check_lanes(lanes);
    pull(true);
    for (std::uint32_t step = 0; step < steps; ++step) {
      m_replica->step(step);
      m_rendezvous.all_gather("", m_options.limit); // however long all of them take together
      if (m_rendezvous.rank() == 0 && m_options.made_again) {
        m_options.made_again(step + 1, steps);
      }
    }
    return m_replica->compare(m_views, restoring.kept, static_cast<std::uint32_t>(steps));
  }

  void start_checkpoints(const std::vector<std::uint64_t>& resumed) {
    const CheckpointOptions& options = m_options.checkpoints;
    if (options.save_folder.empty()) {
      return;
    }
    const CheckpointFolder folder(options.save_folder);
    const bool goes_on =
        !resumed.empty() && same_folder(options.save_folder, options.resume_folder);
    // With folders of the machines' own, any of them may be that of another job's rank 0. Nobody
    // removes anything before all have looked.
    std::string mine;
    if (const std::vector<std::uint64_t> there = folder.complete_steps();
        !goes_on && !there.empty()) {
      mine = fmt::format("{} on {} holds a checkpoint after step {} already; --resume {} goes on "
                         "with it, or name another folder, or remove it",
                         options.save_folder, host_name(), there.back(), options.save_folder);
    }
    for (const std::string& theirs : m_rendezvous.all_gather(mine, m_options.limit)) {
      if (!theirs.empty()) {
        fail(ErrorKind::input, theirs);
      }
    }
    m_checkpoints.emplace(folder, checkpoint_job(), options.every, m_schedule.optimizer,
                          *m_programs[k_saving], m_views,
                          goes_on ? resumed : std::vector<std::uint64_t>());
  }

  /// Until the last checkpoint is complete, which costs no iteration any more; then tells rank 0
  /// what the parameters are.
  void finish(JobResult& result) {
    while (m_checkpoints && !m_checkpoints->concluded()) {
      static_cast<void>(m_checkpoints->idle_within(std::chrono::milliseconds(100)));
      std::vector<Json> states;
      for (const std::string& text :
           m_rendezvous.all_gather(m_checkpoints->state().dump(), m_options.limit)) {
        states.push_back(Json::parse(text));
      }
      m_checkpoints->hear(states, std::nullopt);
    }
    if (m_checkpoints) {
      result.checkpoints = m_checkpoints->counts();
      while (!m_checkpoints->idle_within(std::chrono::milliseconds(100))) { // it removes old ones
        m_rendezvous.watch(Seconds(0));
      }
    }
    if (!m_replica) {
      return;
    }
    // Every worker holds all parameters, and the verification has found them equal.
    const bool mine = m_worker && m_worker_index == 0;
    for (const std::string& digest :
         m_rendezvous.all_gather(mine ? parameters_digest() : "", m_options.limit)) {
      result.parameters_digest = digest.empty() ? result.parameters_digest : digest;
    }
  }

  /// Of all parameters in the gradient's order, wherever they lie.
  [[nodiscard]] std::string parameters_digest() const {
    std::vector<ParameterRun> runs = program().parameters;
    std::sort(runs.begin(), runs.end(), [](const ParameterRun& a, const ParameterRun& b) {
      return a.gradient_offset < b.gradient_offset;
    });
    Digester digester;
    std::uint64_t next = 0;
    for (const ParameterRun& run : runs) {
      const std::uint64_t skip = std::max(next, run.gradient_offset) - run.gradient_offset;
      if (skip < run.bytes) {
        const auto bytes = m_views[run.at.buffer].subspan(run.at.offset + skip, run.bytes - skip);
        digester.add({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
        next = run.gradient_offset + run.bytes;
      }
    }
    return digester.finish();
  }

  [[nodiscard]] RankTimeline on_root_clock(RankTimeline timeline) const {
    const std::int64_t offset = m_rendezvous.clock_offset().offset_ns;
    for (std::vector<OpSpan>& lane : timeline) {
      for (OpSpan& span : lane) {
        span.begin_ns += offset;
        span.end_ns += offset;
      }
    }
    return timeline;
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
  /// This rank's of the usual schedule, and, with checkpoints, of those to save and to restore.
  std::vector<const RankProgram*> m_programs;
  std::optional<TestValues> m_values;
  std::optional<LatestValues> m_latest;      ///< Outcome::latest
  std::optional<FixedValues> m_fixed;        ///< Outcome::fixed_sums
  std::optional<ParameterReplica> m_replica; ///< where the schedule makes optimizer steps
  std::uint32_t m_worker_index = 0;
  bool m_worker = false;
  std::unique_ptr<Mover> m_mover;
  std::vector<std::span<std::byte>> m_buffers;
  std::vector<std::span<std::byte>> m_views; ///< where the processor fills and checks them
  std::optional<PassCrew> m_crew;            ///< with RunOptions::compute, where there are passes
  std::optional<FolderLock> m_lock;          ///< of the folder that checkpoints are saved in
  std::optional<Checkpoints> m_checkpoints;
  TestValues::Result m_last;
};

} // namespace

JobResult run_rank(Rendezvous& rendezvous, const JobSchedules& schedules, const RunOptions& options,
                   const std::function<void(std::size_t, double)>& progress) {
  try {
    return Rank(rendezvous, schedules, options).run(progress);
  } catch (const std::exception& e) {
    rendezvous.give_up(e.what());
    throw;
  }
}

} // namespace reckon
