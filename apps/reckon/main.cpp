// SPDX-License-Identifier: Apache-2.0
#include "command_line.hpp"
#include "commands.hpp"

#include "core/error.hpp"
#include "core/interrupt.hpp"
#include "core/log.hpp"
#include "core/version.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace reckon {

void refuse_overwriting(const std::string& output, const std::vector<std::string>& inputs,
                        const std::string& flag) {
  for (const std::string& input : inputs) {
    std::error_code error;
    if (output != "-" && std::filesystem::equivalent(output, input, error) && !error) {
      fail(ErrorKind::usage,
           fmt::format("{} {}: is also an input; give another name", flag, output));
    }
  }
}

} // namespace reckon

namespace {

using namespace reckon;

void set_level_from_environment() {
  const char* wanted = std::getenv("RECKON_LOG");
  if (wanted == nullptr || *wanted == '\0') {
    return;
  }
  constexpr std::array<std::pair<std::string_view, LogLevel>, 5> k_levels{
      {{"error", LogLevel::error},
       {"warn", LogLevel::warn},
       {"info", LogLevel::info},
       {"debug", LogLevel::debug},
       {"trace", LogLevel::trace}}};
  for (const auto& [name, level] : k_levels) {
    if (name == wanted) {
      set_log_level(level);
      return;
    }
  }
  fail(ErrorKind::usage,
       std::string("RECKON_LOG is '") + wanted + "'; use error, warn, info, debug or trace");
}

int run(int argc, char** argv) {
  CLI::App app("reckon measures what links can do, plans gradient traffic from that, runs the plan "
               "and compares.");
  app.name("reckon");
  app.set_version_flag("--version", std::string("reckon ") + k_version);
  app.require_subcommand(1);
  app.fallthrough();
  int verbosity = 0;
  app.add_flag("-v,--verbose", verbosity, "More on standard error: -v info, -vv debug");
  app.footer("Exit status: 0 ok; 1 differs or outside the tolerance; 2 usage or bad input; 3 not "
             "available here;\n"
             "4 operation failed; 70 a bug in reckon; 130 interrupted.");
  const std::vector<std::pair<const char*, Command>> commands{
      {"probe", add_probe_command(app)},       {"plan", add_plan_command(app)},
      {"run", add_run_command(app)},           {"diff", add_diff_command(app)},
      {"show", add_show_command(app)},         {"solve", add_solve_command(app)},
      {"import", add_import_command(app)},     {"export", add_export_command(app)},
      {"simulate", add_simulate_command(app)},
  };
  require_command(app, argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) { // help and version
      return app.exit(e, std::cout, std::cerr);
    }
    fail_to_parse(app, e);
  }
  set_level_from_environment();
  if (verbosity > 0) {
    set_log_level(verbosity == 1 ? LogLevel::info : LogLevel::debug);
  }
  for (const auto& [name, command] : commands) {
    if (app.got_subcommand(name)) {
      return command();
    }
  }
  fail(ErrorKind::internal, "no subcommand was run");
}

} // namespace

int main(int argc, char** argv) {
  try {
    install_interrupt_handlers();
    const int status = run(argc, argv);
    return interrupted() ? k_exit_interrupted : status;
  } catch (const Error& e) {
    std::cerr << "reckon: error: " << e.what() << '\n';
    return interrupted() ? k_exit_interrupted : exit_status(e.kind());
  } catch (const std::bad_alloc&) {
    std::cerr << "reckon: error: out of memory; use fewer ranks, a smaller workload or a smaller "
                 "part size\n";
    return k_exit_operation;
  } catch (const std::system_error& e) { // standard output that cannot be written
    std::cerr << "reckon: error: " << e.what() << '\n';
    return k_exit_operation;
  } catch (const std::exception& e) {
    std::cerr << "reckon: internal error: " << e.what()
              << "; this is a bug in reckon, please report it\n";
    return k_exit_bug;
  }
}
