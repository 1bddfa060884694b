// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

#include "compare/comparison.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "present/comparison_text.hpp"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <unistd.h>

namespace reckon {
namespace {

struct DiffArguments {
  std::string before, after;
  CompareOptions options;
  bool json = false;
  ColorMode color = ColorMode::automatic;
};

int run_diff(const DiffArguments& arguments) {
  if (arguments.before == "-" && arguments.after == "-") {
    fail(ErrorKind::usage, "standard input can be one of the two documents, not both");
  }
  const Document before = read_file_or_shipped(arguments.before);
  const Document after = read_file_or_shipped(arguments.after);
  const Comparison comparison = compare(before, after, arguments.options);
  for (const std::string& warning : comparison.warnings) {
    log(LogLevel::warn, "{}", warning);
  }
  write_file("-", arguments.json ? canonical(to_json(comparison))
                                 : render(comparison, arguments.before, arguments.after,
                                          style_for(arguments.color, STDOUT_FILENO),
                                          log_level() >= LogLevel::info));
  return comparison.same() ? k_exit_ok : k_exit_verdict;
}

} // namespace

void add_diff_command(Arguments& program) {
  auto arguments = std::make_shared<DiffArguments>();
  Arguments& command = program.command("diff", "Compare two plans, profiles or reports by meaning");
  command.example("reckon diff old-plan.json plan.json");
  CompareOptions& options = arguments->options;
  command
      .option("before", &arguments->before,
              "A document, or the name of a shipped profile or workload; - is standard input")
      .required();
  command.option("after", &arguments->after, "Another one of the same kind").required();
  command.option(
      "--threshold", Take([&options](const std::string& text, std::string_view flag) {
        fraction (&options.exact_tolerance)(text, flag);
        options.machine_tolerance = options.latency_tolerance = options.bandwidth_tolerance =
            options.exact_tolerance;
      }),
      "Smallest difference that counts: e.g. 5%. Default: 20% for cells of one machine; between "
      "machines 15% for latencies and 5% for bandwidths; 5% for iteration times; rounding for "
      "values that are solved, predicted or published");
  command.option("--machine-threshold", fraction(&options.machine_tolerance),
                 "The same, only for cells of one machine");
  command.option("--latency-threshold", fraction(&options.latency_tolerance),
                 "The same, only for latencies between machines");
  command.option("--bandwidth-threshold", fraction(&options.bandwidth_tolerance),
                 "The same, only for bandwidths between machines and iteration times");
  command.option("--only-worse", &options.only_worse,
                 "Exit 1 only if something got worse: a machine that is slower or lacks a part, a "
                 "plan with a longer predicted time, a report with a longer measured time or wrong "
                 "sums");
  command.option("--strict", &options.strict,
                 "Exit 1 also for undecided changes and for cells that were measured only before");
  command.option("--json", &arguments->json, "JSON on standard output: one document");
  for (const char* const of : {"", "machine-", "latency-", "bandwidth-"}) {
    command.renamed(fmt::format("--{}tolerance", of), fmt::format("--{}threshold", of));
  }
  command.color(&arguments->color);
  command.footer(
      "-v lists everything. Exit status: 0 the same; 1 different; 2 bad input, or documents of "
      "different kinds.");
  command.action([arguments] { return run_diff(*arguments); });
}

} // namespace reckon
