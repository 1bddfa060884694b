// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"
#include "plan_again.hpp"
#include "run_arguments.hpp"
#include "run_trace.hpp"

#include "adapt/adapt.hpp"
#include "adapt/diagnose.hpp"
#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/interrupt.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "core/processors.hpp"
#include "core/progress.hpp"
#include "core/units.hpp"
#include "documents/document.hpp"
#include "documents/json.hpp"
#include "documents/own_machines.hpp"
#include "launch/local.hpp"
#include "movers/mover.hpp"
#include "planning/injection.hpp"
#include "planning/planned_profile.hpp"
#include "present/document_text.hpp"
#include "rehearse/rehearsals.hpp"
#include "run/checks.hpp"
#include "run/emulation.hpp"
#include "run/job.hpp"
#include "run/placement.hpp"
#include "run/report.hpp"
#include "run/timelines.hpp"
#include "run/transports.hpp"
#include "schedule/snapshot.hpp"
#include "strategies/lower.hpp"
#include "strategies/plan_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

namespace reckon {
namespace {

void add_reprofiling(Report& report, ReprofilingReport reprofiling) {
  const bool changed = std::any_of(reprofiling.pauses.begin(), reprofiling.pauses.end(),
                                   [](const PauseReport& pause) { return !pause.pairs.empty(); });
  if (changed) {
    report.cause = fmt::format("links changed in the middle of the run ({:+.1f} %): see there",
                               100 * report.error);
  }
  report.reprofiling = std::move(reprofiling);
}

class RunCommand {
public:
  explicit RunCommand(const RunArguments& arguments)
      : m_arguments(arguments), m_plan(read_plan(arguments.plan)),
        m_link(link_to(arguments.plan, canonical_text(m_plan))) {
    refuse_overwriting(arguments.output, {arguments.plan}, "report");
    check_trace(arguments);
    m_job = job_from_environment();
    if (!arguments.check_only && arguments.transport.empty()) {
      check_gpus(m_plan, arguments.plan);
    }
    if (!m_job) {
      check_memory(m_plan, arguments.check_only, arguments.checkpoints());
      if (!arguments.check_only && !arguments.inject && predicts_own_machines(m_plan)) {
        log(LogLevel::warn,
            "{} predicts ranks on machines of their own; here all of them share this one "
            "(--inject PROFILE emulates the links between them)",
            arguments.plan);
      }
    }
    check_in_place(m_plan, arguments.plan);
    m_options = options_for(arguments, m_plan);
    leave_out_what_is_not_done();
    const bool as_planned = m_options.transport == m_plan.transport && !arguments.inject &&
                            without_text(m_options.habits).empty();
    if (!as_planned && std::exchange(m_plan.sums_in_place, false) && (!m_job || m_job->rank == 0)) {
      // Emulated links, and what a transport is worth without a habit, show in what is sent.
      log(LogLevel::warn, "{} makes sums in place, over {}; this run sends them, over {}{}",
          arguments.plan, m_plan.transport, m_options.transport,
          arguments.inject                         ? " with --inject"
          : without_text(m_options.habits).empty() ? ""
                                                   : " with --without");
    }
    if (!arguments.check_only && !arguments.inject) {
      m_options.other_machine = other_machine(m_plan, this_machine());
    }
    if (!m_options.other_machine.empty() && (!m_job || m_job->rank == 0)) {
      log(LogLevel::warn,
          "{}: {}: this run gets no verdict; plan from a profile of this machine (`reckon probe`)",
          arguments.plan, m_options.other_machine);
    }
    m_rehearses = as_planned && m_plan.rehearsal && m_options.other_machine.empty() &&
                  m_options.stragglers.empty() && !arguments.adapt.every;
    m_schedules = schedules_of(m_plan);
    m_options.checkpoints.plan = m_link.digest;
    if (arguments.checkpoints()) {
      m_schedules.saving = with_snapshot(m_schedules.usual);
      m_schedules.restoring = restoring(*m_schedules.saving);
    }
    if (!m_options.habits.shared_memory &&
        std::exchange(m_options.inside_transport, "").empty()) { // else the other moves all bytes
      m_options.transport = without_shared_memory(m_options.transport, available_transports());
    }
    if (m_job) {
      check_rank_count(m_plan, arguments.plan, m_job->size);
    }
  }

  int run() {
    if (m_arguments.check_only) {
      check_transports();
      write_file("-", verdict_text());
      return k_exit_ok;
    }
    const bool leads = !m_job || m_job->rank == 0;
    if (leads && !m_arguments.unchecked) {
      prove(m_schedules, m_plan, m_arguments.plan);
    }
    if (leads) {
      require_writable(m_arguments.output);
      require_writable(m_arguments.trace);
    }
    if (m_options.transport == k_unspecified_transport) {
      fail(ErrorKind::usage,
           fmt::format("{}: the profile that it was made from names no transport of the machines' "
                       "ports; give --transport, one of those that --list shows",
                       m_arguments.plan));
    }
    if (leads) {
      check_gpu_memory(m_schedules.usual, m_plan, m_options, m_arguments.plan);
    }
    check_transports();
    if (m_arguments.inject) {
      m_injection = injection_of(m_plan, m_schedules.usual, *m_arguments.inject);
    }
    if (m_arguments.adapt.every) {
      m_adapt = read_adapt_inputs(m_arguments.adapt, m_plan, m_arguments.plan, m_options.transport,
                                  leads);
    }
    try {
      return m_job ? run_as_rank() : run_all_here();
    } catch (const Error& error) {
      // A run that comes to a halt says whether its plan could not but do so.
      if (m_arguments.unchecked && leads && error.kind() == ErrorKind::operation &&
          !interrupted()) {
        const Proof proof = proof_of(m_schedules, m_plan, m_arguments.plan);
        if (!proof.fault.empty()) {
          fail(error.kind(), fmt::format("{}; it could not: {}", error.what(), proof.fault));
        }
      }
      throw;
    }
  }

private:
  /// The prediction without what only other programs do.
  void leave_out_what_is_not_done() {
    const auto leave_out = [&](const char* term, const std::string& why) {
      if (!m_job || m_job->rank == 0) {
        log(LogLevel::warn, "{}", why);
      }
      m_plan.prediction = without(m_plan.prediction, term);
    };
    if (const double lost = contention_seconds(m_plan.prediction); lost > 0 && !m_options.compute) {
      leave_out(
          k_contention,
          fmt::format("passes only wait in this run, so its prediction lacks the plan's {} of "
                      "contention; --compute gemm_256 lets them compute",
                      to_text(Seconds(lost))));
    }
    if (seconds_of(m_plan.prediction, k_copies)) {
      leave_out(k_copies, "gradients lie in memory in this run, so its prediction lacks the plan's "
                          "copies between it and GPUs; a training program makes them");
    }
  }

  [[nodiscard]] int ranks() const { return static_cast<int>(m_plan.ranks.size()); }

  /// Where nothing moves, the plan's own need not be here.
  void check_transports() const {
    if (!m_arguments.check_only || m_options.transport != m_plan.transport) {
      check_transport(m_options.transport);
    }
    if (!m_options.inside_transport.empty()) {
      check_transport(m_options.inside_transport);
    }
  }

  [[nodiscard]] JobSchedules schedules_of(const Plan& plan) const {
    JobSchedules schedules{lower(plan), {}, {}};
    make_stragglers(schedules.usual, m_arguments);
    return schedules;
  }

  [[nodiscard]] std::string verdict_text() const {
    const std::size_t ops = prove(m_schedules, m_plan, m_arguments.plan);
    const std::string_view proved =
        !sums(m_plan.collective) ? "every byte of a root's at every worker"
        : m_plan.asynchronous    ? "every change in the latest parameters exactly once"
        : m_schedules.saving ? "every byte summed, every parameter stepped and saved exactly once"
        : m_plan.update      ? "every byte summed and every parameter stepped exactly once"
                             : "every byte summed exactly once";
    if (m_arguments.json) {
      return canonical(
          {{"ranks", ranks()}, {"ops", ops}, {"proved", {"no deadlock", proved, "no races"}}});
    }
    return fmt::format("{} ranks, {} ops: no deadlock, {}, no races\n", ranks(), ops, proved);
  }

  /// One rank of a job that a launcher started.
  int run_as_rank() {
    m_options.local_rank = m_job->local_rank;
    m_options.local_size = m_job->local_size;
    m_options.made_again = [this](std::uint64_t done, std::uint64_t all) { show_again(done, all); };
    Rendezvous rendezvous(*std::exchange(m_job, std::nullopt), m_link.digest, m_options.limit, Fd(),
                          m_arguments.peer_limit);
    settle(m_options, rendezvous.rank());
    if (rendezvous.rank() == 0 && !m_injection) {
      m_options.introduced = [this](const std::vector<std::string>& hosts) {
        const std::string shared = shared_hosts(m_plan, hosts);
        if (!shared.empty() && !std::exchange(m_warned, true)) {
          log(LogLevel::warn,
              "{} predicts ranks on machines of their own, and here {}: its prediction is of other "
              "links and this run gets no verdict; start the ranks of each machine on one of its "
              "own, or plan for the machines that there are",
              m_arguments.plan, shared);
        }
      };
    }
    const std::optional<Report> report = run_one(
        rendezvous, m_options, [&](std::size_t done, double seconds) { show(done, seconds); });
    return report ? conclude(*report) : k_exit_ok;
  }

  /// All ranks, each a process of this machine. Rank 0 tells "i DONE SECONDS" of iterations and
  /// "a DONE ALL" of steps that are made again.
  int run_all_here() {
    m_options.local_size = ranks();
    const std::vector<double> before = rehearse();
    const std::string text = run_locally(
        ranks(),
        [&](const JobEnvironment& mine, Fd listener,
            const std::function<void(const std::string&)>& tell) {
          RunOptions options = m_options;
          options.local_rank = mine.local_rank;
          settle(options, mine.rank);
          options.made_again = [&](std::uint64_t done, std::uint64_t all) {
            tell(fmt::format("a {} {}", done, all));
          };
          Rendezvous rendezvous(mine, m_link.digest, options.limit, std::move(listener),
                                m_arguments.peer_limit);
          const std::optional<Report> report =
              run_one(rendezvous, options, [&](std::size_t done, double seconds) {
                tell(fmt::format("i {} {}", done, seconds));
              });
          return report ? canonical_text(*report) : std::string();
        },
        [&](const std::string& line) {
          char* rest = nullptr;
          const std::uint64_t done = std::strtoull(line.c_str() + 2, &rest, 10);
          if (line.front() == 'i') {
            show(done, std::strtod(rest, nullptr));
          } else {
            show_again(done, std::strtoull(rest, nullptr, 10));
          }
        });
    Report report = report_from_json(parse_json(text, "report of rank 0"), "report of rank 0");
    if (!before.empty()) {
      if (const std::vector<double> after = rehearse(); !after.empty()) {
        judge_at_speed_now(report, *m_plan.rehearsal, before, after);
      }
    }
    return conclude(report);
  }

  /// Seconds of the iterations of the plan's rehearsal; empty: it has none, or it cannot be played.
  [[nodiscard]] std::vector<double> rehearse() {
    if (!m_rehearses) {
      return {};
    }
    m_progress.show(0, "a rehearsal of the probe, to see how fast the machine is");
    try {
      return rehearse_again(m_plan);
    } catch (const Error& error) {
      if (interrupted()) {
        throw;
      }
      log(LogLevel::warn, "how fast the machine is now could not be measured: {}", error.what());
      return {};
    }
  }

  /// Makes this process the rank: where the plan has it, and with the links that are emulated.
  void settle(RunOptions& options, int rank) {
    reckon::settle(options, m_plan.ranks[static_cast<std::size_t>(rank)]);
    if (m_injection) {
      emulate(options, m_injection->network, rank, rank == 0 ? &m_pacing : nullptr);
    }
  }

  /// Returns the report, at rank 0.
  std::optional<Report> run_one(Rendezvous& rendezvous, RunOptions options,
                                const std::function<void(std::size_t, double)>& shown) {
    if (m_adapt) {
      AdaptedResult result = run_adapting(
          rendezvous, m_plan, *m_adapt, options,
          [&](const Plan& plan) { return schedules_of(plan); }, shown);
      if (rendezvous.rank() != 0) {
        return std::nullopt;
      }
      Report report = report_of(result.first);
      add_reprofiling(report, std::move(result.reprofiling));
      return report;
    }
    JobResult result = run_rank(rendezvous, m_schedules, options, shown);
    std::optional<Report> report;
    bool late = false;
    if (rendezvous.rank() == 0) {
      report = report_of(result);
      // Emulated links take their time whoever has the processors.
      late = is_late(*report) && (m_injection || !report->disturbed);
    }
    look_at_ops(rendezvous, std::move(result.timeline), report, late);
    return report;
  }

  /// Whether the run took longer than the predicted range, of what the prediction is for.
  [[nodiscard]] bool is_late(const Report& report) const {
    const bool as_planned =
        report.as_planned() && (m_injection || without_text(m_options.habits).empty());
    return as_planned && report.late();
  }

  void find_slow_place(Report& report, const RankTimelines& timelines) const {
    try {
      const PlannedProfile planned =
          planned_profile(m_plan, m_arguments.plan, m_arguments.adapt.profile);
      report.diagnosis = diagnose(m_plan, planned.profile, report, timelines);
      add_next_commands(report, planned);
    } catch (const std::exception& error) { // memory, too: the report is what counts
      log(LogLevel::warn, "the slow place was not looked for: {}", error.what());
    }
  }

  /// How to go on: measure again, and what a plan gives that knows the slow places.
  void add_next_commands(Report& report, const PlannedProfile& planned) const {
    Diagnosis& diagnosis = *report.diagnosis;
    std::optional<Profile> changed;
    if (!diagnosis.places.empty()) {
      changed = with_slow_places(planned.profile, m_plan, diagnosis.places);
    }
    const std::string profile = m_arguments.inject.value_or("new-profile.json");
    const PlanAgain again = plan_again(m_plan, m_arguments.plan, changed, profile);
    diagnosis.new_plan_seconds = again.seconds;
    if (m_injection) { // a probe would measure this machine, not the links that are emulated
      if (m_injection->profile.digest != m_plan.profile.digest) {
        diagnosis.next = {fmt::format("reckon diff {} {}", planned.file, profile),
                          again.command + " -o new-plan.json",
                          fmt::format("reckon run new-plan.json --inject {}", profile)};
      }
      return;
    }
    const bool cluster = report.ranks.front().host != report.ranks.back().host;
    const char* const started = cluster ? " # on all machines, started as this run was" : "";
    diagnosis.next = {
        fmt::format("reckon probe {}-o {}{}", cluster ? "--cluster " : "", profile, started),
        fmt::format("reckon check {} --baseline {}", profile, planned.file),
        fmt::format("reckon diff {} {}", planned.file, profile),
        again.command + " -o new-plan.json", fmt::format("reckon run new-plan.json{}", started)};
  }

  /// What all ranks' timelines are for: the trace, and finding the slow place of a late run.
  void look_at_ops(Rendezvous& rendezvous, RankTimeline mine, std::optional<Report>& report,
                   bool late) {
    if (m_arguments.trace.empty() &&
        rendezvous.broadcast(late ? "late" : "", m_options.limit).empty()) {
      return;
    }
    RankTimelines all = gather_timelines(rendezvous, m_schedules.usual, mine, m_options.limit);
    if (late) {
      find_slow_place(*report, all);
    }
    if (report && !m_arguments.trace.empty()) {
      write_trace(m_schedules.usual, std::move(all), m_arguments.trace);
    }
  }

  /// Processors that ranks of this machine share.
  [[nodiscard]] static unsigned cores() {
    return static_cast<unsigned>(std::max<std::size_t>(1, allowed_cpus().size()));
  }

  [[nodiscard]] Report report_of(const JobResult& result) const {
    Report report = make_report(m_plan, m_link, result, m_options, m_arguments.tolerance, cores());
    if (m_injection) {
      mark_emulated(report, m_injection->profile, m_pacing);
    }
    return report;
  }

  void show(std::size_t done, double seconds) {
    const std::string last = fmt::format("iteration {}: {}", done, to_text(Seconds(seconds)));
    if (m_options.iterations) {
      m_progress.show(static_cast<double>(done) /
                          static_cast<double>(*m_options.iterations + m_options.warm_up),
                      last);
      return;
    }
    const std::int64_t now_ns = monotonic_ns();
    m_since_ns = m_since_ns.value_or(now_ns);
    const Seconds spent(static_cast<double>(now_ns - *m_since_ns) * 1e-9);
    m_progress.show(spent / m_options.budget, last + ", until the median is stable",
                    std::max(m_options.budget - spent, Seconds(0)));
  }

  void show_again(std::uint64_t done, std::uint64_t all) {
    const std::int64_t now_ns = monotonic_ns();
    m_again_since_ns = m_again_since_ns.value_or(now_ns); // when the first was done
    const double a_step = static_cast<double>(now_ns - *m_again_since_ns) * 1e-9 /
                          static_cast<double>(std::max<std::uint64_t>(done, 2) - 1);
    m_progress.show(static_cast<double>(done) / static_cast<double>(all),
                    fmt::format("step {} of {} made again, to compare", done, all),
                    Seconds(a_step * static_cast<double>(all - done)));
  }

  /// Hands the report out. Returns the exit status; throws Error{operation} for a run that went
  /// wrong.
  [[nodiscard]] int conclude(const Report& report) const {
    hand_out(canonical_text(report), m_arguments.output, m_arguments.json,
             [&] { return report_table(report, style_for(m_arguments.color, STDOUT_FILENO)); });
    if (const std::string trouble = trouble_of(report); !trouble.empty()) {
      fail(ErrorKind::operation, trouble);
    }
    return !report.as_planned() || report.within_tolerance ? k_exit_ok : k_exit_verdict;
  }

  const RunArguments& m_arguments;
  RunOptions m_options;
  Plan m_plan;
  DocumentLink m_link;
  std::optional<JobEnvironment> m_job; ///< of a launcher, until this process has joined it
  JobSchedules m_schedules;
  std::optional<Injection> m_injection;
  PacingRecord m_pacing; ///< of rank 0
  std::optional<AdaptInputs> m_adapt;
  bool m_rehearses = false; ///< before the run and after it
  bool m_warned = false;    ///< that machines of the plan share a host
  Progress m_progress;
  std::optional<std::int64_t> m_since_ns; ///< the first iteration was done
  std::optional<std::int64_t> m_again_since_ns;
};

int execute(const RunArguments& arguments) {
  if (arguments.list) {
    write_file("-", transports_text(arguments.json));
    return k_exit_ok;
  }
  if (arguments.plan.empty()) {
    fail(ErrorKind::usage, "run needs a plan; make one with `reckon plan`");
  }
  return RunCommand(arguments).run();
}

} // namespace

void add_run_command(Arguments& program) {
  auto arguments = std::make_shared<RunArguments>();
  Arguments& command = program.command(
      "run", "Execute a plan, verify every sum, compare predicted and measured times");
  command.example("reckon run plan.json -o report.json");
  command.example("mpirun -N 1 --hostfile hosts reckon run plan.json");
  add_run_options(command, *arguments);
  command.action([arguments] { return execute(*arguments); });
}

} // namespace reckon
