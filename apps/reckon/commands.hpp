// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace reckon {

/// Each adds its subcommand to `app` and returns what runs it once the command line is parsed: the
/// exit status. Errors leave as Error; main() turns them into one line and a status.
using Command = std::function<int()>;
/// Throws Error{usage} when writing `output` would replace one of the files it is made from.
void refuse_overwriting(const std::string& output, const std::vector<std::string>& inputs,
                        const std::string& flag = "--output");

Command add_probe_command(CLI::App& app);
Command add_plan_command(CLI::App& app);
Command add_run_command(CLI::App& app);
Command add_diff_command(CLI::App& app);
Command add_export_command(CLI::App& app);
Command add_import_command(CLI::App& app);
Command add_show_command(CLI::App& app);
Command add_simulate_command(CLI::App& app);
Command add_solve_command(CLI::App& app);

} // namespace reckon
