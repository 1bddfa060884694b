// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"
#include "hand_out.hpp"

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/log.hpp"
#include "core/progress.hpp"
#include "core/units.hpp"
#include "documents/document.hpp"
#include "present/document_text.hpp"
#include "simulate/engine.hpp"
#include "simulate/prepare.hpp"
#include "simulate/report.hpp"
#include "simulate/scenario.hpp"
#include "strategies/lower.hpp"
#include "strategies/plan_network.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <map>
#include <memory>
#include <unistd.h>

namespace reckon {
namespace {

struct SimulateArguments {
  std::string plan, profile, output, tolerance = "15%", coarsen = "auto", budget = "2min";
  std::vector<std::string> slow, stragglers, backgrounds;
  bool json = false;
  ColorMode color = ColorMode::automatic;
};

/// The profile asked for, else the one that the plan names, if it still is what the plan was made
/// from.
std::pair<Profile, DocumentLink> profile_for(const Plan& plan, const SimulateArguments& arguments) {
  const bool given = !arguments.profile.empty();
  const std::string name = given ? arguments.profile : plan.profile.name;
  try {
    Profile profile = read_profile(name);
    DocumentLink link = link_to(profile.name, canonical_text(profile));
    if (!given && link.digest != plan.profile.digest) {
      fail(ErrorKind::input, fmt::format("it is {}, and the plan was made from {}", link.digest,
                                         plan.profile.digest));
    }
    return {std::move(profile), std::move(link)};
  } catch (const Error& e) {
    if (given) {
      throw;
    }
    fail(ErrorKind::usage,
         fmt::format("cannot take the links from '{}', which {} names ({}); give the profile with "
                     "-p",
                     name, arguments.plan, e.what()));
  }
}

SimNetwork network_for(const Plan& plan, const Profile& profile) {
  PlanNetwork network = network_of(plan, profile);
  return {network.network, std::move(network.stations), network.network.write_overhead_s,
          std::move(network.cost)};
}

PrepareOptions options_of(const SimulateArguments& arguments) {
  PrepareOptions options;
  options.budget_seconds = parse_seconds(arguments.budget, "--budget").count();
  if (arguments.coarsen == "none") {
    options.merge = 1;
  } else if (arguments.coarsen != "auto") {
    std::uint64_t merge = 0;
    const char* const end = arguments.coarsen.data() + arguments.coarsen.size();
    const auto [at, error] = std::from_chars(arguments.coarsen.data(), end, merge);
    if (error != std::errc{} || at != end || merge == 0) {
      fail(ErrorKind::usage, fmt::format("--coarsen {}: use auto, none, or how many parts to play "
                                         "as one",
                                         arguments.coarsen));
    }
    options.merge = merge;
  }
  return options;
}

int conclude(const Report& report, const SimulateArguments& arguments) {
  hand_out(report, arguments.output, arguments.json, arguments.color);
  // The prediction is for the plan's own links and ranks.
  const bool as_planned = report.simulation->scenarios.empty() &&
                          report.simulation->profile.digest == report.profile.digest;
  return report.within_tolerance || !as_planned ? k_exit_ok : k_exit_verdict;
}

int execute(const SimulateArguments& arguments) {
  const std::string simulator = find_simulator();
  const Plan plan = read_plan(arguments.plan);
  refuse_overwriting(arguments.output, {arguments.plan, arguments.profile});
  const auto [profile, profile_link] = profile_for(plan, arguments);
  const SimNetwork network = network_for(plan, profile);
  const Scenario scenario =
      scenario_of(arguments.slow, arguments.stragglers, arguments.backgrounds, network);
  const PreparedPlan prepared = prepare(plan, lower, network, scenario, options_of(arguments));
  if (prepared.merged_parts > 1 && prepared.merging_error > 0.1) {
    log(LogLevel::warn,
        "{} parts are played as one to stay within --budget {}, which may add {:.0f} %; a longer "
        "budget merges fewer",
        prepared.merged_parts, arguments.budget, 100 * prepared.merging_error);
  }
  const std::size_t ops = prepared.graph.ops.size();
  Progress progress;
  const std::int64_t begin = monotonic_ns();
  const SimResult result = simulate(prepared.graph, simulator, [&](std::uint64_t done) {
    const double part = static_cast<double>(done) / static_cast<double>(ops);
    const double spent = static_cast<double>(monotonic_ns() - begin) * 1e-9;
    progress.show(part, fmt::format("{} of {} ops", done, ops),
                  Seconds(done > 0 ? spent / part - spent : -1));
  });
  SimulatedPlan simulated{plan,
                          link_to(arguments.plan, canonical_text(plan)),
                          profile_link,
                          prepared.schedule,
                          prepared.network,
                          prepared.scenario,
                          prepared.representative};
  simulated.ops = ops;
  simulated.merged_parts = prepared.merged_parts;
  simulated.coarsening_error = prepared.merging_error;
  simulated.tolerance = parse_fraction(arguments.tolerance, "--tolerance");
  return conclude(simulation_report(simulated, result), arguments);
}

} // namespace

Command add_simulate_command(CLI::App& app) {
  auto arguments = std::make_shared<SimulateArguments>();
  CLI::App* command = app.add_subcommand(
      "simulate", "Play a plan on a model of its links, show predicted beside simulated");
  command->add_option("plan", arguments->plan, "The plan; - is standard input")->required();
  command->add_option("-p,--profile", arguments->profile,
                      "Whose links. Default: the profile that the plan names");
  command->add_option("-o,--output", arguments->output, "Write the report to this file");
  command->add_flag("--json", arguments->json, "Print the report as JSON instead of tables");
  command->add_option("--slow", arguments->slow,
                      "link=NAME:FACTOR or rank=NUMBER:FACTOR: this link, or both ways of this "
                      "rank's port, have FACTOR of their rate");
  command->add_option("--straggler", arguments->stragglers,
                      "rank=NUMBER:FACTOR: this rank's sums, steps and passes take FACTOR times as "
                      "long");
  command->add_option("--background", arguments->backgrounds,
                      "FROM->TO:RATE[@START]: other traffic between two ranks, all the time or "
                      "from START on");
  command
      ->add_option("--coarsen", arguments->coarsen,
                   "So many parts played as one; none; auto: as few as --budget allows")
      ->capture_default_str();
  command
      ->add_option("--budget", arguments->budget,
                   "Processor time that the simulation may take, by an estimate before it begins")
      ->capture_default_str();
  command
      ->add_option("--tolerance", arguments->tolerance,
                   "Largest error of the prediction that passes; exit status 1 beyond")
      ->capture_default_str();
  command->add_option("--color", arguments->color, "auto, always or never")
      ->transform(
          CLI::CheckedTransformer(std::map<std::string, ColorMode>{{"auto", ColorMode::automatic},
                                                                   {"always", ColorMode::always},
                                                                   {"never", ColorMode::never}})
              .description(""))
      ->type_name("WHEN");
  return [arguments] { return execute(*arguments); };
}

} // namespace reckon
