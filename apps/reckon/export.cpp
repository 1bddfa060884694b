// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/json.hpp"
#include "documents/document.hpp"
#include "export/export.hpp"
#include "planning/planned_profile.hpp"
#include "strategies/lower.hpp"
#include "strategies/plan_network.hpp"
#include "strategies/play.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace reckon {
namespace {

struct ExportArguments {
  std::string plan, format, profile, measured, output = "-";
};

PlanNetwork links_of(const Plan& plan, const ExportArguments& arguments) {
  return network_of(plan, planned_profile(plan, arguments.plan, arguments.profile).profile);
}

Schedule lowered(const Plan& plan) {
  constexpr double k_most = 1e8; // some ten GB
  const auto parts = static_cast<double>(plan.parts.size()),
             ranks = static_cast<double>(plan.ranks.size());
  if (parts * ranks > k_most) {
    fail(ErrorKind::input,
         fmt::format("the plan has {} parts for {} ranks, too many to write out each step: plan "
                     "fewer machines, or with larger parts (--part-bytes)",
                     plan.parts.size(), plan.ranks.size()));
  }
  return lower(plan);
}

std::string trace_of(const Plan& plan, const Schedule& schedule, const ExportArguments& arguments) {
  const PlanNetwork network = links_of(plan, arguments);
  std::vector<NamedTimeline> timelines{{"predicted", {}}};
  static_cast<void>(play(schedule, network.network, network.cost, &timelines.front().ops));
  if (!arguments.measured.empty()) {
    const std::string& file = arguments.measured;
    timelines.push_back(read_trace(parse_json(read_file(file), file), file, schedule, "measured"));
  }
  return chrome_trace(schedule, timelines);
}

ExportNetwork export_network(PlanNetwork network) {
  const double overhead = network.network.write_overhead_s;
  return {std::move(network.network), std::move(network.stations), overhead};
}

std::optional<GoalTimes> goal_times(const Plan& plan, const ExportArguments& arguments) {
  if (arguments.profile.empty()) {
    return std::nullopt;
  }
  PlanNetwork links = links_of(plan, arguments);
  OpCost cost = std::move(links.cost);
  return GoalTimes{std::move(cost), export_network(std::move(links))};
}

std::string title_of(const Plan& plan) {
  return fmt::format("{} of {} on {}", plan.strategy, plan.workload.name, plan.profile.name);
}

/// What a plan can be written as for other programs.
struct Format {
  const char* name;
  std::string (*text)(const Plan& plan, const ExportArguments& arguments);
};
constexpr std::array<Format, 6> k_formats{
    {{"goal",
      [](const Plan& plan, const ExportArguments& arguments) {
        return goal_text(lowered(plan), title_of(plan), goal_times(plan, arguments));
      }},
     {"msccl",
      [](const Plan& plan, const ExportArguments&) { return msccl_xml(plan, lowered(plan)); }},
     {"simgrid",
      [](const Plan& plan, const ExportArguments& arguments) {
        return simgrid_xml(export_network(links_of(plan, arguments)), title_of(plan));
      }},
     {"astra-network",
      [](const Plan& plan, const ExportArguments& arguments) {
        return astra_network_yml(plan, export_network(links_of(plan, arguments)));
      }},
     {"nccl-tuner", [](const Plan& plan, const ExportArguments&) { return nccl_tuner_csv(plan); }},
     {"trace", [](const Plan& plan, const ExportArguments& arguments) {
        return trace_of(plan, lowered(plan), arguments);
      }}}};

int run_export(const ExportArguments& arguments) {
  if (!arguments.measured.empty() && arguments.format != "trace") {
    fail(ErrorKind::usage, "--measured is for --format trace");
  }
  if (!arguments.profile.empty() &&
      (arguments.format == "msccl" || arguments.format == "nccl-tuner")) {
    fail(ErrorKind::usage, fmt::format("--profile {}: --format {} has nothing of links and sums; "
                                       "leave out --profile",
                                       arguments.profile, arguments.format));
  }
  const Plan plan = read_plan(arguments.plan);
  const Format& format = *std::ranges::find(k_formats, arguments.format, &Format::name);
  const std::string text = format.text(plan, arguments);
  refuse_overwriting_text(arguments.output, {arguments.plan, arguments.profile, arguments.measured},
                          fmt::format("file of format {}", arguments.format), text);
  write_file(arguments.output, text);
  return k_exit_ok;
}

} // namespace

void add_export_command(Arguments& program) {
  auto arguments = std::make_shared<ExportArguments>();
  Arguments& command = program.command("export", "Write a plan for another program");
  command.example("reckon export plan.json --format goal -o plan.goal");
  std::vector<std::string> names;
  for (const Format& format : k_formats) {
    names.emplace_back(format.name);
  }
  command.option("plan", &arguments->plan, "The plan; - is standard input").required();
  command.option("-f,--format", &arguments->format, "Format of another program: what is written")
      .required()
      .one_of(names, true);
  command
      .option(
          "-p,--profile", &arguments->profile,
          "A profile: links and sums are taken from it. Default: the one that the plan names; goal "
          "then leaves sums out")
      .type("PROFILE");
  command
      .option("--measured", &arguments->measured,
              "Measured timeline: the output of `run --trace`, shown beside the prediction (with "
              "--format trace)")
      .type("FILE");
  command.option("-o,--output", &arguments->output, "File of the result: - is standard output")
      .type("FILE")
      .shows_default();
  command.action([arguments] { return run_export(*arguments); });
}

} // namespace reckon
