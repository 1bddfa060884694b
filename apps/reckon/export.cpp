// SPDX-License-Identifier: Apache-2.0
#include "export/export.hpp"

#include "commands.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "documents/document.hpp"
#include "strategies/lower.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>
#include <string>

namespace reckon {
namespace {

struct ExportArguments {
  std::string plan, format, output = "-";
};

std::string exported(const Plan& plan, ExportFormat format) {
  const std::string title =
      fmt::format("{} of {} on {}", plan.strategy, plan.workload.name, plan.profile.name);
  switch (format) {
  case ExportFormat::goal:
    return goal_text(lower(plan), title, {});
  case ExportFormat::msccl:
    return msccl_xml(plan, lower(plan));
  case ExportFormat::nccl_tuner:
    return nccl_tuner_csv(plan);
  case ExportFormat::simgrid:
  case ExportFormat::astra_network:
    break;
  }
  fail(ErrorKind::internal, "format without a writer");
}

int run_export(const ExportArguments& arguments) {
  const Plan plan = read_plan(arguments.plan);
  refuse_overwriting(arguments.output, {arguments.plan});
  write_file(arguments.output, exported(plan, *export_format_named(arguments.format)));
  return k_exit_ok;
}

} // namespace

Command add_export_command(CLI::App& app) {
  auto arguments =
      std::make_shared<ExportArguments>(); // CLI11 writes into it, the command reads it
  CLI::App* command = app.add_subcommand("export", "A plan as another program reads it");
  command->add_option("plan", arguments->plan, "The plan; - is standard input")->required();
  command->add_option("-f,--format", arguments->format, "What to write")
      ->required()
      ->check(CLI::IsMember({"goal", "msccl", "nccl-tuner"}));
  command->add_option("-o,--output", arguments->output, "The file; - is standard output")
      ->type_name("FILE")
      ->capture_default_str();
  return [arguments] { return run_export(*arguments); };
}

} // namespace reckon
