// SPDX-License-Identifier: Apache-2.0
#include "run_arguments.hpp"

#include "command_line.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <map>

namespace reckon {

void add_run_options(CLI::App& command, RunArguments& arguments) {
  command.add_option("plan", arguments.plan, "The plan; - is standard input");
  command.add_option("-o,--output", arguments.output, "Write the report to this file");
  command.add_flag("--json", arguments.json, "Print the report as JSON instead of tables");
  command.add_option("--transport", arguments.transport,
                     "Move the bytes over this transport instead of the plan's");
  command.add_option("--without", arguments.without,
                     "Ablation: move the bytes without some of register-once, address-once, "
                     "aligned, one-segment, shm (separated by commas)");
  command
      .add_option("--inject", arguments.inject,
                  "Emulate: delay and pace every write as the links of this profile would, "
                  "with all ranks on this machine. A rank takes the links of the machine, or of "
                  "the place inside a machine, that the plan names for it")
      ->type_name("PROFILE");
  command
      .add_option("--trace", arguments.trace,
                  "Time every op of the last iteration and write them as a trace for Perfetto or "
                  "chrome://tracing")
      ->type_name("FILE");
  command.add_flag("-l,--list", arguments.list,
                   "List the transports of this machine, and what is missing, and end");
  command.add_flag("--check", arguments.check_only, "Only prove the plan's schedule, move nothing");
  command.add_flag("--unchecked", arguments.unchecked,
                   "Start even a plan whose schedule would be refused, to see what becomes of it; "
                   "--limit ends what hangs");
  command.add_option("-n,--iterations", arguments.iterations,
                     "Counted iterations. Default: until the median is stable, within the budget");
  command.add_option("-w,--warm-up", arguments.warm_up, "Iterations before those that count")
      ->capture_default_str();
  command.add_option("--straggler", arguments.stragglers,
                     "RANK=2x: this rank's passes take twice as long as planned");
  command
      .add_option("--compute", arguments.compute,
                  "The passes are this work instead of waiting, on so many threads of each rank: "
                  "gemm_256 or gemm_1000, products of matrices of that side")
      ->type_name("WORK[:THREADS]");
  command
      .add_option("--cores", arguments.shared_cores,
                  "With --compute: lanes and work have processors of their own (dedicated), "
                  "or all processors together (shared) [dedicated]")
      ->transform(CLI::CheckedTransformer(
                      std::map<std::string, bool>{{"dedicated", false}, {"shared", true}})
                      .description(""))
      ->type_name("HOW");
  command.add_option("--checkpoint", arguments.checkpoint,
                     "Save parameters and optimizer states into this folder while iterations go "
                     "on; the last two checkpoints are kept");
  command.add_option("--checkpoint-every", arguments.checkpoint_every,
                     "Steps from one checkpoint to the next [10]");
  command.add_option("--resume", arguments.resume,
                     "Go on from the newest intact checkpoint in this folder");
  command.add_option(
      "--reprofile-every", arguments.adapt.every,
      "Measure the links again after so many counted iterations, and go on with a new plan where "
      "routing tables made anew are better; needs the documents that the plan was made from");
  command.add_option("--reprofile-gain", arguments.adapt.gain,
                     fmt::format("Part of its time that a change of plan must save [{:g}%]",
                                 100 * k_replan_margin));
  command.add_option("-p,--profile", arguments.adapt.profile,
                     "With --reprofile-every: the plan's profile");
  command.add_option("-m,--workload", arguments.adapt.workload,
                     "With --reprofile-every: the plan's workload");
  command.add_option("-r,--roles", arguments.adapt.roles,
                     "With --reprofile-every: the plan's roles, where it was made with some");
  command.add_option("--budget", arguments.budget, "Time for the counted iterations")
      ->capture_default_str();
  command.add_option("--limit", arguments.limit, "A step that takes longer has hung")
      ->capture_default_str();
  command
      .add_option("--peer-limit", arguments.peer_limit,
                  "A rank that was not heard of for longer is dead or cut off")
      ->capture_default_str();
  command
      .add_option("--tolerance", arguments.tolerance,
                  "Exit 1 when measured and predicted differ by more")
      ->capture_default_str();
  add_color_option(command, arguments.color);
  command.footer(
      "Without a launcher all ranks of the plan are started on this machine. Under mpirun, prterun "
      "or\n"
      "srun --mpi=pmix, or with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in the environment, "
      "this\n"
      "process is one rank of the job.");
}

} // namespace reckon
