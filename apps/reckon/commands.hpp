// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "command_line.hpp"
#include "output.hpp"

namespace reckon {

/// Each adds its command to the program. Errors leave as Error; main() turns them into one line and
/// a status.
void add_probe_command(Arguments& program);
void add_reference_command(Arguments& program);
void add_check_command(Arguments& program);
void add_expect_command(Arguments& program);
void add_plan_command(Arguments& program);
void add_run_command(Arguments& program);
void add_diff_command(Arguments& program);
void add_export_command(Arguments& program);
void add_import_command(Arguments& program);
/// The recognisers for explain_other_texts(): output that `import` takes, and XML.
[[nodiscard]] std::string what_text_is(std::string_view text, const std::string& path);
void add_show_command(Arguments& program);
void add_page_command(Arguments& program);
void add_simulate_command(Arguments& program);
void add_solve_command(Arguments& program);

} // namespace reckon
