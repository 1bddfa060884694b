// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/interrupt.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "core/progress.hpp"
#include "core/system_files.hpp"
#include "core/terminal.hpp"
#include "documents/cells.hpp"
#include "documents/document.hpp"
#include "launch/rendezvous.hpp"
#include "measuring.hpp"
#include "output.hpp"
#include "present/document_text.hpp"
#include "probe/cluster.hpp"
#include "probe/description.hpp"
#include "probe/probe.hpp"
#include "rehearse/rehearsals.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace reckon {
namespace {

struct Flags {
  std::string output = "profile.json";
  std::string budget;
  std::vector<std::string> only;
  std::vector<std::string> transports;
  std::optional<std::uint64_t> seed;
  std::string name;
  std::string topology, record;
  std::string limit = "60s";
  bool json = false, list = false, force = false, cluster = false, no_nvlink = false,
       pair_writes = false, rails = false, thorough = false;
};

std::string command_line(const Flags& flags) {
  std::string text = flags.cluster ? "--cluster " : "";
  text += flags.budget.empty() ? "" : "--time " + flags.budget;
  text += flags.thorough ? " --thorough" : "";
  for (const std::string& name : flags.only) {
    text += " --only " + name;
  }
  for (const std::string& name : flags.transports) {
    text += " --transport " + name;
  }
  text += flags.no_nvlink ? " --no-nvlink" : "";
  text += flags.pair_writes ? " --pair-writes" : "";
  text += flags.rails ? " --rails" : "";
  return text;
}

/// The cases, each with its cells on this machine, and how long they take.
int list_cells(const ProbeOptions& options, bool json) {
  const ProbeList list = list_probe(options);
  if (json) {
    std::vector<std::string> cells;
    for (const CellKey& key : list.cells) {
      cells.push_back(key.text());
    }
    write_file("-", canonical({{"cells", cells}, {"estimate_seconds", list.estimate.count()}}));
    return k_exit_ok;
  }
  std::string text;
  bool of_cluster = false;
  for (const CellCase& c : cell_cases()) {
    if (!of_cluster && c.on == MeasuredOn::cluster) {
      text += "\nwith --cluster, all of them:\n";
      of_cluster = true;
    }
    text += fmt::format("{}  {}\n", c.name, c.summary);
    for (const CellKey& key : list.cells) {
      if (!of_cluster && key.test == c.name) {
        text += fmt::format("    {}\n", key.text());
      }
    }
  }
  text += fmt::format("\n{} on this machine, about {:.0f} s if nothing else runs\n",
                      counted(list.cells.size(), "cell"), list.estimate.count());
  write_file("-", text);
  return k_exit_ok;
}

/// The machines of a cluster, the ports of each rail, and how long measuring them takes.
void list_cluster(const ClusterList& list, bool json) {
  if (json) {
    write_file("-", canonical({{"machines", list.machines},
                               {"transport", list.transport},
                               {"rails", list.rails},
                               {"estimate_seconds", list.estimate.count()}}));
    return;
  }
  std::string text = fmt::format("{} over {}: {}\n", counted(list.machines.size(), "machine"),
                                 list.transport, fmt::join(list.machines, ", "));
  for (std::size_t rail = 0; rail < list.rails.size(); ++rail) {
    const std::set<std::string> names(list.rails[rail].begin(), list.rails[rail].end());
    text += fmt::format(
        "    rail{}  {}\n", rail,
        fmt::join(names.size() == 1 ? std::vector(names.begin(), names.end()) : list.rails[rail],
                  ", "));
  }
  text += fmt::format("\nabout {:.0f} s\n", list.estimate.count());
  write_file("-", text);
}

Seconds budget_of(const std::string& text) {
  const Seconds budget = parse_seconds(text, "--time");
  if (budget < Seconds(0.1)) {
    fail(ErrorKind::usage, fmt::format("--time {}: nothing can be measured in that time; "
                                       "give 1s or more",
                                       text));
  }
  return budget;
}

/// What a profile that was cut short cannot be used for.
void warn_of_skipped(const Profile& profile, bool interrupted) {
  const auto count = [&](auto of) {
    return static_cast<std::size_t>(std::count_if(profile.cells.begin(), profile.cells.end(), of));
  };
  const std::string cure = interrupted ? "let the probe end" : "give it more --time";
  const std::size_t skipped = count([](const Cell& c) { return c.status == CellStatus::skipped; });
  if (2 * skipped > profile.cells.size()) {
    log(LogLevel::warn, "{} of {} were skipped; {}", skipped, counted(profile.cells.size(), "cell"),
        cure);
  }
  const auto of_plan = [](const Cell& c) { return c.key.test == k_fabric_aggregate; };
  if (count(of_plan) > 0 &&
      count([&](const Cell& c) { return of_plan(c) && c.has_value(); }) == 0) {
    log(LogLevel::warn,
        "no plan can be made of this profile: none of its fabric_aggregate cells was measured; {}",
        cure);
  }
}

void refuse_to_replace(const std::string& output, const Flags& flags) {
  if (!flags.force) {
    refuse_overwriting(output, {}, "profile", "-o");
  }
  require_writable(output);
}

int conclude(const ProbeResult& result, const std::string& output, bool cluster) {
  for (const std::string& warning : result.warnings) {
    log(LogLevel::warn, "{}", warning);
  }
  write_file(output, canonical_text(result.profile));
  if (output != "-") {
    const Style style = style_for(ColorMode::automatic, STDOUT_FILENO);
    const std::string summary =
        cluster ? render_cluster(result.profile, style) : render_summary(result.profile, style);
    // Before what comes on standard error.
    write_file("-", fmt::format("{}\nwrote {}\n", summary, output));
  }
  if (result.broken > 0) {
    log(LogLevel::error, "{} cells failed; their reasons are in the profile", result.broken);
  }
  if (!cluster) {
    warn_of_skipped(result.profile, result.interrupted);
  }
  if (result.interrupted) {
    return k_exit_interrupted;
  }
  return result.broken > 0 ? k_exit_operation : k_exit_ok;
}

/// What is asked of either probe.
void ask(ProbeRequest& request, const Flags& flags, std::optional<Progress>& progress) {
  request.transports = flags.transports;
  request.seed = flags.seed ? *flags.seed : std::random_device{}() % 1'000'000;
  request.name = flags.name;
  request.flags = command_line(flags);
  request.keep_files = flags.record;
  request.interrupted = &interrupted;
  request.progress = [&progress](double done, std::string_view what, Seconds left) {
    progress->show(done, what, left);
  };
}

void tell_begin(const std::string& what, Seconds estimate) {
  if (is_smart_terminal(STDERR_FILENO)) {
    fmt::print(stderr, "measuring {}, about {:.0f} s; Ctrl-C keeps what is there by then\n", what,
               estimate.count());
  }
}

int run_cluster_probe(const Flags& flags) {
  const auto job = job_from_environment();
  if (!job) {
    fail(ErrorKind::usage,
         "probe --cluster measures the machines of a job, one process on each, and this process is "
         "in none: RANK and WORLD_SIZE are not set; start it on every machine with a launcher, as "
         "`mpirun -N 1`, `srun` or `torchrun --nproc-per-node 1`, or set RANK, WORLD_SIZE, "
         "MASTER_ADDR and MASTER_PORT by hand");
  }
  if (!flags.only.empty()) {
    fail(ErrorKind::usage, "probe --cluster measures all of its cases; leave --only away");
  }
  if (flags.no_nvlink) {
    fail(ErrorKind::usage,
         "probe --cluster measures the network between machines; leave --no-nvlink away");
  }
  const std::string output = flags.json ? "-" : flags.output;
  if (job->rank == 0 && !flags.list) {
    refuse_to_replace(output, flags);
  }
  ClusterProbeOptions options;
  if (!flags.budget.empty()) {
    options.budget = budget_of(flags.budget);
  }
  options.pair_writes = flags.pair_writes;
  options.rails = flags.rails;
  options.only_list = flags.list;
  options.limit = parse_seconds(flags.limit, "--step-timeout");
  options.starting = [&flags](const ClusterList& list) {
    if (flags.list) {
      list_cluster(list, flags.json);
    } else {
      tell_begin(fmt::format("{} machines", list.machines.size()), list.estimate);
    }
  };
  std::optional<Progress> progress(std::in_place);
  ask(options, flags, progress);
  Rendezvous rendezvous(*job, "probe", options.limit);
  const ProbeResult result = probe_cluster(rendezvous, options);
  progress.reset(); // takes its line away
  return job->rank == 0 && !flags.list ? conclude(result, output, true) : k_exit_ok;
}

/// The tree of a machine that is not here; nothing is measured.
int run_topology(const Flags& flags) {
  if (flags.cluster || !flags.only.empty() || !flags.transports.empty() || !flags.budget.empty()) {
    fail(ErrorKind::usage,
         "probe --topology measures nothing: leave --cluster, --only, --transport and --time "
         "away, or leave --topology away to measure this machine");
  }
  const std::string output = flags.json ? "-" : flags.output;
  refuse_to_replace(output, flags);
  const Profile profile = profile_of_topology_file(flags.topology, flags.name);
  write_file(output, canonical_text(profile));
  if (output != "-") {
    const std::string shown = render(profile, style_for(ColorMode::automatic, STDOUT_FILENO));
    write_file("-", fmt::format("{}\nwrote {}: nothing was measured\n", shown, output));
  }
  return k_exit_ok;
}

ProbeOptions options_of(const Flags& flags) {
  ProbeOptions options;
  if (!flags.budget.empty()) {
    options.budget = budget_of(flags.budget);
  }
  options.thorough = flags.thorough;
  options.only = flags.only;
  options.transports = flags.transports;
  options.nvlink = !flags.no_nvlink;
  options.rehearse = &rehearsal_campaigns;
  return options;
}

ProbeResult measure(const Flags& flags) {
  try {
    require_own_machine(job_from_environment());
  } catch (const Error& error) { // a launcher that tells nobody about the others
    if (error.kind() != ErrorKind::unavailable) {
      throw;
    }
  }
  ProbeOptions options = options_of(flags);
  options.starting = [](std::size_t cells, Seconds estimate) {
    tell_begin(fmt::format("this machine: {} cells", cells), estimate);
  };
  std::optional<Progress> progress(std::in_place); // takes its line away when it goes
  ask(options, flags, progress);
  return probe_machine(options);
}

int run_probe(const Flags& flags) {
  if (!flags.record.empty()) {
    if (flags.cluster || flags.list || !flags.topology.empty()) {
      fail(ErrorKind::usage, "--record keeps the files of one machine that is measured: leave "
                             "--cluster, --list and --topology away");
    }
    require_new_folder(flags.record);
  }
  if (!flags.cluster && (flags.pair_writes || flags.rails)) {
    fail(ErrorKind::usage,
         fmt::format("{} is of the machines of a cluster: give --cluster, or leave it away",
                     flags.rails ? "--rails" : "--pair-writes"));
  }
  if (!flags.topology.empty()) {
    return run_topology(flags);
  }
  if (flags.cluster) {
    return run_cluster_probe(flags);
  }
  if (flags.list) {
    return list_cells(options_of(flags), flags.json);
  }
  const std::string output = flags.json ? "-" : flags.output;
  refuse_to_replace(output, flags);
  return conclude(measure(flags), output, false);
}

} // namespace

ProbeResult measure_this_machine(const std::string& budget) {
  Flags flags;
  flags.budget = budget;
  return measure(flags);
}

void add_probe_command(Arguments& program) {
  auto flags = std::make_shared<Flags>();
  Arguments& probe = program.command("probe", "Measure this machine, or a cluster, into a profile");
  probe.example("reckon probe -o profile.json");
  probe.example("mpirun -N 1 --hostfile hosts reckon probe --cluster -o cluster.json");
  probe
      .option(
          "-o,--output", &flags->output,
          "File of the result: a profile; - is standard output. Only an older profile is replaced")
      .shows_default();
  probe.option("--force", &flags->force, "Replace whatever -o names");
  probe.option("--cluster", &flags->cluster,
               "Measure the machines of a job and the network between them; start it on each "
               "machine with a launcher");
  probe.option(
      "--time", &flags->budget,
      "Time that it may take: for everything, 1min, 2min. Default: what the cells need, see "
      "--list; for a cluster what its machines need");
  probe.option("--thorough", &flags->thorough,
               "Whole curves and all combinations of threads, operands and sizes: some minutes");
  probe
      .option("--step-timeout", &flags->limit,
              "End the job when a rank has not finished within this time: of a cluster")
      .shows_default();
  probe.option("--pair-writes", &flags->pair_writes,
               "Cluster: also measure pair_write, the time of a write between every pair by size, "
               "with more than 8 machines; about 2.4 s more for each machine");
  probe.option("--rails", &flags->rails,
               "Cluster: also measure port i of each machine with port i of the others, each rail "
               "alone and all at once; about 0.3 s for each machine and rail");
  probe.option("-t,--only", &flags->only, "Measure only these cases: a,b; see --list")
      .separated_by(',');
  probe.option("-l,--list", &flags->list,
               "Print a list and end: the cases and cells of this machine; with --cluster its "
               "machines and rails");
  probe
      .option(
          "--transport", &flags->transports,
          "What moves the bytes: measure only these, a,b. Default: all; for a cluster the best one "
          "that connects machines")
      .separated_by(',');
  probe.option("--no-nvlink", &flags->no_nvlink,
               "Measure GPUs as if only PCIe joined them: pairs with other links copy through the "
               "host");
  probe.option("--seed", &flags->seed,
               "For the order of the cells and random addresses. Default: a new one each time, "
               "recorded in the profile");
  probe.option("--name", &flags->name,
               "Name of the profile. Default: the host's name, or the file's with --topology");
  probe.option("--topology", &flags->topology,
               "Measure nothing: make a profile of another machine's tree from a file of hwloc "
               "(lstopo machine.xml), NCCL or RCCL (NCCL_TOPO_DUMP_FILE), of the text of "
               "`nvidia-smi topo -m`, or of a folder of --record");
  probe
      .option("--record", &flags->record,
              "A new folder for the system's files that were read: --topology FOLDER makes the "
              "machine's tree and settings of them anywhere. They contain addresses")
      .type("FOLDER");
  probe.option("--json", &flags->json,
               "JSON on standard output: the profile, no summary, as -o -; or the list");
  probe.renamed("--budget", "--time");
  probe.renamed("--limit", "--step-timeout");
  probe.footer("docs/measuring.md explains what is measured and how.\n"
               "Exit status: 0 measured; 2 usage; 3 not available here; 4 some cells failed;\n"
               "130 interrupted, with what was measured so far written.");
  probe.action([flags] { return run_probe(*flags); });
}

} // namespace reckon
