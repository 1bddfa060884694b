// SPDX-License-Identifier: Apache-2.0
#include "command_line.hpp"

#include "core/error.hpp"
#include "core/json.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace reckon {
namespace {

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    names.push_back(command->get_name());
  }
  return names;
}

std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      names.push_back("--" + name);
    }
  }
  return names;
}

[[noreturn]] void no_such_command(const std::string& before, const std::string& given,
                                  const std::vector<std::string>& names) {
  const std::string near = did_you_mean(given, names);
  fail(ErrorKind::usage,
       fmt::format("there is no command '{}{}'; {}", before, one_line(given),
                   near.empty() ? fmt::format("use one of {}", fmt::join(names, ", "))
                                : fmt::format("did you mean '{}'?", near)));
}

} // namespace

void require_command(const CLI::App& app, int argc, const char* const* argv) {
  if (argc < 2 || *argv[1] == '-') {
    return;
  }
  const std::vector<std::string> names = commands_of(app);
  if (std::find(names.begin(), names.end(), argv[1]) == names.end()) {
    no_such_command("", argv[1], names);
  }
}

void fail_to_parse(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* innermost = &app;
  std::string path;
  while (!innermost->get_subcommands().empty()) {
    innermost = innermost->get_subcommands().front();
    path += innermost->get_name() + " ";
  }
  const std::vector<std::string> unknown = app.remaining(true);
  if (!unknown.empty()) {
    const std::vector<std::string> commands = commands_of(*innermost);
    const bool option = unknown.front().starts_with("-");
    if (!option && !commands.empty()) {
      no_such_command(path, unknown.front(), commands);
    }
    const std::string name = unknown.front().substr(0, unknown.front().find('='));
    const std::string near = option ? did_you_mean(name, options_of(*innermost)) : "";
    fail(ErrorKind::usage,
         fmt::format("{} '{}': {}", option ? "there is no option" : "nothing is known to do with",
                     one_line(name),
                     near.empty() ? fmt::format("see reckon {}--help", path)
                                  : fmt::format("did you mean '{}'?", near)));
  }
  fail(ErrorKind::usage, fmt::format("{}; see reckon {}--help", one_line(error.what()), path));
}

void add_color_option(CLI::App& command, ColorMode& color) {
  const std::map<std::string, ColorMode> modes{
      {"auto", ColorMode::automatic}, {"always", ColorMode::always}, {"never", ColorMode::never}};
  command.add_option("--color", color, "auto, always or never")
      ->transform(CLI::CheckedTransformer(modes).description(""))
      ->type_name("WHEN");
}

} // namespace reckon
