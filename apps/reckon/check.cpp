// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "core/units.hpp"
#include "documents/document.hpp"
#include "measuring.hpp"
#include "present/monitor_text.hpp"
#include "present/verdict_text.hpp"
#include "verdict/verdict.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <unistd.h>

namespace reckon {
namespace {

constexpr const char* k_nagios = "nagios";

struct CheckArguments {
  std::string profile, baseline, require, output, budget;
  std::string format = "text";
  bool json = false, quiet = false;
  ColorMode color = ColorMode::automatic;
};

std::uint64_t machines_of(const Profile& profile) {
  return std::accumulate(profile.machines.begin(), profile.machines.end(), std::uint64_t{0},
                         [](std::uint64_t n, const MachineGroup& m) { return n + m.count; });
}

int run_check(const CheckArguments& arguments) {
  const bool measures = arguments.profile.empty();
  if (arguments.json && arguments.format != "text") {
    fail(ErrorKind::usage, fmt::format("--json and --format {} both say what is printed; give one",
                                       arguments.format));
  }
  if (!measures && !(arguments.output.empty() && arguments.budget.empty())) {
    fail(ErrorKind::usage,
         "check PROFILE measures nothing: leave -o and --time away, or PROFILE to measure this "
         "machine");
  }
  refuse_overwriting(arguments.output, {arguments.baseline, arguments.require}, "profile");
  require_writable(arguments.output);
  // Before half a minute of measuring.
  VerdictOptions options;
  std::optional<Profile> baseline;
  std::optional<Requirements> requirements;
  if (!arguments.baseline.empty()) {
    baseline = read_profile(arguments.baseline);
    options.baseline = &*baseline;
    options.baseline_name = std::filesystem::path(arguments.baseline).filename().string();
  }
  if (!arguments.require.empty()) {
    requirements = read_requirements(arguments.require);
    options.requirements = &*requirements;
  }
  Profile profile;
  if (measures) {
    ProbeResult result = measure_this_machine(arguments.budget);
    for (const std::string& warning : result.warnings) {
      log(LogLevel::info, "{}", warning);
    }
    if (!arguments.output.empty()) {
      write_file(arguments.output, canonical_text(result.profile));
    }
    if (result.interrupted) {
      return k_exit_interrupted;
    }
    profile = std::move(result.profile);
  } else {
    profile = read_profile(arguments.profile);
  }
  if (baseline && (machines_of(profile) > 1) != (machines_of(*baseline) > 1)) {
    fail(ErrorKind::input,
         fmt::format("--baseline {}: '{}' is of {}, and '{}' of {}; compare like with like",
                     arguments.baseline, baseline->name, counted(machines_of(*baseline), "machine"),
                     profile.name, counted(machines_of(profile), "machine")));
  }
  const Verdict verdict = judge(profile, options);
  if (arguments.json) {
    write_file("-", canonical(to_json(verdict)));
  } else if (arguments.format == "prometheus") {
    write_file("-", prometheus_text(verdict));
  } else if (arguments.format == k_nagios) {
    write_file("-", nagios_text(verdict));
    return static_cast<int>(nagios_state(verdict));
  } else if (!arguments.quiet || !verdict.passed()) {
    write_file("-", render(verdict, style_for(arguments.color, STDOUT_FILENO)));
    if (!arguments.output.empty()) {
      write_file("-", fmt::format("\nwrote {}; later: reckon check --baseline {}\n",
                                  arguments.output, arguments.output));
    }
  }
  return verdict.passed()           ? k_exit_ok
         : verdict.findings.empty() ? exit_status(ErrorKind::unavailable)
                                    : k_exit_verdict;
}

/// For Nagios an error is a line and a status, too.
int run_check_for(const CheckArguments& arguments) {
  if (arguments.format != k_nagios) {
    return run_check(arguments);
  }
  try {
    return run_check(arguments);
  } catch (const std::exception& e) {
    write_file("-", nagios_text(e.what()));
    return static_cast<int>(NagiosState::unknown);
  }
}

} // namespace

void add_check_command(Arguments& program) {
  auto arguments = std::make_shared<CheckArguments>();
  Arguments& command =
      program.command("check", "Measure this machine, or read a profile, and list what is wrong");
  command.example("reckon check");
  command.example("reckon check cluster.json --baseline last-month.json");
  command.option("profile", &arguments->profile,
                 "A profile, or a shipped one's name; - is standard input. Default: measure this "
                 "machine as `reckon probe` does");
  command
      .option("--baseline", &arguments->baseline,
              "A profile of this machine or of one of its type: also list what got worse since")
      .type("PROFILE");
  command.option("--require", &arguments->require, "Thresholds that must be met").type("FILE");
  command
      .option("-o,--output", &arguments->output,
              "File of the result: the profile that was measured; an older one is replaced")
      .type("PROFILE");
  command.option("--time", &arguments->budget, "Time that it may take: to measure, as for probe");
  command
      .option("--format", &arguments->format,
              "Format of another program: that the verdict is for, text for people, prometheus for "
              "node_exporter's textfile collector, nagios for a plug-in of Nagios: one line, with "
              "its exit statuses")
      .one_of({"text", "prometheus", k_nagios}, true)
      .shows_default();
  command.option("-q,--quiet", &arguments->quiet, "Print nothing unless something is wrong");
  command.option("--json", &arguments->json, "JSON on standard output: one document");
  command.color(&arguments->color);
  command.renamed("--budget", "--time");
  command.footer("Exit status: 0 nothing wrong; 1 something is; 2 usage or bad input; 3 nothing "
                 "could be judged, or not available here; 130 interrupted. With --format nagios: 0 "
                 "nothing wrong; 1 "
                 "something is slow; 2 a fault or a missed requirement; 3 nothing judged, or an "
                 "error.");
  command.action([arguments] { return run_check_for(*arguments); });
}

} // namespace reckon
