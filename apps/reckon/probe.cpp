// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/interrupt.hpp"
#include "core/log.hpp"
#include "core/progress.hpp"
#include "core/terminal.hpp"
#include "documents/document.hpp"
#include "probe/probe.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <unistd.h>
#include <vector>

namespace reckon {
namespace {

struct Flags {
  std::string output = "profile.json";
  std::string budget = "30s";
  std::vector<std::string> only;
  std::vector<std::string> transports;
  std::optional<std::uint64_t> seed;
  std::string name;
  bool json = false, list = false, force = false;
};

/// Throws unless writing a profile to `path` destroys nothing but an older profile.
void check_output(const std::string& path, bool force) {
  if (path == "-" || force || !std::filesystem::exists(path)) {
    return;
  }
  try {
    static_cast<void>(read_profile(path));
  } catch (const Error&) {
    fail(ErrorKind::usage,
         fmt::format("{} exists and is no profile; give another -o, or --force to replace it",
                     path));
  }
}

std::string command_line(const Flags& flags) {
  std::string text = "--budget " + flags.budget;
  for (const std::string& name : flags.only) {
    text += " --only " + name;
  }
  for (const std::string& name : flags.transports) {
    text += " --transport " + name;
  }
  return text;
}

int list_cases() {
  for (const ProbeCase& c : probe_cases()) {
    fmt::print("{:<28} {}\n", c.name, c.summary);
  }
  return k_exit_ok;
}

int run_probe(const Flags& flags) {
  if (flags.list) {
    return list_cases();
  }
  const std::string output = flags.json ? "-" : flags.output;
  check_output(output, flags.force);
  ProbeOptions options;
  options.budget = parse_seconds(flags.budget, "--budget");
  if (options.budget < Seconds(0.1)) {
    fail(ErrorKind::usage, fmt::format("--budget {}: nothing can be measured in that time; "
                                       "give 1s or more",
                                       flags.budget));
  }
  options.only = flags.only;
  options.transports = flags.transports;
  options.seed = flags.seed ? *flags.seed : std::random_device{}() % 1'000'000;
  options.name = flags.name;
  options.flags = command_line(flags);
  options.interrupted = &interrupted;
  std::optional<Progress> progress(std::in_place);
  options.starting = [](std::size_t cells, Seconds estimate) {
    if (is_smart_terminal(STDERR_FILENO)) {
      fmt::print(stderr,
                 "measuring this machine: {} cells, about {:.0f} s; Ctrl-C keeps what is "
                 "there by then\n",
                 cells, estimate.count());
    }
  };
  options.progress = [&progress](double done, std::string_view what, Seconds left) {
    progress->show(done, what, left);
  };
  const ProbeResult result = probe_machine(options);
  progress.reset(); // takes its line away

  for (const std::string& warning : result.warnings) {
    log(LogLevel::warn, "{}", warning);
  }
  write_file(output, canonical_text(result.profile));
  if (output != "-") {
    const std::string summary = summary_of(result.profile);
    std::fwrite(summary.data(), 1, summary.size(), stdout);
    fmt::print("\nwrote {}\n", output);
  }
  if (result.broken > 0) {
    log(LogLevel::error, "{} cells failed; their reasons are in the profile", result.broken);
  }
  if (result.interrupted) {
    return k_exit_interrupted;
  }
  return result.broken > 0 ? k_exit_operation : k_exit_ok;
}

} // namespace

Command add_probe_command(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* probe = app.add_subcommand("probe", "Measure this machine into a profile");
  probe
      ->add_option("-o,--output", flags->output,
                   "Where the profile goes; - is standard output. An older profile is replaced, "
                   "any other file is not")
      ->capture_default_str();
  probe->add_flag("--force", flags->force, "Replace whatever -o names");
  probe->add_option("--budget", flags->budget, "Time for everything: 30s, 2min")
      ->capture_default_str();
  probe->add_option("-t,--only", flags->only, "Measure these cases only; see --list");
  probe->add_flag("-l,--list", flags->list, "List the cases and end");
  probe->add_option("--transport", flags->transports,
                    "Measure these transports only, where the default is all there are");
  probe->add_option("--seed", flags->seed,
                    "Draws the order of the cells and the random addresses; default: another each "
                    "time, written to the profile");
  probe->add_option("--name", flags->name, "Name of the profile; default: the host's name");
  probe->add_flag("--json", flags->json, "The profile on standard output, no summary: -o -");
  probe->footer("What is measured and how: docs/measuring.md.\n"
                "Exit status: 0 measured; 2 usage; 3 not available here; 4 some cells failed;\n"
                "130 interrupted, with what was measured until then written.");
  return [flags] { return run_probe(*flags); };
}

} // namespace reckon
