// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/log.hpp"
#include "core/progress.hpp"
#include "core/units.hpp"
#include "core/whole_number.hpp"
#include "documents/document.hpp"
#include "planning/planned_profile.hpp"
#include "present/document_text.hpp"
#include "simulate/engine.hpp"
#include "simulate/prepare.hpp"
#include "simulate/report.hpp"
#include "simulate/scenario.hpp"
#include "strategies/lower.hpp"
#include "strategies/plan_network.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <unistd.h>

namespace reckon {
namespace {

struct SimulateArguments {
  std::string plan, profile, output;
  double tolerance = 0;
  PrepareOptions options;
  ScenarioOptions scenario;
  bool json = false;
  ColorMode color = ColorMode::automatic;
};

SimNetwork network_for(const Plan& plan, const Profile& profile) {
  PlanNetwork network = network_of(plan, profile);
  return {network.network, std::move(network.stations), network.network.write_overhead_s,
          std::move(network.cost)};
}

Take coarsening(std::optional<std::uint64_t>* merge) {
  return [merge](const std::string& text, std::string_view flag) {
    if (text == "auto") {
      merge->reset();
    } else if (text == "none") {
      *merge = 1;
    } else {
      *merge = whole_number<std::uint64_t>(text);
      if (merge->value_or(0) == 0) {
        fail(ErrorKind::usage,
             fmt::format("{} {}: use auto, none, or how many parts to play as one", flag, text));
      }
    }
  };
}

int conclude(const Report& report, const SimulateArguments& arguments) {
  hand_out(canonical_text(report), arguments.output, arguments.json,
           [&] { return report_table(report, style_for(arguments.color, STDOUT_FILENO)); });
  return report.within_tolerance || !report.as_planned() ? k_exit_ok : k_exit_verdict;
}

SimResult played(const PreparedPlan& prepared, const std::string& simulator, const char* what) {
  const std::size_t ops = prepared.graph.ops.size();
  Progress progress;
  const std::int64_t begin = monotonic_ns();
  return simulate(prepared.graph, simulator, [&](std::uint64_t done) {
    const double part = static_cast<double>(done) / static_cast<double>(ops);
    const double spent = static_cast<double>(monotonic_ns() - begin) * 1e-9;
    progress.show(part, fmt::format("{} of {} ops{}", done, ops, what),
                  Seconds(done > 0 ? spent / part - spent : -1));
  });
}

int execute(const SimulateArguments& arguments) {
  const std::string simulator = find_simulator();
  const Plan plan = read_plan(arguments.plan);
  if (seconds_of(plan.prediction, k_copies)) {
    log(LogLevel::warn, "copies between GPUs and memory are not simulated, and the prediction here "
                        "lacks them");
  }
  refuse_overwriting(arguments.output, {arguments.plan, arguments.profile}, "report");
  require_writable(arguments.output);
  const PlannedProfile links = planned_profile(plan, arguments.plan, arguments.profile);
  const SimNetwork network = network_for(plan, links.profile);
  const Scenario scenario = scenario_of(arguments.scenario, network);
  PrepareOptions options = arguments.options;
  const PreparedPlan prepared = prepare(plan, lower, network, scenario, options);
  if (prepared.merged_parts > 1 && prepared.merging_error > 0.1) {
    log(LogLevel::warn, "{} parts are played as one, which may add up to {:.0f} %; {} merges fewer",
        prepared.merged_parts, 100 * prepared.merging_error,
        options.merge ? "a smaller --coarsen" : "a longer --time");
  }
  const SimResult result = played(prepared, simulator, "");
  SimulatedPlan simulated{plan,
                          link_to(arguments.plan, canonical_text(plan)),
                          links.link,
                          prepared.schedule,
                          prepared.network,
                          prepared.scenario,
                          prepared.representative};
  simulated.ops = prepared.graph.ops.size();
  if (!scenario.texts.empty()) {
    options.merge = prepared.merged_parts; // both with the same parts, whatever it costs
    options.budget_seconds = std::numeric_limits<double>::infinity();
    simulated.undisturbed_seconds =
        played(prepare(plan, lower, network, {}, options), simulator, ", without the scenario")
            .seconds;
  }
  simulated.merged_parts = prepared.merged_parts;
  simulated.coarsening_error = prepared.merging_error;
  simulated.tolerance = arguments.tolerance;
  return conclude(simulation_report(simulated, result), arguments);
}

} // namespace

void add_simulate_command(Arguments& program) {
  auto arguments = std::make_shared<SimulateArguments>();
  Arguments& command = program.command(
      "simulate", "Play a plan on a model of its links; compare predicted and simulated times");
  command.example("reckon simulate plan.json --slow rank=3:0.5");
  command.option("plan", &arguments->plan, "The plan; - is standard input").required();
  command.option("-p,--profile", &arguments->profile,
                 "A profile: the links are taken from it. Default: the one that the plan names");
  command.option("-o,--output", &arguments->output, "File of the result: the report");
  command.option("--json", &arguments->json,
                 "JSON on standard output: the report instead of tables");
  command.option("--slow", &arguments->scenario.slow,
                 "link=NAME:FACTOR or rank=NUMBER:FACTOR: this link, or all ports of this rank in "
                 "both directions, have FACTOR of their rates");
  command.option(
      "--straggler", &arguments->scenario.stragglers,
      "A rank that takes longer: rank=NUMBER:FACTOR, its sums, steps and passes take FACTOR "
      "times as long");
  command.option(
      "--background", &arguments->scenario.backgrounds,
      "FROM->TO:RATE[@START]: other traffic between two ranks, over all their ports, from "
      "START on");
  command.option("--no-buffers", &arguments->scenario.no_buffers,
                 "Nothing waits between links: a write uses all links of its path at once, at the "
                 "rate of the slowest");
  command
      .option("--coarsen", coarsening(&arguments->options.merge),
              "How many parts are played as one: a number, none, or auto: as few as --time allows")
      .defaults_to("auto");
  command
      .option("--time", Take([a = arguments.get()](const std::string& text, std::string_view flag) {
                a->options.budget_seconds = parse_seconds(text, flag).count();
              }),
              "Time that it may take: of the processor, estimated before it begins")
      .defaults_to("2min");
  command
      .choice<bool>(
          "--engine", &arguments->options.simgrid, {{"auto", false}, {"simgrid", true}},
          "simgrid: SimGrid shares all links; auto: only if a write uses several at once, "
          "otherwise arithmetic gives the same times much faster")
      .defaults_to("auto");
  command
      .option("--tolerance", fraction(&arguments->tolerance),
              "Largest error of the prediction that passes: exit status 1 beyond")
      .defaults_to("15%");
  command.renamed("--budget", "--time");
  command.color(&arguments->color);
  command.action([arguments] { return execute(*arguments); });
}

} // namespace reckon
