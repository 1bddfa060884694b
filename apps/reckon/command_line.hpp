// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/terminal.hpp"

namespace CLI {
class App;
class ParseError;
} // namespace CLI

namespace reckon {

/// What the parser could not read, in the form of every other error: Error{usage} that names a
/// command or an option that does not exist before one that is missing, with the nearest that does.
[[noreturn]] void fail_to_parse(const CLI::App& app, const CLI::ParseError& error);

/// Throws Error{usage} where the first word is none of `app`'s commands.
void require_command(const CLI::App& app, int argc, const char* const* argv);

/// Adds --color to a command that prints for people.
void add_color_option(CLI::App& command, ColorMode& color);

} // namespace reckon
