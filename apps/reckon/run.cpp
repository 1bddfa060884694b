// SPDX-License-Identifier: Apache-2.0
#include "adapt.hpp"
#include "commands.hpp"
#include "hand_out.hpp"
#include "inject.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/log.hpp"
#include "core/processors.hpp"
#include "core/progress.hpp"
#include "core/units.hpp"
#include "documents/document.hpp"
#include "export/export.hpp"
#include "launch/local.hpp"
#include "movers/mover.hpp"
#include "present/document_text.hpp"
#include "run/emulation.hpp"
#include "run/job.hpp"
#include "run/report.hpp"
#include "schedule/checker.hpp"
#include "schedule/snapshot.hpp"
#include "strategies/lower.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <memory>
#include <sched.h>
#include <unistd.h>
#include <utility>

namespace reckon {
namespace {

struct RunArguments {
  std::string plan, output, transport, tolerance = "15%", budget = "10s", limit = "60s",
                                       peer_limit = "10s";
  std::optional<std::string> without, inject, compute;
  bool shared_cores = false, cores_given = false;
  std::string checkpoint, resume, trace;
  std::optional<std::uint64_t> checkpoint_every;
  std::vector<std::string> stragglers;
  AdaptArguments adapt;
  bool reprofile = false;
  std::optional<std::uint32_t> iterations;
  std::uint32_t warm_up = 2;
  bool json = false, list = false, check_only = false, unchecked = false;
  ColorMode color = ColorMode::automatic;
};

unsigned usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? static_cast<unsigned>(CPU_COUNT(&set)) : 1U;
}

std::uint64_t available_memory() {
  const std::string text = read_file("/proc/meminfo");
  const std::size_t at = text.find("MemAvailable:");
  return at == std::string::npos ? UINT64_MAX
                                 : std::strtoull(text.c_str() + at + 13, nullptr, 10) * 1024;
}

/// Keeps this process to the processors next to the memory that a rank inside a machine stands for,
/// so that what it touches first is there too. Does nothing where this process may use none of
/// them: the plan of another machine still moves its bytes.
void stay_near(const PlanRank& rank) {
  const std::vector<int> allowed = allowed_cpus();
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : rank.cpus) {
    if (std::find(allowed.begin(), allowed.end(), cpu) != allowed.end()) {
      CPU_SET(static_cast<std::size_t>(cpu), &set);
    }
  }
  if (CPU_COUNT(&set) > 0 && sched_setaffinity(0, sizeof set, &set) != 0) {
    fail_errno(fmt::format("cannot keep to the processors of {}", rank.endpoint), errno);
  }
}

/// What a rank inside a machine stands for, as the movers need to know it.
void place(RunOptions& options, const PlanRank& rank) {
  options.pci_address = rank.pci_address;
  options.host_memory = !rank.endpoint.empty() && rank.endpoint_kind != "gpu";
}

/// The checker's verdict as an error: a plan that cannot work is never started. Returns the number
/// of ops.
std::size_t prove(const JobSchedules& schedules, const std::string& file) {
  std::size_t ops = 0;
  const auto prove_one = [&](const Schedule& schedule) {
    const CheckResult result = check(schedule);
    if (!result.ok()) {
      fail(ErrorKind::input, fmt::format("{}: the plan's schedule is wrong: {}; plan again", file,
                                         result.faults.front()));
    }
    ops += result.ops;
  };
  prove_one(schedules.usual);
  if (schedules.saving) {
    prove_one(*schedules.saving);
  }
  if (schedules.restoring) {
    prove_one(*schedules.restoring);
  }
  return ops;
}

/// Before the schedule is built: that alone can need more than there is. Only to prove it takes no
/// buffers.
void check_memory(const Plan& plan, bool check_only, bool checkpoints) {
  double workers = 0, buffers = 0;
  for (const PlanRank& rank : plan.ranks) {
    workers += rank.worker ? 1 : 0;
    buffers += static_cast<double>((rank.worker ? plan.gradient_bytes : 0));
    if (plan.asynchronous) {
      buffers += 3 * static_cast<double>(rank.worker ? plan.gradient_bytes : 0) +
                 static_cast<double>(rank.assigned_bytes);
    } else if (plan.update) {
      const auto held =
          static_cast<double>(rank.worker ? plan.gradient_bytes : rank.assigned_bytes);
      const auto states = static_cast<double>(state_arrays(plan.update->optimizer));
      // What is held, the replica that it is verified with, and both sides' states.
      buffers += 2 * held * (1 + states);
    }
  }
  if (plan.strategy == "ring") {
    buffers *= 2; // each rank receives into a second buffer of that size
  } else {
    const auto slots =
        static_cast<double>(std::min<std::uint64_t>(plan.window_parts, plan.parts.size()));
    buffers += workers * static_cast<double>(plan.ranks.size()) * slots *
               static_cast<double>(plan.part_bytes);
  }
  double schedules = 1;
  if (checkpoints &&
      plan.update) { // a snapshot of everything, and the schedules that save and restore
    buffers += static_cast<double>(plan.gradient_bytes) *
               static_cast<double>(1 + state_arrays(plan.update->optimizer));
    schedules = 3;
  }
  constexpr double k_ops_per_part = 4, k_op_bytes = 700; // as built and while it is proved
  const double needed = (check_only ? 0 : buffers) + static_cast<double>(plan.parts.size()) *
                                                         workers * schedules * k_ops_per_part *
                                                         k_op_bytes;
  const auto available = static_cast<double>(available_memory());
  if (needed > available) {
    fail(ErrorKind::unavailable,
         fmt::format("the {} ranks of this plan need {} on this machine and {} are free; plan with "
                     "fewer workers or a smaller workload",
                     plan.ranks.size(), to_text(Bytes(static_cast<std::uint64_t>(needed))),
                     to_text(Bytes(static_cast<std::uint64_t>(available)))));
  }
}

/// Where to save and where to resume from, as asked.
CheckpointOptions checkpoints_of(const RunArguments& arguments, const Plan& plan) {
  CheckpointOptions options;
  options.save_folder = arguments.checkpoint;
  options.resume_folder = arguments.resume;
  if (arguments.checkpoint_every) {
    if (arguments.checkpoint.empty()) {
      fail(ErrorKind::usage, "--checkpoint-every: say where with --checkpoint FOLDER");
    }
    if (*arguments.checkpoint_every == 0) {
      fail(ErrorKind::usage, "--checkpoint-every: at least 1");
    }
    options.every = *arguments.checkpoint_every;
  }
  const char* const asked = !arguments.checkpoint.empty() ? "--checkpoint"
                            : !arguments.resume.empty()   ? "--resume"
                                                          : nullptr;
  if (asked != nullptr && plan.asynchronous) {
    fail(
        ErrorKind::input,
        fmt::format("{}: {} starts from the first parameters again in every iteration, so there is "
                    "nothing to save; plan without --async",
                    asked, arguments.plan));
  }
  if (asked != nullptr && !plan.update) {
    fail(ErrorKind::input,
         fmt::format("{}: {} only sums gradients and keeps nothing from one iteration to the next; "
                     "plan with --optimizer",
                     asked, arguments.plan));
  }
  return options;
}

void check_trace(const RunArguments& arguments) {
  if (arguments.trace == "-") {
    fail(ErrorKind::usage, "--trace -: standard output is the report's; name a file");
  }
  if (!arguments.trace.empty() && arguments.reprofile) {
    fail(ErrorKind::usage,
         "--trace: a trace is of one plan, and with --reprofile-every the plan may "
         "change; leave one of them out");
  }
  if (!arguments.trace.empty()) {
    refuse_overwriting(arguments.trace, {arguments.plan}, "--trace");
  }
}

/// "RANK=2x", any number of them.
void make_stragglers(Schedule& schedule, const RunArguments& arguments) {
  for (const std::string& text : arguments.stragglers) {
    std::size_t rank = 0;
    double factor = 0;
    const char* const end = text.data() + text.size();
    const auto [equals, bad_rank] = std::from_chars(text.data(), end, rank);
    bool ok = bad_rank == std::errc{} && equals != end && *equals == '=';
    if (ok) {
      const auto [x, bad_factor] = std::from_chars(equals + 1, end, factor);
      ok = bad_factor == std::errc{} && x + 1 == end && *x == 'x' && factor >= 1 && factor <= 1e6;
    }
    if (!ok || rank >= schedule.ranks.size()) {
      fail(ErrorKind::usage,
           fmt::format("--straggler {}: write RANK=FACTORx with a rank below {} and a factor of at "
                       "least 1, e.g. 0=2x",
                       text, schedule.ranks.size()));
    }
    if (slow_down(schedule, rank, factor) == 0) {
      fail(ErrorKind::input,
           fmt::format("--straggler {}: rank {} plays no forward or backward pass; plan for a "
                       "workload with their times, or give them",
                       text, rank));
    }
  }
}

/// What the passes are, as asked.
std::optional<PassCompute> compute_of(const RunArguments& arguments, const Plan& plan) {
  if (!arguments.compute) {
    if (arguments.cores_given) {
      fail(ErrorKind::usage, "--cores: says where --compute works; give both");
    }
    return std::nullopt;
  }
  PassCompute compute = parse_pass_compute(*arguments.compute);
  compute.dedicated = !arguments.shared_cores;
  if (!plan.passes) {
    fail(ErrorKind::input,
         fmt::format("{}: --compute {}: the plan has no forward and backward passes to work in; "
                     "plan for a workload with their times, or with --forward and --backward",
                     arguments.plan, *arguments.compute));
  }
  static_cast<void>(place_threads(allowed_cpus(), 1, 0, 1, compute)); // whether it can be
  return compute;
}

void check_transport(const std::string& wanted) {
  std::vector<std::string> why_not;
  std::vector<std::string> there = available_transports(&why_not);
  if (const std::string gpus = gpu_transport(&why_not); !gpus.empty()) {
    there.push_back(gpus);
  }
  if (std::find(there.begin(), there.end(), wanted) == there.end()) {
    std::string reason;
    for (const std::string& why : why_not) {
      if (why.starts_with(wanted + ": ")) {
        reason = why.substr(wanted.size());
      }
    }
    fail(ErrorKind::unavailable,
         fmt::format(
             "transport '{}' is not available here{}; available: {}; --transport chooses another",
             wanted, reason, fmt::join(there, ", ")));
  }
}

int list_transports() {
  std::vector<std::string> why_not;
  std::string text;
  for (const std::string& name : available_transports(&why_not)) {
    text += name + "\n";
  }
  if (const std::string gpus = gpu_transport(&why_not); !gpus.empty()) {
    text += gpus + "\n";
  }
  for (const std::string& line : why_not) {
    text += "not available: " + line + "\n";
  }
  write_file("-", text);
  return k_exit_ok;
}

int conclude(const Report& report, const RunArguments& arguments) {
  hand_out(report, arguments.output, arguments.json, arguments.color);
  if (!report.verification.ok) {
    fail(ErrorKind::operation,
         fmt::format("{} elements are wrong; first: {}", report.verification.wrong_elements,
                     report.verification.first_error));
  }
  if (report.checkpoints && report.checkpoints->failed > 0) {
    fail(ErrorKind::operation,
         fmt::format("{} checkpoints could not be saved; first: {}", report.checkpoints->failed,
                     report.checkpoints->first_failure));
  }
  return report.within_tolerance ? k_exit_ok : k_exit_verdict;
}

/// Documents to plan with while the plan runs, where that was asked for.
std::optional<AdaptInputs> adapt_inputs(const RunArguments& arguments, const Plan& plan,
                                        const std::string& transport, bool plans_anew) {
  const AdaptArguments& adapt = arguments.adapt;
  if (!arguments.reprofile) {
    if (adapt != AdaptArguments()) {
      fail(ErrorKind::usage, "--profile, --workload and --roles are what a plan is made anew from "
                             "while it runs: give --reprofile-every");
    }
    return std::nullopt;
  }
  if (adapt.every == 0) {
    fail(ErrorKind::usage, "--reprofile-every: at least 1 iteration");
  }
  if (!arguments.checkpoint.empty() || !arguments.resume.empty()) {
    fail(ErrorKind::usage,
         "--reprofile-every: a checkpoint is one plan's, and the plan may change; "
         "leave out --checkpoint and --resume");
  }
  return read_adapt_inputs(adapt, plan, arguments.plan, transport, plans_anew);
}

/// Collects what every rank timed and writes it, at rank 0.
void write_trace(Rendezvous& rendezvous, const Schedule& schedule, const RankTimeline& mine,
                 const RunArguments& arguments, Seconds limit) {
  Json lanes = Json::array();
  for (const std::vector<OpSpan>& lane : mine) {
    Json times = Json::array();
    for (const OpSpan& span : lane) {
      times.push_back(span.begin_ns);
      times.push_back(span.end_ns);
    }
    lanes.push_back(std::move(times));
  }
  const std::vector<std::string> all = rendezvous.all_gather(lanes.dump(), limit);
  if (rendezvous.rank() != 0) {
    return;
  }
  NamedTimeline timeline{"measured", {}};
  for (const std::string& text : all) {
    RankTimeline& rank = timeline.ops.emplace_back();
    for (const auto& times : Json::parse(text).get<std::vector<std::vector<std::int64_t>>>()) {
      std::vector<OpSpan>& spans = rank.emplace_back();
      for (std::size_t i = 0; i + 1 < times.size(); i += 2) {
        spans.push_back({times[i], times[i + 1]});
      }
    }
  }
  write_file(arguments.trace, chrome_trace(schedule, std::span(&timeline, 1)));
}

void add_reprofiling(Report& report, ReprofilingReport reprofiling) {
  const bool changed = std::any_of(reprofiling.pauses.begin(), reprofiling.pauses.end(),
                                   [](const PauseReport& pause) { return !pause.pairs.empty(); });
  if (changed) {
    report.cause = fmt::format("links changed in the middle of the run ({:+.1f} %): see there",
                               100 * report.error);
  }
  report.reprofiling = std::move(reprofiling);
}

int execute(const RunArguments& arguments) {
  if (arguments.list) {
    return list_transports();
  }
  if (arguments.plan.empty()) {
    fail(ErrorKind::usage, "run needs a plan; make one with `reckon plan`");
  }
  RunOptions options;
  const double tolerance = parse_fraction(arguments.tolerance, "--tolerance");
  if (tolerance > 1 && arguments.tolerance.find('%') == std::string::npos) {
    fail(ErrorKind::usage, fmt::format("--tolerance {}: write {}% (or a fraction up to 1)",
                                       arguments.tolerance, arguments.tolerance));
  }
  options.budget = parse_seconds(arguments.budget, "--budget");
  options.limit = parse_seconds(arguments.limit, "--limit");
  const Seconds peer_limit = parse_seconds(arguments.peer_limit, "--peer-limit");
  if (peer_limit < k_least_peer_limit) {
    fail(ErrorKind::usage, fmt::format("--peer-limit {}: at least {}", arguments.peer_limit,
                                       to_text(k_least_peer_limit)));
  }
  options.warm_up = arguments.warm_up;
  if (arguments.iterations) {
    if (*arguments.iterations == 0) {
      fail(ErrorKind::usage, "--iterations: at least 1");
    }
    options.iterations = arguments.iterations;
  }
  if (arguments.without) {
    options.habits = habits_without(*arguments.without);
  }
  const Plan plan = read_plan(arguments.plan);
  const DocumentLink link = link_to(arguments.plan, canonical_text(plan));
  refuse_overwriting(arguments.output, {arguments.plan});
  check_trace(arguments);
  auto job = job_from_environment();
  if (!job) {
    check_memory(plan, arguments.check_only,
                 !arguments.checkpoint.empty() || !arguments.resume.empty());
    if (!arguments.check_only && !arguments.inject &&
        std::any_of(plan.ranks.begin(), plan.ranks.end(),
                    [](const PlanRank& r) { return r.port_bytes_per_second > 0; })) {
      log(LogLevel::warn,
          "{} predicts ranks on machines of their own; here all of them share this one "
          "(--inject PROFILE emulates the links between them)",
          arguments.plan);
    }
  }
  options.compute = compute_of(arguments, plan);
  JobSchedules schedules{lower(plan), {}, {}};
  make_stragglers(schedules.usual, arguments);
  options.checkpoints = checkpoints_of(arguments, plan);
  options.checkpoints.plan = link.digest;
  if (!arguments.checkpoint.empty() || !arguments.resume.empty()) {
    schedules.saving = with_snapshot(schedules.usual);
    schedules.restoring = restoring(*schedules.saving);
  }
  options.stragglers = fmt::format("{}", fmt::join(arguments.stragglers, ", "));
  options.transport = arguments.transport.empty() ? plan.transport : arguments.transport;
  if (!options.habits.shared_memory) {
    options.transport = without_shared_memory(options.transport, available_transports());
  }
  const auto ranks = static_cast<int>(plan.ranks.size());
  if (job && job->size != ranks) {
    fail(ErrorKind::input, fmt::format("{}: the plan is for {} ranks and the launcher started {}; "
                                       "plan for that many or start {} "
                                       "ranks",
                                       arguments.plan, ranks, job->size, ranks));
  }
  if (arguments.check_only) {
    write_file("-", fmt::format(
                        "{} ranks, {} ops: no deadlock, {}, no races\n", ranks,
                        prove(schedules, arguments.plan),
                        plan.asynchronous ? "every change in the latest parameters exactly once"
                        : schedules.saving
                            ? "every byte summed, every parameter stepped and saved exactly once"
                        : plan.update ? "every byte summed and every parameter stepped exactly once"
                                      : "every byte summed exactly once"));
    return k_exit_ok;
  }
  if ((!job || job->rank == 0) && !arguments.unchecked) {
    prove(schedules, arguments.plan);
  }
  check_transport(options.transport);
  const std::optional<Injection> injection =
      arguments.inject ? std::optional(injection_of(plan, schedules.usual, *arguments.inject))
                       : std::nullopt;
  PacingRecord pacing;
  const auto inject = [&](RunOptions& mine, int rank) {
    if (injection) {
      emulate(mine, injection->network, rank, rank == 0 ? &pacing : nullptr);
    }
  };
  const std::optional<AdaptInputs> adapt =
      adapt_inputs(arguments, plan, options.transport, !job || job->rank == 0);
  const auto schedules_of = [&](const Plan& any) {
    JobSchedules lowered{lower(any), {}, {}};
    make_stragglers(lowered.usual, arguments);
    return lowered;
  };
  const auto report_of = [&](const JobResult& result) {
    Report report = make_report(plan, link, result, options, tolerance, usable_cores());
    if (injection) {
      mark_emulated(report, injection->profile, pacing);
    }
    return report;
  };
  const auto run_one = [&](Rendezvous& rendezvous, const RunOptions& mine, const auto& shown) {
    std::optional<Report> report; // of rank 0
    if (adapt) {
      AdaptedResult result = run_adapting(rendezvous, plan, *adapt, mine, schedules_of, shown);
      if (rendezvous.rank() == 0) {
        report = report_of(result.first);
        add_reprofiling(*report, std::move(result.reprofiling));
      }
      return report;
    }
    RunOptions traced = mine;
    if (!arguments.trace.empty()) {
      traced.trace = [&](const RankTimeline& timeline) {
        write_trace(rendezvous, schedules.usual, timeline, arguments, options.limit);
      };
    }
    const JobResult result = run_rank(rendezvous, schedules, traced, shown);
    if (rendezvous.rank() == 0) {
      report = report_of(result);
    }
    return report;
  };
  Progress progress;
  const auto show = [&](std::size_t done, double seconds) {
    const std::size_t all = options.iterations ? *options.iterations + options.warm_up : 0;
    progress.show(all > 0 ? static_cast<double>(done) / static_cast<double>(all) : 0,
                  fmt::format("iteration {}: {}", done, to_text(Seconds(seconds))));
  };
  if (job) {
    options.local_rank = job->local_rank;
    options.local_size = job->local_size;
    Rendezvous rendezvous(*std::exchange(job, std::nullopt), link.digest, options.limit, Fd(),
                          peer_limit);
    const PlanRank& mine = plan.ranks[static_cast<std::size_t>(rendezvous.rank())];
    stay_near(mine);
    place(options, mine);
    inject(options, rendezvous.rank());
    const std::optional<Report> report = run_one(rendezvous, options, show);
    return report ? conclude(*report, arguments) : k_exit_ok;
  }
  options.local_size = ranks;
  const std::string text = run_locally(
      ranks,
      [&](const JobEnvironment& mine, Fd listener,
          const std::function<void(const std::string&)>& tell) {
        RunOptions local = options;
        local.local_rank = mine.local_rank;
        stay_near(plan.ranks[static_cast<std::size_t>(mine.rank)]);
        place(local, plan.ranks[static_cast<std::size_t>(mine.rank)]);
        inject(local, mine.rank);
        Rendezvous rendezvous(mine, link.digest, options.limit, std::move(listener), peer_limit);
        const std::optional<Report> report =
            run_one(rendezvous, local, [&](std::size_t done, double seconds) {
              tell(fmt::format("{} {}", done, seconds));
            });
        return report ? canonical_text(*report) : std::string();
      },
      [&](const std::string& line) {
        const std::size_t space = line.find(' ');
        show(std::strtoull(line.c_str(), nullptr, 10), std::strtod(line.c_str() + space, nullptr));
      });
  return conclude(report_from_json(parse_json(text, "report of rank 0"), "report of rank 0"),
                  arguments);
}

} // namespace

Command add_run_command(CLI::App& app) {
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* command =
      app.add_subcommand("run", "Execute a plan, verify every sum, show predicted beside measured");
  command->add_option("plan", arguments->plan, "The plan; - is standard input");
  command->add_option("-o,--output", arguments->output, "Write the report to this file");
  command->add_flag("--json", arguments->json, "Print the report as JSON instead of tables");
  command->add_option("--transport", arguments->transport,
                      "Move the bytes over this transport instead of the plan's");
  command->add_option("--without", arguments->without,
                      "Ablation: move the bytes without some of register-once, address-once, "
                      "aligned, one-segment, shm (separated by commas)");
  command
      ->add_option("--inject", arguments->inject,
                   "Emulate: delay and pace every write as the links of this profile would, "
                   "with all ranks on this machine. A rank takes the links of the machine, or of "
                   "the place inside a machine, that the plan names for it")
      ->type_name("PROFILE");
  command
      ->add_option("--trace", arguments->trace,
                   "Time every op of the last iteration and write them as a trace for Perfetto or "
                   "chrome://tracing")
      ->type_name("FILE");
  command->add_flag("-l,--list", arguments->list,
                    "List the transports of this machine, and what is missing, and end");
  command->add_flag("--check", arguments->check_only,
                    "Only prove the plan's schedule, move nothing");
  command->add_flag("--unchecked", arguments->unchecked,
                    "Start even a plan whose schedule would be refused, to see what becomes of it; "
                    "--limit ends what hangs");
  command->add_option("-n,--iterations", arguments->iterations,
                      "Counted iterations. Default: until the median is stable, within the budget");
  command->add_option("-w,--warm-up", arguments->warm_up, "Iterations before those that count")
      ->capture_default_str();
  command->add_option("--straggler", arguments->stragglers,
                      "RANK=2x: this rank's passes take twice as long as planned");
  command
      ->add_option("--compute", arguments->compute,
                   "The passes are this work instead of waiting, on so many threads of each rank: "
                   "gemm_256 or gemm_1000, products of matrices of that side")
      ->type_name("WORK[:THREADS]");
  const CLI::Option* const cores =
      command
          ->add_option("--cores", arguments->shared_cores,
                       "With --compute: lanes and work have processors of their own (dedicated), "
                       "or all processors together (shared) [dedicated]")
          ->transform(CLI::CheckedTransformer(
                          std::map<std::string, bool>{{"dedicated", false}, {"shared", true}})
                          .description(""))
          ->type_name("HOW");
  command->add_option("--checkpoint", arguments->checkpoint,
                      "Save parameters and optimizer states into this folder while iterations go "
                      "on; the last two checkpoints are kept");
  command->add_option("--checkpoint-every", arguments->checkpoint_every,
                      "Steps from one checkpoint to the next [10]");
  command->add_option("--resume", arguments->resume,
                      "Go on from the newest intact checkpoint in this folder");
  const CLI::Option* const reprofile = command->add_option(
      "--reprofile-every", arguments->adapt.every,
      "Measure the links again after so many counted iterations, and go on with a new plan where "
      "routing tables made anew are better; needs the documents that the plan was made from");
  command->add_option("-p,--profile", arguments->adapt.profile,
                      "With --reprofile-every: the plan's profile");
  command->add_option("-m,--workload", arguments->adapt.workload,
                      "With --reprofile-every: the plan's workload");
  command->add_option("-r,--roles", arguments->adapt.roles,
                      "With --reprofile-every: the plan's roles, where it was made with some");
  command->add_option("--budget", arguments->budget, "Time for the counted iterations")
      ->capture_default_str();
  command->add_option("--limit", arguments->limit, "A step that takes longer has hung")
      ->capture_default_str();
  command
      ->add_option("--peer-limit", arguments->peer_limit,
                   "A rank that was not heard of for longer is dead or cut off")
      ->capture_default_str();
  command
      ->add_option("--tolerance", arguments->tolerance,
                   "Exit 1 when measured and predicted differ by more")
      ->capture_default_str();
  command->add_option("--color", arguments->color, "auto, always or never")
      ->transform(
          CLI::CheckedTransformer(std::map<std::string, ColorMode>{{"auto", ColorMode::automatic},
                                                                   {"always", ColorMode::always},
                                                                   {"never", ColorMode::never}})
              .description(""))
      ->type_name("WHEN");
  command->footer(
      "Without a launcher all ranks of the plan are started on this machine. Under mpirun, prterun "
      "or\n"
      "srun --mpi=pmix, or with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in the environment, "
      "this\n"
      "process is one rank of the job.");
  return [arguments, reprofile, cores] {
    arguments->cores_given = cores->count() > 0;
    arguments->reprofile = reprofile->count() > 0;
    return execute(*arguments);
  };
}

} // namespace reckon
