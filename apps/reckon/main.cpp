// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

#include "core/error.hpp"
#include "core/interrupt.hpp"
#include "core/log.hpp"
#include "core/version.hpp"
#include "documents/document.hpp"

#include <array>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

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
  Arguments program("reckon",
                    "reckon measures what links can do, plans gradient traffic from that, runs the "
                    "plan and compares.",
                    std::string("reckon ") + k_version);
  program.example("reckon probe -o profile.json");
  program.example("reckon plan --profile profile.json --workload resnet50 -o plan.json");
  program.example("reckon run plan.json");
  int verbosity = 0;
  program.option("-v,--verbose", &verbosity, "More on standard error: -v info, -vv debug");
  program.footer("Exit status: 0 ok; 1 differs or outside the tolerance; 2 usage or bad input; 3 "
                 "not available here;\n"
                 "4 operation failed; 70 a bug in reckon; 130 interrupted.");
  add_probe_command(program);
  add_check_command(program);
  add_expect_command(program);
  add_plan_command(program);
  add_run_command(program);
  add_diff_command(program);
  add_show_command(program);
  add_page_command(program);
  add_solve_command(program);
  add_import_command(program);
  add_export_command(program);
  add_simulate_command(program);
  add_reference_command(program);
  program.renamed("report", "page");
  const std::function<int()> command = program.parse(argc, argv);
  if (!command) { // help and version
    return k_exit_ok;
  }
  explain_other_texts(what_text_is);
  set_level_from_environment();
  if (verbosity > 0) {
    set_log_level(verbosity == 1 ? LogLevel::info : LogLevel::debug);
  }
  return command();
}

} // namespace

int main(int argc, char** argv) {
  try {
    install_interrupt_handlers();
    const int status = run(argc, argv);
    return interrupted() ? k_exit_interrupted : status;
  } catch (const std::exception& e) {
    const Error error = as_error(e);
    const bool bug = error.kind() == ErrorKind::internal;
    std::cerr << (bug ? "reckon: internal error: " : "reckon: error: ") << error.what()
              << (bug ? "; this is a bug in reckon, please report it\n" : "\n");
    return interrupted() ? k_exit_interrupted : exit_status(error.kind());
  }
}
