// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "documents/document.hpp"
#include "present/document_text.hpp"

#include <CLI/CLI.hpp>

#include <map>
#include <memory>
#include <string>
#include <unistd.h>

namespace reckon {
namespace {

struct ShowArguments {
  std::string file;
  ShowOptions options;
  bool csv = false;
  ColorMode color = ColorMode::automatic;
};

int run_show(const ShowArguments& arguments) {
  const Document document = read_document(arguments.file);
  if (!arguments.options.test.empty() && !std::holds_alternative<Profile>(document)) {
    fail(ErrorKind::usage,
         "--case is for profiles; " + arguments.file + " is a " + kind_of(document));
  }
  write_file("-", arguments.csv ? csv(document, arguments.options)
                                : render(document, style_for(arguments.color, STDOUT_FILENO),
                                         arguments.options));
  return k_exit_ok;
}

} // namespace

Command add_show_command(CLI::App& app) {
  auto arguments =
      std::make_shared<ShowArguments>(); // shared: CLI11 writes into it, the command reads it
  CLI::App* command =
      app.add_subcommand("show", "A profile, plan, report, workload or roles as tables");
  command->add_option("file", arguments->file, "The document; - is standard input")->required();
  command->add_option("-t,--case", arguments->options.test,
                      "Of a profile: this case only, in full");
  command->add_flag("--samples", arguments->options.samples, "The raw samples too");
  command->add_flag("--csv", arguments->csv,
                    "Comma-separated values, one row a cell (of a plan: a part)");
  const std::map<std::string, ColorMode> modes{
      {"auto", ColorMode::automatic}, {"always", ColorMode::always}, {"never", ColorMode::never}};
  command->add_option("--color", arguments->color, "auto, always or never")
      ->transform(CLI::Transformer(modes).description(""))
      ->type_name("WHEN");
  return [arguments] { return run_show(*arguments); };
}

} // namespace reckon
