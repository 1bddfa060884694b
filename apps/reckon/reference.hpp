// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "command_line.hpp"

#include <string>

namespace reckon {

/// The program's arguments, for other programs and for readers. Each result is a whole file with a
/// final newline, and all come from the parser's own description.

/// A section for each command and each calculator, with a table of its options.
[[nodiscard]] std::string markdown_reference(const CommandReference& program);

/// The man page (section 1) of the program, or of one of its commands with those below it.
[[nodiscard]] std::string man_page(const CommandReference& program, const CommandReference* command,
                                   const std::string& version);

/// A script that bash, zsh or fish reads to complete commands, options and their words.
[[nodiscard]] std::string bash_completion(const CommandReference& program);
[[nodiscard]] std::string zsh_completion(const CommandReference& program);
[[nodiscard]] std::string fish_completion(const CommandReference& program);

} // namespace reckon
