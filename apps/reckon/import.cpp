// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "core/units.hpp"
#include "described_machine.hpp"
#include "documents/document.hpp"
#include "documents/json.hpp"
#include "expect/judged_log.hpp"
#include "expect/nvlink_domain.hpp"
#include "import/astra_workload.hpp"
#include "import/import.hpp"
#include "import/trace_workload.hpp"
#include "present/document_text.hpp"
#include "probe/description.hpp"
#include "strategies/forest/planner.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace reckon {
namespace {

constexpr std::string_view k_astra_sim = "astra-sim";

bool is_folder(const std::string& path) {
  std::error_code ignored; // reading says why
  return std::filesystem::is_directory(path, ignored);
}

/// What describes a machine, and how to make a profile of it; empty for other texts.
std::string what_machine_is(std::string_view text, const std::string& path) {
  const char* what = is_folder(path) ? "this is a folder; if `reckon probe --record` filled it, "
                     : text.starts_with('<')  ? "this is XML; if hwloc, NCCL or RCCL wrote it, "
                     : is_topology_text(text) ? "this is the text of `nvidia-smi topo -m`; "
                                              : nullptr;
  return what == nullptr ? ""
                         : fmt::format("{}make a profile of it: `reckon probe --topology {} -o "
                                       "profile.json`",
                                       what, path);
}

struct ImportArguments {
  std::vector<std::string> files;
  std::string output, format, collective, merge, hosts;
  DescribedMachine described;
  std::optional<std::string> machine;
  std::optional<std::uint64_t> ranks;
  bool json = false, workload = false;
};

/// What was imported, to the file and as tables or JSON to standard output.
template <class T>
int conclude(const T& document, const ImportArguments& arguments) {
  refuse_overwriting(arguments.output, arguments.files, kind_of(Document(document)));
  hand_out(canonical_text(document), arguments.output, arguments.json,
           [&] { return render(document, style_for(ColorMode::automatic, STDOUT_FILENO), {}); });
  return k_exit_ok;
}

void refuse_options_of_measurements(const std::string& file, const char* what,
                                    const ImportArguments& arguments) {
  if (arguments.files.size() > 1 || arguments.machine || !arguments.collective.empty() ||
      arguments.ranks || !arguments.merge.empty() || !arguments.hosts.empty() ||
      arguments.described.given()) {
    fail(ErrorKind::usage,
         fmt::format("{} is {}: give it alone, without --machine, --hosts, --collective, --ranks, "
                     "--merge, --profile and --topology, which are for measurements",
                     file, what));
  }
}

int import_workload(const std::string& text, const std::string& file,
                    const ImportArguments& arguments) {
  refuse_options_of_measurements(file, "a workload of ASTRA-sim", arguments);
  const AstraWorkload imported = read_astra_workload(text, file);
  const LeftOut& out = imported.left_out;
  if (out.layers > 0) {
    log(LogLevel::warn,
        "{}: {} layers exchange activations between workers that share a model, {} in all; a "
        "workload has no place for that, it is left out",
        file, out.layers, to_text(Bytes(out.collective_bytes)));
  }
  if (out.unawaited > 0) {
    log(LogLevel::warn,
        "{}: the all-to-all of the last layer is kept as bytes only: no layer waits "
        "for it",
        file);
  }
  if (out.later > 0) {
    log(LogLevel::warn,
        "{}: after {} all-to-alls the next layer has one, too; what waits for them here is the "
        "next layer without",
        file, out.later);
  }
  if (out.update_cycles > 0) {
    log(LogLevel::info, "{}: delays of {} cycles after the collectives are left out", file,
        out.update_cycles);
  }
  return conclude(workload_from_json(to_json(imported.workload), "the imported workload"),
                  arguments);
}

/// The log beside the machine, where --nvlink-machines of its hosts count as one.
JudgedLog judged_in_domains(const DescribedMachine& described, const Profile& machine,
                            const Profile& log) {
  const std::size_t hosts = described.domain_of(log.machines.size());
  if (hosts == 1) {
    return judged_log(machine, log, {.sharp = described.sharp});
  }
  const std::string id = machine_with_topology(machine);
  const std::size_t gpus = machine.topology.ids_in(id, ObjectKind::gpu).size();
  JudgedLog judged = judged_log(joined_by_nvlink(machine, id, hosts), joined_log(log, hosts, gpus),
                                {.sharp = described.sharp});
  for (JudgedCollective& collective : judged.collectives) {
    collective.expected.machines *= hosts;
  }
  return judged;
}

int run_import(const ImportArguments& arguments) {
  std::vector<ToolOutput> outputs;
  arguments.described.refuse_without_machine();
  for (const std::string& file : arguments.files) {
    outputs.push_back({.file = file, .text = is_folder(file) ? "" : read_file(file)});
    const std::string& text = outputs.back().text;
    if (const std::string what = what_machine_is(text, file);
        !what.empty() && program_of(text).empty()) { // a log may have the machine's matrix, too
      fail(ErrorKind::input, fmt::format("{}: {}", file, what));
    }
    if (arguments.format.empty() ? is_astra_workload(text) : arguments.format == k_astra_sim) {
      return import_workload(text, file, arguments);
    }
    if (arguments.workload) {
      refuse_options_of_measurements(file, "to become a workload", arguments);
      return conclude(
          workload_from_json(to_json(workload_from_trace(text, file)), "the imported workload"),
          arguments);
    }
  }
  ImportOptions options;
  options.collective = arguments.collective;
  options.ranks = arguments.ranks;
  options.format = arguments.format;
  if (!arguments.hosts.empty()) {
    options.hosts = read_hosts(read_file(arguments.hosts), arguments.hosts);
  }
  std::optional<Profile> profile;
  if (!arguments.merge.empty()) {
    profile = read_profile(arguments.merge);
    options.machine = profile->machines.front().id;
    if (!arguments.machine && profile->machines.size() != 1) {
      fail(ErrorKind::usage,
           fmt::format("--merge {}: has {} machines; say with --machine which one was measured",
                       arguments.merge, profile->machines.size()));
    }
  }
  if (arguments.machine) {
    options.machine = *arguments.machine;
  }
  for (const Profile& added : import_texts(std::move(outputs), options)) {
    if (profile) {
      const bool named = arguments.machine || !arguments.merge.empty();
      merge_import(*profile, named ? added : with_ids_by_name(added, *profile));
    } else {
      profile = added;
    }
  }
  warn_of_spread(*profile);
  // What is written must read: an odd name in an input would show here and not in the next command.
  const Profile checked = profile_from_json(to_json(*profile), "the imported profile");
  if (arguments.described.given()) {
    const Profile described = read_described(arguments.described, &checked);
    const JudgedLog judged = judged_in_domains(arguments.described, described, checked);
    const bool is_topology = !arguments.described.topology.empty();
    refuse_overwriting(arguments.output, arguments.files, "profile");
    hand_out(canonical_text(is_topology ? with_tree_of(described, checked) : checked),
             arguments.output, false, [&] {
               return arguments.json
                          ? canonical(to_json(judged))
                          : render(judged, style_for(ColorMode::automatic, STDOUT_FILENO));
             });
    return k_exit_ok;
  }
  return conclude(checked, arguments);
}

} // namespace

std::string what_text_is(std::string_view text, const std::string& path) {
  const std::string program = program_of(text);
  return program.empty() ? what_machine_is(text, path)
                         : fmt::format("this is output of {}; make a profile of it: `reckon import "
                                       "{} -o profile.json`",
                                       program, path);
}

void add_import_command(Arguments& program) {
  auto arguments = std::make_shared<ImportArguments>();
  Arguments& command = program.command(
      "import",
      "Make a profile from the output of nvbandwidth, p2pBandwidthLatencyTest, nccl-tests, Intel "
      "MLC, OSU's benchmarks, perftest, nccom-test, TransferBench, rocm_bandwidth_test, "
      "ucx_perftest or ucc_perftest, or from the records of a job by NCCL's Inspector, ncclras, "
      "PyTorch's Flight Recorder or torch.profiler, or a workload from a text of ASTRA-sim or a "
      "trace of torch.profiler");
  command.example("reckon import p2p.txt mlc.txt -o profile.json");
  command.option("files", &arguments->files, "The tools' output; - is standard input").required();
  command
      .option("-o,--output", &arguments->output,
              "File of the result: the profile or workload; - is standard output")
      .type("FILE");
  command
      .option("--format", &arguments->format,
              "Format of another program: of the files. Default: detected from their content")
      .one_of({"nvbandwidth", "p2p", "nccl-tests", "mlc", "osu", "perftest", "nccom-test",
               "transferbench", "rocm_bandwidth_test", "ucx_perftest", "ucc_perftest", "inspector",
               "ncclras", "flight-recorder", "kineto", "astra-sim"},
              true);
  command
      .option("--machine", &arguments->machine,
              "Id of the machine: the measured one; for two processes (OSU, perftest, "
              "ucx_perftest) one "
              "each, m0,m1, "
              "the initiator first. Default: m0, or the one of --merge")
      .type("ID[,ID]");
  command
      .option(
          "--hosts", &arguments->hosts,
          "Names of the machines that logs of pairs call by address, a file as /etc/hosts: what "
          "`getent hosts NAME ...` prints")
      .type("FILE");
  command
      .option("--collective", &arguments->collective,
              "Which collective: of an output of nccl-tests or nccom-test (all_reduce, ...), if "
              "the file "
              "does not name it")
      .type("NAME");
  command.option(
      "--ranks", whole_number(&arguments->ranks, 2, 1 << 16),
      "Number of ranks, if the file does not say: of nccl-tests or nccom-test, all on one machine, "
      "or of a collective of OSU or ucc_perftest");
  command.option("--merge", &arguments->merge, "Add to this profile; --output may name it too")
      .type("PROFILE");
  add_described_machine(command, &arguments->described,
                        "A profile: of the machines; compare each row of nccl-tests with what they "
                        "should give");
  command.option("--as-workload", &arguments->workload,
                 "The workload in a trace of torch.profiler, of one rank: gradients in their order "
                 "and the layers' times. Default: the profile of its collectives");
  command.option("--json", &arguments->json,
                 "JSON on standard output: the document instead of its tables");
  command.action([arguments] { return run_import(*arguments); });
}

} // namespace reckon
