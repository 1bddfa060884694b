// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/terminal.hpp"
#include "core/units.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace CLI {
class Option;
} // namespace CLI

namespace reckon {

/// Reads a value of the option `flag` and stores it. Throws Error{usage} that names `flag`.
using Take = std::function<void(const std::string& text, std::string_view flag)>;

[[nodiscard]] Take fraction(double* to);             ///< "15%" or "0.15"
[[nodiscard]] Take factor(double* to, double least); ///< "2x", "0.5" or "50%", from `least` on
[[nodiscard]] Take number(double* to, double least, double most);
[[nodiscard]] Take whole_number(std::uint64_t* to, std::uint64_t least, std::uint64_t most);
[[nodiscard]] Take whole_number(std::optional<std::uint64_t>* to, std::uint64_t least,
                                std::uint64_t most);

/// The destination of values. A bool is a flag, which takes =no as well, an int counts how often a
/// flag is given; a time has its unit, e.g. 30s.
using Target =
    std::variant<bool*, std::optional<bool>*, int*, std::string*, std::optional<std::string>*,
                 std::vector<std::string>*, std::optional<std::int64_t>*, std::uint64_t*,
                 std::optional<std::uint64_t>*, std::uint32_t*, std::optional<std::uint32_t>*,
                 Seconds*, Take>;

/// An option or a positional argument, for further settings. Refers to its Arguments.
class Argument {
public:
  Argument required();
  /// The name of the value in help; without it TEXT, INT, ...
  Argument type(const std::string& name);
  /// Help shows the variable's current value.
  Argument shows_default();
  /// The default value, which help shows; read as if it had been given.
  Argument defaults_to(const std::string& text);
  /// The only allowed values; `listed`: help shows them beside the type.
  Argument one_of(const std::vector<std::string>& values, bool listed = false);
  /// For a whole number.
  Argument at_least(std::uint64_t least);
  /// A list may be given as one word, with `separator` between its items.
  Argument separated_by(char separator);
  Argument needs(Argument other);
  Argument excludes(Argument other);
  [[nodiscard]] bool given() const;

private:
  friend class Arguments;
  Argument(CLI::Option* option, std::vector<std::string>* words)
      : m_option(option), m_words(words) {}
  CLI::Option* m_option;
  std::vector<std::string>* m_words; ///< the value of one_of()
};

/// An option or a positional argument, as help, man pages and completions show it.
struct ArgumentReference {
  std::vector<std::string> names; ///< "--output" and "-o"; of a positional argument "plan"
  std::string group;              ///< empty: usual, else only in --help-all
  std::string value;              ///< the value's name in help; empty: a flag
  std::string usual;              ///< the default in help; empty: no default
  std::vector<std::string> words; ///< the only values; empty: any
  std::string help;               ///< one sentence or more, without a final full stop
  bool positional = false;
};

/// A command with those below it, as help, man pages and completions show it.
struct CommandReference {
  std::string name; ///< "plan"
  std::string description;
  std::vector<std::string> examples; ///< command lines
  std::string footer;                ///< last words of help; may be empty
  std::vector<ArgumentReference> arguments;
  std::vector<CommandReference> commands;
};

/// A command: its arguments and its action. Names of options are as in "-o,--output"; those of
/// positional arguments have no dashes. Variables get their values in parse(), so they must live
/// until then; an action that holds a shared_ptr to them ensures that.
class Arguments {
public:
  /// The program itself.
  Arguments(const std::string& program, const std::string& description, const std::string& version);
  ~Arguments();
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  /// A command below this one, which from then on requires one of its subcommands.
  Arguments& command(const std::string& name, const std::string& description);
  /// Runs the command and returns the exit status.
  void action(std::function<int()> run);
  /// A command line at the beginning of help.
  void example(const std::string& command_line);
  /// The last words of help.
  void footer(const std::string& text);
  /// The following options belong to this group: --help names them, --help-all explains them.
  void group(const std::string& name);

  Argument option(const std::string& names, const Target& to, const std::string& help);
  /// One of several words, each of which stands for a value.
  template <class T>
  Argument choice(const std::string& names, T* to, std::vector<std::pair<std::string, T>> values,
                  const std::string& help) {
    std::vector<std::string> words;
    for (const auto& value : values) {
      words.push_back(value.first);
    }
    const auto take = [to, values = std::move(values)](const std::string& word, std::string_view) {
      for (const auto& [known, value] : values) {
        if (known == word) {
          *to = value;
        }
      }
    };
    return option(names, Take(take), help).one_of(words);
  }
  /// --color, of a command that prints for people.
  void color(ColorMode* to);

  /// An option that was called `before`, as "--before" or "-b", is now called `now`: an error for
  /// the old name says so.
  void renamed(const std::string& before, const std::string& now);
  /// What the option "--name" that there was is called now, without dashes; empty: there was none.
  [[nodiscard]] std::string now_called(const std::string& name) const;

  /// As if `--name value` had been given, for an option that there is. Throws Error{usage}.
  void set(const std::string& name, const std::string& value);
  /// The arguments of the command and those below it.
  [[nodiscard]] CommandReference reference() const;
  /// Whether `--name value` is the default in help: defaults_to().
  [[nodiscard]] bool is_default(const std::string& name, const std::string& value) const;

  /// Reads the command line of the program. Returns the given command's action; absent where help
  /// or the version was printed instead. Throws Error{usage}, which names an unknown command or
  /// option, with the nearest known one, before a missing one.
  [[nodiscard]] std::function<int()> parse(int argc, const char* const* argv);

private:
  struct State;
  explicit Arguments(std::unique_ptr<State> state);
  std::unique_ptr<State> m_state;
};

} // namespace reckon
