// SPDX-License-Identifier: Apache-2.0
#include "reference.hpp"

#include "commands.hpp"
#include "compare/facts.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/version.hpp"
#include "documents/reference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>

namespace reckon {
namespace {

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size()) {
    text.replace(at, what.size(), with);
  }
  return text;
}

/// A calculator's `path` is "solve split". The program itself is left out.
void each_command(const CommandReference& above, const std::string& path,
                  const std::function<void(const CommandReference&, const std::string&)>& call) {
  for (const CommandReference& command : above.commands) {
    const std::string name = path.empty() ? command.name : path + " " + command.name;
    call(command, name);
    each_command(command, name, call);
  }
}

/// "-o, --output FILE": the short name first.
std::string spelled(const ArgumentReference& argument) {
  std::vector<std::string> names(argument.names.rbegin(), argument.names.rend());
  return fmt::format("{}{}", fmt::join(names, ", "),
                     argument.value.empty() || argument.positional ? "" : " " + argument.value);
}

std::string explained(const ArgumentReference& argument) {
  const bool known = argument.words.empty() ||
                     std::all_of(argument.words.begin(), argument.words.end(), [&](const auto& w) {
                       return argument.help.find(w) != std::string::npos;
                     });
  return argument.help +
         (known ? "" : fmt::format(". One of {}", fmt::join(argument.words, ", "))) +
         (argument.usual.empty() ? "" : fmt::format(". Default: {}", argument.usual));
}

std::vector<const ArgumentReference*> named(const CommandReference& command) {
  std::vector<const ArgumentReference*> options;
  for (const ArgumentReference& argument : command.arguments) {
    if (!argument.positional) {
      options.push_back(&argument);
    }
  }
  return options;
}

/// Whether an option is of every command, which a reference says once.
bool is_of_all(const ArgumentReference& argument) {
  return argument.names.front() == "--help" || argument.names.front() == "--help-all";
}

} // namespace

std::string markdown_reference(const CommandReference& program) {
  std::string text = "# Commands and options\n\n"
                     "`reckon reference markdown` writes this page.\n\n"
                     "Every command has `--help`, `--help-all` and `-v`.\n";
  each_command(program, "", [&](const CommandReference& command, const std::string& path) {
    text += fmt::format("\n## {}\n\n{}.\n", path, command.description);
    if (!command.examples.empty()) {
      text += fmt::format("\n    {}\n", fmt::join(command.examples, "\n    "));
    }
    std::string rows;
    for (const ArgumentReference& argument : command.arguments) {
      if (!is_of_all(argument)) {
        rows += fmt::format("| `{}` | {} |\n", replaced(spelled(argument), "|", "\\|"),
                            replaced(explained(argument), "|", "\\|"));
      }
    }
    if (!rows.empty()) {
      text += "\n| argument | meaning |\n|---|---|\n" + rows;
    }
  });
  return text;
}

namespace {

/// Text of a man page: no line of it begins a request, and a dash stays one.
std::string roff(const std::string& text) {
  std::string escaped = replaced(replaced(text, "\\", "\\e"), "-", "\\-");
  escaped = replaced(escaped, "\n.", "\n\\&.");
  escaped = replaced(escaped, "\n'", "\n\\&'");
  return escaped.starts_with(".") || escaped.starts_with("'") ? "\\&" + escaped : escaped;
}

std::string man_arguments(const CommandReference& command) {
  std::string text, group;
  for (const ArgumentReference& argument : command.arguments) {
    if (argument.group != group) {
      group = argument.group;
      text += fmt::format(".SS {}\n", roff(group));
    }
    text += fmt::format(".TP\n.B {}\n{}.\n", roff(spelled(argument)), roff(explained(argument)));
  }
  return text;
}

std::string man_examples(const std::vector<std::string>& examples) {
  return examples.empty() ? ""
                          : fmt::format(".PP\n.nf\n{}\n.fi\n",
                                        roff(fmt::format("{}", fmt::join(examples, "\n"))));
}

} // namespace

std::string man_page(const CommandReference& program, const CommandReference* command,
                     const std::string& version) {
  const CommandReference& page = command == nullptr ? program : *command;
  const std::string name = command == nullptr ? program.name : program.name + "-" + command->name;
  std::string text = fmt::format(
      ".TH {} 1 \"\" \"{} {}\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n.B {}\n[options]{}\n",
      roff(name), program.name, version, roff(name), roff(page.description),
      roff(replaced(name, "-", " ")), page.commands.empty() ? "" : " command");
  text += ".SH DESCRIPTION\n" + roff(page.description) + ".\n" + man_examples(page.examples);
  if (!page.arguments.empty()) {
    text += ".SH OPTIONS\n" + man_arguments(page);
  }
  if (!page.commands.empty()) {
    text += ".SH COMMANDS\n";
    for (const CommandReference& below : page.commands) {
      if (command == nullptr) { // which have pages of their own
        text += fmt::format(".TP\n.BR {} (1)\n{}.\n", roff(program.name + "-" + below.name),
                            roff(below.description));
      } else {
        text += fmt::format(".SS {} {} {}\n{}.\n", program.name, page.name, roff(below.name),
                            roff(below.description)) +
                man_examples(below.examples) + man_arguments(below);
      }
    }
  }
  const std::string& footer = page.footer.empty() ? program.footer : page.footer;
  if (!footer.empty()) {
    text += ".SH EXIT STATUS AND NOTES\n" + roff(footer) + "\n";
  }
  return text;
}

namespace {

std::vector<std::string> names_of(const std::vector<CommandReference>& commands) {
  std::vector<std::string> names;
  for (const CommandReference& command : commands) {
    names.push_back(command.name);
  }
  return names;
}

} // namespace

std::string bash_completion(const CommandReference& program) {
  std::string options, words;
  each_command(program, "", [&](const CommandReference& command, const std::string& path) {
    std::vector<std::string> names = names_of(command.commands);
    for (const ArgumentReference* option : named(command)) {
      names.insert(names.end(), option->names.begin(), option->names.end());
      if (!option->words.empty()) {
        words += fmt::format("    '{} {}') words='{}' ;;\n", path,
                             fmt::join(option->names, fmt::format("' | '{} ", path)),
                             fmt::join(option->words, " "));
      }
    }
    options += fmt::format("    '{}') words='{}' ;;\n", path, fmt::join(names, " "));
  });
  return fmt::format(R"(# Completions of reckon for bash.
_reckon() {{
  local word=$2 before=$3 command= words= argument
  for argument in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$command $argument" in
    {}) command=${{command:+$command }}$argument ;;
    esac
  done
  case "$command $before" in
{}  esac
  if [[ -z $words && $word == -* ]] || [[ -z $command || $command == solve ]]; then
    case "$command" in
    '') words='{} --help --help-all --version --verbose' ;;
{}    esac
  fi
  if [[ -n $words ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
  else
    compopt -o filenames
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
  fi
}}
complete -F _reckon reckon
)",
                     [&] {
                       std::vector<std::string> known;
                       each_command(
                           program, "", [&](const CommandReference&, const std::string& path) {
                             const std::size_t last = path.rfind(' ');
                             known.push_back(last == std::string::npos ? fmt::format("' {}'", path)
                                                                       : fmt::format("'{}'", path));
                           });
                       return fmt::format("{}", fmt::join(known, " | "));
                     }(),
                     words, fmt::join(names_of(program.commands), " "), options);
}

namespace {

/// Within single quotes of a shell.
std::string quoted(const std::string& text) {
  return replaced(text, "'", "'\\''");
}

/// The first sentence, for a menu of one line.
std::string short_help(const std::string& help) {
  return help.substr(0, std::min({help.find(". "), help.find(": "), help.find("; ")}));
}

} // namespace

std::string zsh_completion(const CommandReference& program) {
  const auto arguments = [](const CommandReference& command, std::size_t indent) {
    const std::string line = " \\\n" + std::string(indent + 2, ' ');
    std::string text = std::string(indent, ' ') + "_arguments -s";
    for (const ArgumentReference* option : named(command)) {
      // In the brackets of _arguments colons and brackets have a meaning.
      std::string help = replaced(quoted(short_help(option->help)), "[", "(");
      help = replaced(replaced(help, "]", ")"), ":", "\\:");
      for (const std::string& name : option->names) {
        text += fmt::format("{}'*{}{}[{}]{}'", line, name,
                            option->value.empty()    ? ""
                            : name.starts_with("--") ? "="
                                                     : "+",
                            help,
                            option->value.empty() ? ""
                            : option->words.empty()
                                ? ":value:_files"
                                : fmt::format(":value:({})", fmt::join(option->words, " ")));
      }
    }
    return text + line + "'*:file:_files'\n";
  };
  const auto menu = [](const std::vector<CommandReference>& commands, std::size_t indent) {
    std::string text = std::string(indent, ' ') + "local -a commands=(\n";
    for (const CommandReference& command : commands) {
      text += fmt::format("{}  '{}:{}'\n", std::string(indent, ' '), command.name,
                          quoted(short_help(command.description)));
    }
    return text + std::string(indent, ' ') + ")\n" + std::string(indent, ' ') +
           "_describe command commands\n";
  };
  std::string text = "#compdef reckon\n# Completions of reckon for zsh.\n_reckon() {\n"
                     "  if ((CURRENT == 2)); then\n" +
                     menu(program.commands, 4) + "    return\n  fi\n  case $words[2] in\n";
  for (const CommandReference& command : program.commands) {
    text += fmt::format("  {})\n", command.name);
    if (command.commands.empty()) {
      text += arguments(command, 4);
    } else {
      text += "    if ((CURRENT == 3)); then\n" + menu(command.commands, 6) +
              "      return\n    fi\n    case $words[3] in\n";
      for (const CommandReference& below : command.commands) {
        text += fmt::format("    {})\n{}      ;;\n", below.name, arguments(below, 6));
      }
      text += "    esac\n";
    }
    text += "    ;;\n";
  }
  return text + "  esac\n}\n_reckon \"$@\"\n";
}

std::string fish_completion(const CommandReference& program) {
  std::string text = "# Completions of reckon for fish.\n";
  for (const CommandReference& command : program.commands) {
    text += fmt::format("complete -c reckon -n __fish_use_subcommand -f -a {} -d '{}'\n",
                        command.name, quoted(short_help(command.description)));
    for (const CommandReference& below : command.commands) {
      text += fmt::format("complete -c reckon -n '__fish_seen_subcommand_from {}; and not "
                          "__fish_seen_subcommand_from {}' -f -a {} -d '{}'\n",
                          command.name, fmt::join(names_of(command.commands), " "), below.name,
                          quoted(short_help(below.description)));
    }
  }
  each_command(program, "", [&](const CommandReference& command, const std::string& path) {
    if (!command.commands.empty()) {
      return;
    }
    std::string seen =
        "__fish_seen_subcommand_from " + replaced(path, " ", "; and __fish_seen_subcommand_from ");
    for (const ArgumentReference* option : named(command)) {
      text += fmt::format("complete -c reckon -n '{}'", seen);
      for (const std::string& name : option->names) {
        text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      text += fmt::format(
          "{}{} -d '{}'\n", option->value.empty() ? "" : " -r",
          option->words.empty() ? "" : fmt::format(" -f -a '{}'", fmt::join(option->words, " ")),
          quoted(short_help(option->help)));
    }
  });
  return text;
}

namespace {

std::string document_reference() {
  return documents::field_reference() +
         "\n## What `reckon diff` does not compare\n\n"
         "`*` is any element. Everything else in a document is compared.\n\n" +
         not_compared_table();
}

} // namespace

void add_reference_command(Arguments& program) {
  struct Flags {
    std::string format, command, output = "-";
  };
  auto flags = std::make_shared<Flags>();
  Arguments& command = program.command(
      "reference",
      "Print the options of all commands, the fields of documents, a man page or shell "
      "completions");
  command.example("reckon reference bash > ~/.local/share/bash-completion/completions/reckon");
  command.example("reckon reference man plan | man -l -");
  command
      .option("format", &flags->format,
              "markdown: of all commands; documents: of the fields of all documents; man, bash, "
              "zsh or fish")
      .required()
      .one_of({"markdown", "documents", "man", "bash", "zsh", "fish"});
  command.option("command", &flags->command, "With man: of this command. Default: of the program");
  command.option("-o,--output", &flags->output, "File of the result: - is standard output")
      .type("FILE")
      .shows_default();
  command.action([flags, &program] {
    const CommandReference reference = program.reference();
    const auto one = std::find_if(reference.commands.begin(), reference.commands.end(),
                                  [&](const auto& c) { return c.name == flags->command; });
    if (!flags->command.empty() && (flags->format != "man" || one == reference.commands.end())) {
      fail(ErrorKind::usage,
           flags->format != "man"
               ? fmt::format("only `reckon reference man` takes a command: leave '{}' out",
                             flags->command)
               : fmt::format("there is no command '{}'; use one of {}", flags->command,
                             fmt::join(names_of(reference.commands), ", ")));
    }
    write_file(flags->output,
               flags->format == "markdown"    ? markdown_reference(reference)
               : flags->format == "documents" ? document_reference()
               : flags->format == "bash"      ? bash_completion(reference)
               : flags->format == "zsh"       ? zsh_completion(reference)
               : flags->format == "fish"
                   ? fish_completion(reference)
                   : man_page(reference, flags->command.empty() ? nullptr : &*one, k_version));
    return k_exit_ok;
  });
}

} // namespace reckon
