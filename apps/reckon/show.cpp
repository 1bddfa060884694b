// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "documents/document.hpp"
#include "documents/safetensors.hpp"
#include "present/document_text.hpp"
#include "present/groups.hpp"
#include "present/plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

namespace reckon {
namespace {

struct ShowArguments {
  std::string file;
  ShowOptions options;
  bool csv = false, json = false, explain = false;
  std::string plot, what;
  ColorMode color = ColorMode::automatic;
};

void draw(const ShowArguments& arguments, const Document& document) {
  const std::string kind = kind_of(document);
  const bool is_profile = kind == "profile";
  if (!is_profile && kind != "report") {
    fail(ErrorKind::usage,
         fmt::format("--plot draws profiles and reports; {} is a {}", arguments.file, kind));
  }
  std::string what = arguments.what;
  if (what.empty() && is_profile) {
    // A case that was asked for decides by its form; else a cluster's pairs
    // come before curves, and curves before other matrices.
    const auto& profile = std::get<Profile>(document);
    const std::string& test = arguments.options.test;
    const auto has = [&](std::vector<Cells> CaseGroups::*form) {
      const std::vector<std::string> tests = test.empty() ? cases_of(profile) : std::vector{test};
      return std::any_of(tests.begin(), tests.end(), [&](const std::string& one) {
        return !(groups_of(cells_of(profile, one)).*form).empty();
      });
    };
    const bool matrix =
        has(&CaseGroups::matrices) &&
        (!test.empty() || !case_between_machines(profile).empty() || !has(&CaseGroups::curves));
    what = matrix ? "matrix" : "curves";
  } else if (what.empty()) {
    what = "report";
  }
  if ((what == "report") == is_profile) {
    fail(ErrorKind::usage, fmt::format("--what {} is not for a {}", what, kind));
  }
  if (what == "report") {
    plot_report(std::get<Report>(document), arguments.plot);
  } else if (what == "matrix") {
    plot_matrix(std::get<Profile>(document), arguments.options.test, arguments.plot);
  } else {
    plot_curves(std::get<Profile>(document), arguments.options.test, arguments.plot);
  }
}

int run_show(const ShowArguments& arguments) {
  const Document document = read_file_or_shipped(arguments.file);
  if (!arguments.options.test.empty() && !std::holds_alternative<Profile>(document)) {
    fail(ErrorKind::usage,
         fmt::format("--case is for profiles; {} is a {}", arguments.file, kind_of(document)));
  }
  if (arguments.json) {
    for (const auto& [given, flag] :
         {std::pair(arguments.csv, "--csv"), std::pair(arguments.explain, "--explain"),
          std::pair(!arguments.plot.empty(), "--plot")}) {
      if (given) {
        fail(ErrorKind::usage, fmt::format("--json and {}: give one of them", flag));
      }
    }
    write_file("-", canonical_text(document));
    return k_exit_ok;
  }
  if (!arguments.plot.empty()) {
    draw(arguments, document);
    return k_exit_ok;
  }
  const Style style = style_for(arguments.color, STDOUT_FILENO);
  if (arguments.explain) {
    const Plan* plan = std::get_if<Plan>(&document);
    if (plan == nullptr) {
      fail(ErrorKind::usage,
           fmt::format("--explain is for plans; {} is a {}", arguments.file, kind_of(document)));
    }
    write_file("-", explain(*plan, style));
    return k_exit_ok;
  }
  if (!arguments.what.empty()) {
    fail(ErrorKind::usage, "--what chooses a picture; add --plot FILE");
  }
  ShowOptions options = arguments.options;
  options.stored_order = is_safetensors(arguments.file);
  write_file("-", arguments.csv ? csv(document, options) : render(document, style, options));
  return k_exit_ok;
}

} // namespace

void add_show_command(Arguments& program) {
  auto arguments = std::make_shared<ShowArguments>();
  Arguments& command = program.command("show", "Print a document as tables, or draw it");
  command.example("reckon show profile.json --plot curves.svg");
  command
      .option("file", &arguments->file,
              "The document, or a shipped workload's or profile's name; - is standard input")
      .required();
  command.option("--case", &arguments->options.test, "Of a profile: only this case, in full");
  command.option("--samples", &arguments->options.samples, "Also the raw samples");
  command.option(
      "--explain", &arguments->explain,
      "Each equation with its numbers: of a plan; the choices with their reasons, what binds");
  command.option("--csv", &arguments->csv,
                 "Comma-separated values, one row for each cell (of a plan: for each part)");
  command.option("--json", &arguments->json,
                 "JSON on standard output: the document itself, also of a shipped one's name");
  command.option("--plot", &arguments->plot, "Draw a picture instead, into this file: .svg or .png")
      .type("FILE");
  command
      .option(
          "--what", &arguments->what,
          "What to draw. Default: of a cluster's profile the pairs of machines, else the curves of "
          "a profile, or its first matrix if it has none, or what fits --case; the stages of a "
          "report")
      .one_of({"curves", "matrix", "report"}, true);
  command.renamed("-t", "--case");
  command.color(&arguments->color);
  command.action([arguments] { return run_show(*arguments); });
}

} // namespace reckon
