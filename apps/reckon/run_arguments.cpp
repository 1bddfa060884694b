// SPDX-License-Identifier: Apache-2.0
#include "run_arguments.hpp"

#include <fmt/format.h>

namespace reckon {

void add_run_options(Arguments& command, RunArguments& arguments) {
  command.option("plan", &arguments.plan, "The plan; - is standard input");
  command.option("-o,--output", &arguments.output, "Write the report to this file");
  command.option("--json", &arguments.json, "Print the report as JSON instead of tables");
  command.option("--transport", &arguments.transport,
                 "Move the bytes over this transport instead of the plan's");
  command.option("--without", &arguments.without,
                 "Ablation: move the bytes without some of register-once, address-once, "
                 "aligned, one-segment, shm (separated by commas)");
  command
      .option("--inject", &arguments.inject,
              "Emulate: delay and pace every write as the links of this profile would, "
              "with all ranks on this machine. A rank takes the links of the machine, or of "
              "the place inside a machine, that the plan names for it")
      .type("PROFILE");
  command
      .option("--trace", &arguments.trace,
              "Time every op of the last iteration and write them as a trace for Perfetto or "
              "chrome://tracing")
      .type("FILE");
  command.option("-l,--list", &arguments.list,
                 "List the transports of this machine, and what is missing, and end");
  command.option("--check", &arguments.check_only, "Only prove the plan's schedule, move nothing");
  command.option("--unchecked", &arguments.unchecked,
                 "Start even a plan whose schedule would be refused, to see what becomes of it; "
                 "--limit ends what hangs");
  command.option("-n,--iterations", &arguments.iterations,
                 "Counted iterations. Default: until the median is stable, within the budget");
  command.option("-w,--warm-up", &arguments.warm_up, "Iterations before those that count")
      .shows_default();
  command.option("--straggler", &arguments.stragglers,
                 "RANK=2x: this rank's passes take twice as long as planned");
  const Argument compute =
      command
          .option("--compute", &arguments.compute,
                  "The passes are this work instead of waiting, on so many threads of each rank: "
                  "gemm_256 or gemm_1000, products of matrices of that side")
          .type("WORK[:THREADS]");
  command
      .choice<bool>("--cores", &arguments.shared_cores, {{"dedicated", false}, {"shared", true}},
                    "With --compute: lanes and work have processors of their own (dedicated), "
                    "or all processors together (shared) [dedicated]")
      .type("HOW")
      .needs(compute);
  command.option("--checkpoint", &arguments.checkpoint,
                 "Save parameters and optimizer states into this folder while iterations go "
                 "on; the last two checkpoints are kept");
  command.option("--checkpoint-every", &arguments.checkpoint_every,
                 "Steps from one checkpoint to the next [10]");
  command.option("--resume", &arguments.resume,
                 "Go on from the newest intact checkpoint in this folder");
  const Argument every = command.option(
      "--reprofile-every", &arguments.adapt.every,
      "Measure the links again after so many counted iterations, and go on with a new plan where "
      "routing tables made anew are better; needs the documents that the plan was made from");
  command
      .option("--reprofile-gain", &arguments.adapt.gain,
              fmt::format("Part of its time that a change of plan must save [{:g}%]",
                          100 * k_replan_margin))
      .needs(every);
  command
      .option("-p,--profile", &arguments.adapt.profile,
              "With --reprofile-every: the plan's profile")
      .needs(every);
  command
      .option("-m,--workload", &arguments.adapt.workload,
              "With --reprofile-every: the plan's workload")
      .needs(every);
  command
      .option("-r,--roles", &arguments.adapt.roles,
              "With --reprofile-every: the plan's roles, where it was made with some")
      .needs(every);
  command.option("--budget", &arguments.budget, "Time for the counted iterations").shows_default();
  command.option("--limit", &arguments.limit, "A step that takes longer has hung").shows_default();
  command
      .option("--peer-limit", &arguments.peer_limit,
              "A rank that was not heard of for longer is dead or cut off")
      .shows_default();
  command
      .option("--tolerance", &arguments.tolerance,
              "Exit 1 when measured and predicted differ by more")
      .shows_default();
  command.color(&arguments.color);
  command.footer(
      "Without a launcher all ranks of the plan are started on this machine. Under mpirun, prterun "
      "or\n"
      "srun --mpi=pmix, or with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in the environment, "
      "this\n"
      "process is one rank of the job.");
}

} // namespace reckon
