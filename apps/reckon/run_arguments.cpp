// SPDX-License-Identifier: Apache-2.0
#include "run_arguments.hpp"

#include "core/error.hpp"
#include "core/processors.hpp"
#include "launch/rendezvous.hpp"
#include "run/transports.hpp"
#include "schedule/stragglers.hpp"

#include <fmt/format.h>

namespace reckon {
namespace {

Take tolerance(double* to) {
  return [to](const std::string& text, std::string_view flag) {
    fraction(to)(text, flag);
    if (*to > 1 && text.find('%') == text.npos) {
      fail(ErrorKind::usage,
           fmt::format("{} {}: write {}% (or a fraction up to 1)", flag, text, text));
    }
  };
}

Take peer_limit(Seconds* to) {
  return [to](const std::string& text, std::string_view flag) {
    *to = parse_seconds(text, flag);
    if (*to < k_least_peer_limit) {
      fail(ErrorKind::usage,
           fmt::format("{} {}: at least {}", flag, text, to_text(k_least_peer_limit)));
    }
  };
}

void add_limits(Arguments& command, RunArguments& arguments) {
  RunOptions& options = arguments.options;
  command.group("Limits");
  command.option("-w,--warm-up", &options.warm_up, "Iterations before those that count")
      .shows_default();
  command
      .option("--step-timeout", &options.limit,
              "End the job when a rank has not finished within this time: at any step")
      .defaults_to("60s");
  command
      .option("--peer-timeout", peer_limit(&arguments.peer_limit),
              "A rank that is silent for longer is dead or cut off")
      .defaults_to("10s");
  command.option(
      "--checksums", &options.checksums,
      "End the job when a part crossed the network with other bytes than were sent: at all "
      "ranks or none, over tcp;ofi_rxm or shm");
  command.option(
      "--unchecked", &arguments.unchecked,
      "Start even a plan whose schedule would be refused, to see what happens; --step-timeout "
      "ends what hangs");
}

} // namespace

void add_run_options(Arguments& command, RunArguments& arguments) {
  RunOptions& options = arguments.options;
  command.option("plan", &arguments.plan, "The plan; - is standard input");
  command.option("-o,--output", &arguments.output, "File of the result: the report");
  command.option(
      "--json", &arguments.json,
      "JSON on standard output: the report instead of tables; also of --list and --check");
  command.option("-l,--list", &arguments.list,
                 "Print a list and end: the transports of this machine and what is missing");
  command.option("--check", &arguments.check_only, "Only prove the plan's schedule, move nothing");
  command
      .option("--transport", &arguments.transport,
              "What moves the bytes: all over this transport instead of the plan's; or "
              "inside=NAME,between=NAME, inside machines and between them, one or both")
      .type("NAME");
  command
      .option("-n,--iterations", &options.iterations,
              "Counted iterations. Default: until the median is stable, within --time")
      .at_least(1);
  command
      .option("--time", &options.budget,
              "Time that it may take: for all iterations, including filling and checking; at least "
              "three count")
      .defaults_to("10s");
  command
      .option("--tolerance", tolerance(&arguments.tolerance),
              "Largest error of the prediction that passes: exit status 1 beyond")
      .defaults_to("15%");
  const Argument trace =
      command
          .option("--trace", &arguments.trace,
                  "Record when every operation of a median iteration began and ended, for Perfetto "
                  "or chrome://tracing")
          .type("FILE");
  command.option(
      "-p,--profile", &arguments.adapt.profile,
      "A profile: the plan's, to name what was slow and for --reprofile-every. Default: the one "
      "beside the plan that it was made from");
  command.color(&arguments.color);

  add_limits(command, arguments);

  command.group("Emulation and ablation");
  command
      .option("--inject", &arguments.inject,
              "Emulate: delay and pace every write as on the links of this profile, with all ranks "
              "on this machine. A rank takes the links of the machine, or of the place inside a "
              "machine, that the plan names for it")
      .type("PROFILE");
  command.option("--without", Take([&options](const std::string& text, std::string_view) {
                   options.habits = habits_without(text);
                 }),
                 "Ablation: move the bytes without some of register-once, address-once, "
                 "aligned, one-segment, shm (separated by commas)");

  command.group("Forward and backward pass");
  command.option("--straggler", &arguments.stragglers,
                 "A rank that takes longer: RANK=2x, its passes take twice as long as planned");
  const Argument compute =
      command
          .option("--compute", Take([&options](const std::string& text, std::string_view) {
                    options.compute = parse_pass_compute(text);
                  }),
                  "Passes compute instead of wait, with that many threads of each rank: gemm_256 "
                  "or gemm_1000, products of matrices of that side")
          .type("WORK[:THREADS]");
  command
      .choice<bool>(
          "--processors", &arguments.shared_cores, {{"dedicated", false}, {"shared", true}},
          "Processors of computation and communication: separate ones (dedicated) or all for "
          "both (shared). With --compute [dedicated]")
      .type("HOW")
      .needs(compute);

  command.group("Checkpoints");
  const Argument checkpoint =
      command.option("--checkpoint", &options.checkpoints.save_folder,
                     "Save parameters and optimizer states into this folder while iterations go "
                     "on; the last two checkpoints are kept");
  command
      .option("--checkpoint-every", &options.checkpoints.every,
              "Steps from one checkpoint to the next [10]")
      .at_least(1)
      .needs(checkpoint);
  const Argument resume =
      command.option("--resume", &options.checkpoints.resume_folder,
                     "Continue from the newest complete checkpoint in this folder");

  command.group("Links that change");
  const Argument every =
      command
          .option("--reprofile-every", &arguments.adapt.every,
                  "Measure the links again after this many counted iterations, and continue with a "
                  "new plan if it is better; needs the documents that the plan was made from")
          .at_least(1)
          .excludes(checkpoint)
          .excludes(resume)
          .excludes(trace);
  command
      .option("--reprofile-gain", &arguments.adapt.gain,
              fmt::format("Least share of its time that a change of plan must save [{:g}%]",
                          100 * k_replan_margin))
      .needs(every);
  command
      .option("-m,--workload", &arguments.adapt.workload,
              "A workload: the plan's, with --reprofile-every")
      .needs(every);
  command
      .option("-r,--roles", &arguments.adapt.roles,
              "Roles: the plan's, if it was made with some, with --reprofile-every")
      .needs(every);
  command.renamed("--cores", "--processors");
  command.renamed("--budget", "--time");
  command.renamed("--limit", "--step-timeout");
  command.renamed("--peer-limit", "--peer-timeout");
  command.footer(
      "Without a launcher, run starts all ranks of the plan on this machine. Under mpirun, "
      "prterun or\nsrun --mpi=pmix, or with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT "
      "in the environment, this\nprocess is one rank of the job.");
}

RunOptions options_for(const RunArguments& arguments, const Plan& plan) {
  RunOptions options = arguments.options;
  options.stragglers = fmt::format("{}", fmt::join(arguments.stragglers, ", "));
  choose_transports(options, plan, arguments.transport);
  if (options.compute) {
    options.compute->dedicated = !arguments.shared_cores;
    if (!plan.passes) {
      fail(ErrorKind::input,
           fmt::format("{}: --compute: the plan has no forward and backward passes to work in; "
                       "plan for a workload with their times, or with --forward and --backward",
                       arguments.plan));
    }
    static_cast<void>(place_threads(allowed_cpus(), 1, 0, 1, *options.compute)); // whether it can
  }
  const char* const saving = options.checkpoints.save_folder.empty() ? "--resume" : "--checkpoint";
  if (arguments.checkpoints() && plan.asynchronous) {
    fail(
        ErrorKind::input,
        fmt::format("{}: {} starts from the first parameters again in every iteration, so there is "
                    "nothing to save; plan without --async",
                    saving, arguments.plan));
  }
  if (arguments.checkpoints() && !plan.update) {
    fail(ErrorKind::input,
         fmt::format("{}: {} only sums gradients and keeps nothing from one iteration to the next; "
                     "plan with --optimizer",
                     saving, arguments.plan));
  }
  return options;
}

void make_stragglers(Schedule& schedule, const RunArguments& arguments) {
  for (const auto& [rank, factor] : parse_stragglers(arguments.stragglers, schedule.ranks.size())) {
    if (slow_down(schedule, rank, factor) == 0) {
      fail(ErrorKind::input,
           fmt::format("--straggler: rank {} plays no forward or backward pass; plan for a "
                       "workload with their times, or give them",
                       rank));
    }
  }
}

} // namespace reckon
