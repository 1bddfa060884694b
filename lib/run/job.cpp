// SPDX-License-Identifier: Apache-2.0
#include "run/job.hpp"

#include "core/clock.hpp"
#include "core/log.hpp"
#include "core/processors.hpp"
#include "launch/peer_fields.hpp"
#include "launch/sockets.hpp"
#include "run/folder_lock.hpp"
#include "run/iteration_count.hpp"
#include "run/load_checkpoint.hpp"
#include "run/session.hpp"
#include "run/transports.hpp"
#include "run/verifier.hpp"
#include "stats/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <thread>
#include <utility>

namespace reckon {
namespace {

/// What its passes are, in rounds of work.
struct CrewRounds {
  std::uint64_t rounds = 0;
  double round_s = 0, spread = 0;
  [[nodiscard]] PeerFields fields() {
    return {{"rounds", &rounds}, {"round_s", &round_s}, {"spread", &spread}};
  }
};

/// What it says at the barrier before an iteration.
struct Arrival {
  bool go = true;                 ///< rank 0: another iteration comes
  std::int64_t ready_ns = 0;      ///< since when it waits, on rank 0's clock
  std::int64_t round_trip_ns = 0; ///< with rank 0
  RankVerification found;         ///< in the last one
  CheckpointState checkpoints;
  [[nodiscard]] PeerFields fields() {
    PeerFields all = checkpoints.fields();
    all.insert(all.end(), {{"go", &go},
                           {"ready_ns", &ready_ns},
                           {"round_trip_ns", &round_trip_ns},
                           {"checked_bytes", &found.checked_bytes},
                           {"wrong_elements", &found.wrong_elements},
                           {"first_error", &found.first_error},
                           {"max_error", &found.max_error}});
    return all;
  }
};

bool same_folder(const std::string& a, const std::string& b) {
  std::error_code error;
  return a == b || std::filesystem::equivalent(a, b, error);
}

/// What an iteration of the lanes can be: numbers of programs. What restores is the last one.
enum Round : std::size_t { k_usual, k_saving };

class Rank {
public:
  Rank(Rendezvous& rendezvous, const JobSchedules& schedules, const RunOptions& options)
      : m_rendezvous(rendezvous), m_schedule(schedules.usual), m_options(options),
        m_self(static_cast<std::size_t>(rendezvous.rank())),
        m_verifier(make_verifier(schedules.usual, m_self)) {
    m_programs.push_back(&schedules.usual.ranks.at(m_self));
    for (const std::optional<Schedule>* more : {&schedules.saving, &schedules.restoring}) {
      if (*more) {
        m_programs.push_back(&(*more)->ranks.at(m_self));
      }
    }
  }

  JobResult run(const std::function<void(std::size_t, double)>& progress) {
    log(LogLevel::debug, "registration");
    const ThreadPlaces places =
        place_threads(allowed_cpus(), m_programs.front()->lanes.size(), m_options.local_rank,
                      m_options.local_size, m_options.compute, m_options.lane_cpus);
    m_session.emplace(m_rendezvous, m_programs, m_options, places.lanes,
                      m_options.mover ? m_options.mover() : mover_for(m_options, m_self));
    begin_result();
    m_verifier->begin(views());
    if (m_options.compute) {
      m_result.context["compute"] = assemble_crew(places.compute);
    }
    m_session->start_lanes([this](const LaneProgram& program) {
      return m_crew ? m_crew->delays_of(program) : nullptr;
    });
    m_result.timeline = m_session->lanes().timeline(); // nothing yet
    if (const std::string& folder = m_options.checkpoints.save_folder; !folder.empty()) {
      m_lock.emplace(m_rendezvous, folder, m_options.limit);
    }
    const std::vector<std::uint64_t> resumed = resume();
    if (!resumed.empty()) {
      m_result.resumed_from = resumed.back();
    }
    const std::uint64_t first =
        m_options.carried != nullptr ? take_over() : m_result.resumed_from.value_or(0);
    IterationCount count(m_options, first);
    m_result.warm_up = count.warm_up();
    start_checkpoints(resumed);
    auto iteration = static_cast<std::uint32_t>(first);
    m_first_began_ns = monotonic_ns();
    while (iterate(iteration, count, progress)) {
      ++iteration;
    }
    log(LogLevel::debug, "end");
    m_result.steps = iteration;
    leave();
    return std::move(m_result);
  }

private:
  /// What is known once all have joined.
  void begin_result() {
    const RankPlaces& places = m_session->places();
    m_result.hosts = places.hosts;
    m_result.clock_uncertainty_ns = places.clock_uncertainty_ns;
    if (!places.lanes.empty()) {
      m_result.context["lanes"] = places.lanes;
    }
    m_result.verification.resize(m_result.hosts.size());
    for (const RankProgram& rank : m_schedule.ranks) {
      m_result.passes = std::max(m_result.passes, delay_seconds(rank));
    }
    m_result.error_bound = m_verifier->error_bound();
    const std::size_t processors = allowed_cpus().size();
    m_result.context["binding"] =
        m_options.compute && m_options.compute->dedicated
            ? fmt::format("lanes and computation on different ones of {} processors", processors)
            : fmt::format("each lane on one of {} processors, in turn", processors);
  }

  /// Threads that work in this rank's passes, and what a round of that work takes while all ranks
  /// do it and nothing is communicated. Returns what rank 0's report says of it.
  std::string assemble_crew(const std::vector<int>& cpus) {
    const PassCompute& compute = *m_options.compute;
    const std::vector<std::int64_t> passes = passes_of_lanes(*m_programs.front());
    if (!passes.empty()) {
      m_crew.emplace(compute.operation, cpus);
    }
    m_rendezvous.all_gather("", m_options.limit); // so that all begin together
    CrewRounds mine;
    if (m_crew) {
      const PassCrew::RoundTime round = m_crew->time_round();
      const std::vector<std::uint64_t> rounds = rounds_of(passes, round.median_s);
      m_crew->set_passes(rounds, m_programs.front()->lanes.size());
      mine = {std::accumulate(rounds.begin(), rounds.end(), std::uint64_t{0}), round.median_s,
              round.spread};
    }
    std::string text;
    const std::vector<CrewRounds> all = gather(m_rendezvous, mine, m_options.limit);
    for (std::size_t r = 0; r < all.size(); ++r) {
      if (all[r].rounds > 0) {
        text +=
            fmt::format("{}rank {}: {} rounds of {} (spread {:.0f} %)", text.empty() ? "" : "; ", r,
                        all[r].rounds, to_text(Seconds(all[r].round_s)), 100 * all[r].spread);
      }
    }
    if (text.empty()) {
      fail(ErrorKind::input,
           fmt::format("--compute {}: no rank has passes as long as one round of it takes ({} "
                       "here); plan with longer --forward and --backward",
                       compute.operation, to_text(Seconds(mine.round_s))));
    }
    return fmt::format(
        "{} on {} thread{} a rank, {}, timed alone; {}", compute.operation, compute.threads,
        compute.threads == 1 ? "" : "s",
        compute.dedicated ? "on processors of their own" : "on the lanes' processors", text);
  }

  /// One iteration, with what is between it and the one before. False: rank 0 says that there are
  /// enough.
  bool iterate(std::uint32_t iteration, IterationCount& count,
               const std::function<void(std::size_t, double)>& progress) {
    bool go = !count.enough(); // rank 0's counts
    if (count.pauses(iteration, m_options.pause.every)) {
      log(LogLevel::debug, "pause {}", iteration);
      go = m_options.pause.call(go);
    }
    prepare(iteration);
    log(LogLevel::debug, "iteration {}", iteration);
    RankSample mine;
    mine.ready_ns = m_session->root_clock_ns();
    const std::optional<IterationKind> kind = meet(iteration, go, mine);
    if (!kind) {
      return false;
    }
    const bool saves = *kind == IterationKind::saving;
    const std::vector<RankSample> samples = measure(saves ? k_saving : k_usual, iteration, mine);
    if (!saves && count.counts(iteration)) {
      keep_timeline(samples);
    }
    log(LogLevel::debug, "verification {}", iteration);
    pull(saves);
    RankVerification copies;
    if (saves) {
      copies = m_verifier->replica()->compare(views(), copies_of(*m_programs[k_saving]), iteration);
      m_checkpoints->save(iteration, copies.first_error);
      copies.first_error = copies.first_error.empty() ? "" : "saved " + copies.first_error;
    }
    m_found = copies;
    m_found.add(m_verifier->check(views(), iteration));
    if (m_rendezvous.rank() == 0) {
      const double seconds = iteration_seconds(samples);
      if (count.counts(iteration)) {
        count.add(seconds, Seconds(static_cast<double>(monotonic_ns() - m_first_began_ns) * 1e-9));
        m_result.iterations.push_back(samples);
        m_result.kinds.push_back(*kind);
      }
      progress(iteration + 1, seconds);
    }
    return true;
  }

  void prepare(std::uint32_t iteration) {
    const Views mine = views();
    poison_unkept(mine, *m_programs.back());
    if (m_checkpoints && m_checkpoints->due(iteration) && m_checkpoints->idle()) {
      for (const SavedRun& run : m_programs[k_saving]->saved) {
        poison(mine[run.copy.buffer].subspan(run.copy.offset, run.kept.bytes));
      }
    }
    m_verifier->fill(mine, iteration);
    m_session->memory().push();
  }

  /// Of a snapshot only a new one: one that is being written must not be touched.
  void pull(bool with_snapshot) {
    m_session->memory().pull(
        m_programs[with_snapshot ? m_programs.size() - 1 : k_usual]->buffer_bytes.size());
  }

  [[nodiscard]] Views views() const { return m_session->memory().views(); }
  [[nodiscard]] std::int64_t computed_ns() const { return m_crew ? m_crew->busy_ns() : 0; }

  /// Barrier before an iteration; brings rank 0 the last one's verification. Says what the
  /// iteration is; nothing: rank 0 says that it is enough. Fills in when it begins.
  std::optional<IterationKind> meet(std::uint32_t iteration, bool go, RankSample& mine) {
    const std::vector<Arrival> all =
        gather(m_rendezvous,
               Arrival{go, mine.ready_ns, 2 * m_rendezvous.clock_offset().uncertainty_ns, m_found,
                       m_checkpoints ? m_checkpoints->state() : CheckpointState()},
               m_options.limit);
    for (std::size_t r = 0; r < all.size(); ++r) {
      m_result.verification[r].add(all[r].found);
    }
    mine.begin_ns = begin_ns(std::ranges::max(all, {}, &Arrival::ready_ns).ready_ns,
                             std::ranges::max(all, {}, &Arrival::round_trip_ns).round_trip_ns);
    go = all.front().go;
    const bool saves = hear_of_checkpoints(all, go ? std::optional(iteration) : std::nullopt);
    if (!go) {
      return std::nullopt;
    }
    return saves                                               ? IterationKind::saving
           : m_checkpoints && m_checkpoints->somebody_writes() ? IterationKind::writing
                                                               : IterationKind::usual;
  }

  bool hear_of_checkpoints(const std::vector<Arrival>& all, std::optional<std::uint64_t> steps) {
    std::vector<CheckpointState> states;
    for (const Arrival& rank : all) {
      states.push_back(rank.checkpoints);
    }
    return m_checkpoints && m_checkpoints->hear(states, steps);
  }

  /// The timed part, and all ranks' samples of it.
  std::vector<RankSample> measure(Round round, std::uint32_t iteration, const RankSample& times) {
    std::this_thread::sleep_for(
        std::chrono::nanoseconds(times.begin_ns - m_session->root_clock_ns()));
    const ProcessorTimes used = ProcessorTimes::now();
    const SampleMeter meter(m_session->root_clock_ns(), computed_ns(), used);
    run_round(round, iteration);
    const std::int64_t end_ns = m_session->root_clock_ns();
    RankSample mine =
        meter.sample(end_ns, computed_ns(), ProcessorTimes::now(), m_session->lanes().times());
    mine.ready_ns = times.ready_ns;
    mine.begin_ns = times.begin_ns;
    return gather(m_rendezvous, mine, m_options.limit);
  }

  /// Keeps when the ops of the last iteration began and ended if it took about the median of those
  /// so far, at most the first hundred. All ranks have the same samples, so that all keep the same
  /// iteration.
  void keep_timeline(const std::vector<RankSample>& samples) {
    constexpr std::size_t k_most = 100;
    if (m_seconds.size() == k_most) {
      return;
    }
    const double seconds = iteration_seconds(samples);
    m_seconds.push_back(seconds);
    const double middle = median(m_seconds);
    if (m_seconds.size() > 1 && std::abs(seconds - middle) > std::abs(m_kept_seconds - middle)) {
      return;
    }
    m_kept_seconds = seconds;
    m_result.timeline = m_session->lanes().timeline();
    const std::int64_t shift = m_rendezvous.clock_offset().offset_ns - samples.front().begin_ns;
    for (std::vector<OpSpan>& lane : m_result.timeline) {
      for (OpSpan& span : lane) {
        span.begin_ns += shift;
        span.end_ns += shift;
      }
    }
  }

  void run_round(std::size_t round, std::uint32_t iteration) {
    m_session->start(round, std::uint64_t{iteration} + 1);
    const std::int64_t deadline = deadline_after(m_options.limit);
    while (!m_session->over_within(std::chrono::milliseconds(20))) {
      if (monotonic_ns() > deadline) {
        throw PeerError(
            fmt::format("rank {} did not finish an iteration within {} (--step-timeout): {}",
                        m_self, to_text(m_options.limit), m_session->stop_and_describe()));
      }
    }
  }

  [[nodiscard]] CheckpointJob checkpoint_job() const {
    return {m_options.checkpoints.plan, m_rendezvous.rank(), m_rendezvous.size()};
  }

  /// Goes on from the newest checkpoint of which every rank's part is whole. Returns the steps of
  /// the one before, if there is one, and of that one; nothing when this run is from the start.
  std::vector<std::uint64_t> resume() {
    const std::string& folder = m_options.checkpoints.resume_folder;
    if (folder.empty()) {
      return {};
    }
    const Resumed resumed =
        load_checkpoint(m_rendezvous, CheckpointFolder(folder), checkpoint_job(),
                        *m_programs[k_saving], m_options.limit);
    const std::uint64_t steps = resumed.steps.back();
    if (m_self == 0) {
      log(LogLevel::info, "making {} steps again, to compare them with the checkpoint", steps);
    }
    const RankVerification found = restore(resumed.part.data, steps);
    if (found.wrong_elements > 0) {
      fail(ErrorKind::input,
           fmt::format("{}: the checkpoint after step {} is whole, but {} of its elements are not "
                       "what that many steps give; first: rank {}, {}",
                       folder, steps, found.wrong_elements, m_self, found.first_error));
    }
    if (m_self == 0) {
      log(LogLevel::info, "resumed after step {}", steps);
    }
    return resumed.steps;
  }

  /// Goes on with what the ranks had under another plan. Returns the steps made so far.
  std::uint64_t take_over() {
    const Carried& carried = *m_options.carried;
    const RankVerification found = restore(carried.bytes, carried.steps);
    if (found.wrong_elements > 0) {
      fail(ErrorKind::operation,
           fmt::format("rank {}: {} elements that came from the plan before are not what {} steps "
                       "give; first: {}",
                       m_self, found.wrong_elements, carried.steps, found.first_error));
    }
    return carried.steps;
  }

  /// Puts this rank's saved stretches where they belong, brings them to all others that keep them,
  /// makes as many steps by itself, and compares.
  [[nodiscard]] RankVerification restore(std::string_view saved, std::uint64_t steps) {
    const RankProgram& restoring = *m_programs.back();
    const Views mine = views();
    for (const std::span<std::byte> view : mine) {
      poison(view);
    }
    for (const SavedRun& run : restoring.saved) {
      std::memcpy(mine[run.kept.at.buffer].data() + run.kept.at.offset, saved.data(),
                  run.kept.bytes);
      saved.remove_prefix(run.kept.bytes);
    }
    m_session->memory().push();
    m_rendezvous.all_gather("", m_options.limit);
    run_round(m_programs.size() - 1, 0);
    pull(true);
    ParameterReplica& replica = *m_verifier->replica();
    for (std::uint32_t step = 0; step < steps; ++step) {
      replica.step(step);
      m_rendezvous.all_gather("", m_options.limit); // however long all of them take together
      if (m_self == 0 && m_options.made_again) {
        m_options.made_again(step + 1, steps);
      }
    }
    return replica.compare(mine, restoring.kept, static_cast<std::uint32_t>(steps));
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
                          *m_programs[k_saving], views(),
                          goes_on ? resumed : std::vector<std::uint64_t>());
  }

  /// After the last iteration, until all ranks may free their memory.
  void leave() {
    conclude_checkpoints();
    // Every worker holds all parameters, and the verification has found them equal.
    if (m_verifier->replica() != nullptr) {
      const std::string mine = worker_index(m_schedule, m_self) == 0U
                                   ? parameters_digest(*m_programs[k_usual], views())
                                   : "";
      for (const std::string& digest : m_rendezvous.all_gather(mine, m_options.limit)) {
        m_result.parameters_digest = digest.empty() ? m_result.parameters_digest : digest;
      }
    }
    if (const std::string mistake = m_crew ? m_crew->mistake() : ""; !mistake.empty()) {
      fail(ErrorKind::operation,
           fmt::format("rank {} computed wrongly in its passes: {}", m_self, mistake));
    }
    if (m_options.at_end) {
      m_options.at_end(views(), m_result.steps);
    }
    m_session->leave();
  }

  /// Until the last checkpoint is complete, which costs no iteration any more.
  void conclude_checkpoints() {
    if (!m_checkpoints) {
      return;
    }
    while (!m_checkpoints->concluded()) {
      static_cast<void>(m_checkpoints->idle_within(std::chrono::milliseconds(100)));
      m_checkpoints->hear(gather(m_rendezvous, m_checkpoints->state(), m_options.limit),
                          std::nullopt);
    }
    m_result.checkpoints = m_checkpoints->counts();
    while (!m_checkpoints->idle_within(std::chrono::milliseconds(100))) { // it removes old ones
      m_rendezvous.watch(Seconds(0));
    }
  }

  Rendezvous& m_rendezvous;
  const Schedule& m_schedule;
  const RunOptions& m_options;
  std::size_t m_self;
  std::int64_t m_first_began_ns = 0; ///< the first iteration, its filling included
  /// This rank's of the usual schedule, and, with checkpoints, of those to save and to restore.
  std::vector<const RankProgram*> m_programs;
  std::unique_ptr<Verifier> m_verifier;
  JobResult m_result;
  std::vector<double> m_seconds;    ///< of the iterations whose timeline could be kept
  double m_kept_seconds = 0;        ///< of the one whose timeline is
  RankVerification m_found;         ///< in the last iteration
  std::optional<PassCrew> m_crew;   ///< with RunOptions::compute, where there are passes
  std::optional<Session> m_session; ///< whose lanes use the crew
  std::optional<FolderLock> m_lock; ///< of the folder that checkpoints are saved in
  std::optional<Checkpoints> m_checkpoints;
};

} // namespace

JobResult run_rank(Rendezvous& rendezvous, const JobSchedules& schedules, const RunOptions& options,
                   const std::function<void(std::size_t, double)>& progress) {
  try {
    if (!options.checksums) {
      return Rank(rendezvous, schedules, options).run(progress);
    }
    JobSchedules expecting = schedules;
    expect_arrivals(expecting.usual);
    for (std::optional<Schedule>* const more : {&expecting.saving, &expecting.restoring}) {
      if (*more) {
        expect_arrivals(**more);
      }
    }
    return Rank(rendezvous, expecting, options).run(progress);
  } catch (const std::exception& e) {
    rendezvous.give_up(e);
    throw;
  }
}

} // namespace reckon
