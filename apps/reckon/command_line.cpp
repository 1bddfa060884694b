// SPDX-License-Identifier: Apache-2.0
#include "command_line.hpp"

#include "core/error.hpp"
#include "core/json.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <deque>
#include <map>
#include <type_traits>

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

/// Of each command, by the former names of its options and commands: what they are called now.
using Renamed = std::map<const CLI::App*, std::map<std::string, std::string>>;

/// What is now called something else in this command; empty: nothing that was called so.
std::string now_called_in(const CLI::App& app, const Renamed& renamed, const std::string& name) {
  const auto of = renamed.find(&app);
  return of != renamed.end() && of->second.contains(name) ? of->second.at(name) : "";
}

[[noreturn]] void no_such_command(const CLI::App& app, const Renamed& renamed,
                                  const std::string& before, const std::string& given) {
  const std::vector<std::string> names = commands_of(app);
  const std::string now = now_called_in(app, renamed, given);
  const std::string near = did_you_mean(given, names);
  fail(ErrorKind::usage,
       fmt::format("there is no command '{}{}'{}", before, one_line(given),
                   !now.empty()   ? fmt::format(": it is now '{}'", now)
                   : near.empty() ? fmt::format("; use one of {}", fmt::join(names, ", "))
                                  : fmt::format("; did you mean '{}'?", near)));
}

constexpr std::string_view k_did_you_mean = "; did you mean '"; ///< ends what says its own remedy

/// Whether the error is of a word that a flag of the command was given.
bool is_of_flag(const CLI::ParseError& error, const CLI::App& command) {
  const std::vector<const CLI::Option*> options = command.get_options();
  return std::any_of(options.begin(), options.end(), [&](const CLI::Option* option) {
    return option->get_items_expected_max() == 0 &&
           std::string_view(error.what()).find(" " + option->get_name() + " =") !=
               std::string_view::npos;
  });
}

std::string remedy_of(const CLI::ParseError& error, const CLI::App& command,
                      const std::string& path) {
  return is_of_flag(error, command)                                   ? "use yes or no"
         : dynamic_cast<const CLI::RequiresError*>(&error) != nullptr ? "give both"
         : dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr
             ? "leave one of them out"
             : fmt::format("see reckon {}--help", path);
}

/// What the parser could not read, in the form of every other error.
[[noreturn]] void fail_to_parse(const CLI::App& app, const Renamed& renamed,
                                const CLI::ParseError& error) {
  const CLI::App* innermost = &app;
  std::string path;
  while (!innermost->get_subcommands().empty()) {
    innermost = innermost->get_subcommands().front();
    path += innermost->get_name() + " ";
  }
  const std::vector<std::string> unknown = app.remaining(true);
  if (!unknown.empty()) {
    const bool option = unknown.front().starts_with("-");
    if (!option && !commands_of(*innermost).empty()) {
      no_such_command(*innermost, renamed, path, unknown.front());
    }
    const std::string name = unknown.front().substr(0, unknown.front().find('='));
    if (const std::string now = now_called_in(*innermost, renamed, name); !now.empty()) {
      fail(ErrorKind::usage, fmt::format("there is no option '{}': it is now '{}'", name, now));
    }
    const std::string near = option ? did_you_mean(name, options_of(*innermost)) : "";
    const std::string remedy = near.empty() ? fmt::format("see reckon {}--help", path)
                                            : fmt::format("did you mean '{}'?", near);
    fail(ErrorKind::usage,
         option ? fmt::format("there is no option '{}': {}", one_line(name), remedy)
                : fmt::format("reckon {}does not take '{}': {}", path, one_line(name), remedy));
  }
  const std::string what = one_line(error.what());
  fail(ErrorKind::usage, what.find(k_did_you_mean) != std::string::npos
                             ? what
                             : fmt::format("{}; {}", what, remedy_of(error, *innermost, path)));
}

template <class To, class T>
Take take_between(To* to, T least, T most, const char* what) {
  return [=](const std::string& text, std::string_view flag) {
    T value{};
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || stop != end || !(value >= least && value <= most)) {
      fail(ErrorKind::usage, fmt::format("{} {}: must be a {} from {} to {}", flag,
                                         text.empty() ? "''" : text, what, least, most));
    }
    *to = value;
  };
}

constexpr const char* k_usual_group = "Options"; ///< CLI11's name of it

/// Lines of at most `width` columns, each after `indent` blanks.
std::string wrapped(const std::vector<std::string>& words, std::size_t indent, std::size_t width) {
  std::string text, line;
  for (const std::string& word : words) {
    if (!line.empty() && indent + line.size() + 1 + word.size() > width) {
      text += std::string(indent, ' ') + line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return text + std::string(indent, ' ') + line + "\n";
}

/// Help that begins with examples, and that only names the options of groups unless all are asked
/// for. It leaves out what an option needs and excludes: the texts say it, and CLI11 lists it in
/// the order of addresses.
class Help : public CLI::Formatter {
public:
  explicit Help(const std::map<const CLI::App*, std::vector<std::string>>& examples)
      : m_examples(examples) {}

  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string text = Formatter::make_option_opts(option);
    return text.substr(0, std::min(text.find(" Needs:"), text.find(" Excludes:")));
  }

  std::string make_description(const CLI::App* app) const override {
    const auto examples = m_examples.find(app);
    std::string text;
    if (examples != m_examples.end()) {
      for (const std::string& line : examples->second) {
        text += "    " + line + "\n";
      }
      text += "\n";
    }
    return text + Formatter::make_description(app);
  }

  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    return mode != CLI::AppFormatMode::Normal
               ? Formatter::make_help(app, std::move(name), mode)
               : make_description(app) + make_usage(app, std::move(name)) + make_positionals(app) +
                     usual_options(app) + make_subcommands(app, mode) + "\n" + make_footer(app);
  }

private:
  /// Explains those of no group and names the others.
  std::string usual_options(const CLI::App* app) const {
    const auto of_group = [&](const std::string& group) {
      return app->get_options([&](const CLI::Option* option) {
        return option->get_group() == group && option->nonpositional();
      });
    };
    std::string text = make_group(k_usual_group, false, of_group(k_usual_group));
    std::string more;
    for (const std::string& group : app->get_groups()) {
      const std::vector<const CLI::Option*> options = of_group(group);
      if (group.empty() || group == k_usual_group || options.empty()) {
        continue;
      }
      std::vector<std::string> names;
      for (const CLI::Option* option : options) {
        names.push_back("--" + option->get_lnames().front());
      }
      more += "  " + group + "\n" + wrapped(names, 6, 90);
    }
    return more.empty() ? text : text + "\nMore options; --help-all explains them:\n" + more;
  }

  const std::map<const CLI::App*, std::vector<std::string>>& m_examples;
};

/// CLI11 keeps the text; it is read when the whole command line is known to fit.
struct Converted {
  CLI::Option* option = nullptr;
  std::string text; ///< given, or the default
  bool flag = false;
  Take take;

  void convert() const {
    if (option->count() > 0 || !text.empty()) {
      take(text, option->get_name());
    }
  }
};

} // namespace

Take fraction(double* to) {
  return [to](const std::string& text, std::string_view flag) { *to = parse_fraction(text, flag); };
}

Take factor(double* to, double least) {
  return [to, least](const std::string& text, std::string_view flag) {
    *to = parse_factor(text, flag, least);
  };
}

Take number(double* to, double least, double most) {
  return take_between(to, least, most, "number");
}
Take whole_number(std::uint64_t* to, std::uint64_t least, std::uint64_t most) {
  return take_between(to, least, most, "whole number");
}
Take whole_number(std::optional<std::uint64_t>* to, std::uint64_t least, std::uint64_t most) {
  return take_between(to, least, most, "whole number");
}

Argument Argument::required() {
  m_option->required();
  return *this;
}
Argument Argument::type(const std::string& name) {
  m_option->type_name(name);
  return *this;
}
Argument Argument::shows_default() {
  m_option->capture_default_str();
  return *this;
}
Argument Argument::defaults_to(const std::string& text) {
  m_option->default_val(text);
  return *this;
}
Argument Argument::one_of(const std::vector<std::string>& values, bool listed) {
  const std::string all = fmt::format("{{{}}}", fmt::join(values, ","));
  const auto known = [values, all](const std::string& text) {
    if (std::find(values.begin(), values.end(), text) != values.end()) {
      return std::string();
    }
    const std::string near = did_you_mean(text, values);
    return fmt::format("{} not in {}{}", text, all,
                       near.empty() ? "" : fmt::format("{}{}'?", k_did_you_mean, near));
  };
  *m_words = values;
  m_option->check(known, listed ? all : "");
  return *this;
}
Argument Argument::at_least(std::uint64_t least) {
  const auto check = [least](const std::string& text) {
    std::uint64_t value = 0;
    return CLI::detail::lexical_cast(text, value) && value < least
               ? fmt::format("must be at least {}, is {}", least, text)
               : std::string();
  };
  m_option->check(check);
  return *this;
}
Argument Argument::separated_by(char separator) {
  m_option->delimiter(separator);
  return *this;
}
Argument Argument::needs(Argument other) {
  m_option->needs(other.m_option);
  return *this;
}
Argument Argument::excludes(Argument other) {
  m_option->excludes(other.m_option);
  return *this;
}
bool Argument::given() const {
  return m_option->count() > 0;
}

struct Arguments::State {
  std::unique_ptr<CLI::App> program; ///< of the program itself
  CLI::App* app;
  std::function<int()> run;
  std::deque<Converted> converted;   ///< in the order in which they were described
  std::string group = k_usual_group; ///< of the options that are described next
  std::map<const CLI::Option*, std::vector<std::string>> words; ///< of Argument::one_of()
  std::map<const CLI::App*, std::vector<std::string>> examples; ///< of the program: of all commands
  Renamed renamed;                                              ///< of the program: of all commands
  State* root = this;                                           ///< the program's
  std::vector<std::unique_ptr<Arguments>> commands;             ///< below

  /// The value of one option, or of all.
  void convert(const CLI::Option* only = nullptr) const {
    for (const Converted& value : converted) {
      if (only == nullptr || value.option == only) {
        value.convert();
      }
    }
  }
};

Arguments::Arguments(std::unique_ptr<State> state) : m_state(std::move(state)) {}
Arguments::~Arguments() = default;

Arguments::Arguments(const std::string& program, const std::string& description,
                     const std::string& version)
    : m_state(std::make_unique<State>()) {
  m_state->program = std::make_unique<CLI::App>(description);
  m_state->app = m_state->program.get();
  m_state->app->name(program);
  m_state->app->set_version_flag("--version", version, "Print the version and end");
  m_state->app->set_help_flag("-h,--help", "Print this help and end");
  m_state->app->set_help_all_flag("--help-all", "Print help with all options and end");
  m_state->app->fallthrough();
  m_state->app->formatter(std::make_shared<Help>(m_state->examples));
}

Arguments& Arguments::command(const std::string& name, const std::string& description) {
  m_state->app->require_subcommand(1);
  auto below = std::make_unique<State>();
  below->app = m_state->app->add_subcommand(name, description);
  below->app->require_subcommand(0);
  below->root = m_state->root;
  return *m_state->commands.emplace_back(new Arguments(std::move(below)));
}

void Arguments::action(std::function<int()> run) {
  m_state->run = std::move(run);
}

void Arguments::example(const std::string& command_line) {
  m_state->root->examples[m_state->app].push_back(command_line);
}

void Arguments::renamed(const std::string& before, const std::string& now) {
  m_state->root->renamed[m_state->app][before] = now;
}

std::string Arguments::now_called(const std::string& name) const {
  const std::string now = now_called_in(*m_state->app, m_state->root->renamed, "--" + name);
  return now.empty() ? "" : now.substr(2);
}

void Arguments::group(const std::string& name) {
  m_state->group = name;
}

void Arguments::footer(const std::string& text) {
  m_state->app->footer(text);
}

Argument Arguments::option(const std::string& names, const Target& to, const std::string& help) {
  CLI::App& app = *m_state->app;
  const auto described = [&](CLI::Option* option) {
    option->group(m_state->group);
    return Argument(option, &m_state->words[option]);
  };
  const auto converted = [&](Take take) {
    Converted& made = m_state->converted.emplace_back();
    made.take = std::move(take);
    made.option = app.add_option(names, made.text, help);
    return described(made.option);
  };
  const auto add = [&](auto target) {
    using T = std::remove_pointer_t<decltype(target)>;
    if constexpr (std::is_same_v<T, Take>) {
      return converted(std::move(target));
    } else if constexpr (std::is_same_v<T, std::optional<bool>>) {
      Converted& made = m_state->converted.emplace_back();
      made.take = [target, &flag = made.flag](const std::string&, std::string_view) {
        *target = flag;
      };
      made.option = app.add_flag(names, made.flag, help);
      return described(made.option);
    } else if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, int>) {
      return described(app.add_flag(names, *target, help));
    } else if constexpr (std::is_same_v<T, Seconds>) {
      return converted([target](const std::string& text, std::string_view flag) {
        *target = parse_seconds(text, flag);
      });
    } else {
      return described(app.add_option(names, *target, help));
    }
  };
  return std::visit(add, to);
}

void Arguments::color(ColorMode* to) {
  choice<ColorMode>(
      "--color", to,
      {{"auto", ColorMode::automatic}, {"always", ColorMode::always}, {"never", ColorMode::never}},
      "auto, always or never")
      .type("WHEN");
}

CommandReference Arguments::reference() const {
  const CLI::App& app = *m_state->app;
  CommandReference reference{app.get_name(), app.get_description(), {}, app.get_footer(), {}, {}};
  const auto examples = m_state->root->examples.find(&app);
  if (examples != m_state->root->examples.end()) {
    reference.examples = examples->second;
  }
  for (const CLI::Option* option : app.get_options()) {
    ArgumentReference& argument = reference.arguments.emplace_back();
    argument.positional = option->get_positional();
    if (argument.positional) {
      argument.names = {option->get_name()};
    }
    for (const std::string& name : option->get_lnames()) {
      argument.names.push_back("--" + name);
    }
    for (const std::string& name : option->get_snames()) {
      argument.names.push_back("-" + name);
    }
    argument.group = option->get_group() == k_usual_group ? "" : option->get_group();
    argument.value = option->get_items_expected_max() == 0 ? "" : option->get_type_name();
    argument.usual = option->get_default_str();
    const auto words = m_state->words.find(option);
    if (words != m_state->words.end()) {
      argument.words = words->second;
    }
    argument.help = option->get_description();
  }
  for (const std::unique_ptr<Arguments>& below : m_state->commands) {
    reference.commands.push_back(below->reference());
  }
  return reference;
}

bool Arguments::is_default(const std::string& name, const std::string& value) const {
  const CLI::Option* const option = m_state->app->get_option_no_throw("--" + name);
  return option != nullptr && !value.empty() && option->get_default_str() == value;
}

void Arguments::set(const std::string& name, const std::string& value) {
  CLI::Option* const option = m_state->app->get_option_no_throw("--" + name);
  if (option == nullptr) {
    fail(ErrorKind::usage, fmt::format("there is no option '--{}'", one_line(name)));
  }
  try {
    option->clear();
    option->add_result(value);
    option->run_callback();
  } catch (const CLI::ParseError& error) {
    fail(ErrorKind::usage,
         one_line(error.what()) + (is_of_flag(error, *m_state->app) ? "; use yes or no" : ""));
  }
  for (const CLI::Option* other : option->get_needs()) {
    if (other->count() == 0) {
      fail(ErrorKind::usage,
           fmt::format("{} requires {}; give both", option->get_name(), other->get_name()));
    }
  }
  for (const CLI::Option* other : option->get_excludes()) {
    if (other->count() > 0) {
      fail(ErrorKind::usage, fmt::format("{} excludes {}; leave one of them out",
                                         option->get_name(), other->get_name()));
    }
  }
  m_state->convert(option);
}

std::function<int()> Arguments::parse(int argc, const char* const* argv) {
  CLI::App& program = *m_state->app;
  if (argc >= 2 && *argv[1] != '-') {
    const std::vector<std::string> names = commands_of(program);
    if (std::find(names.begin(), names.end(), argv[1]) == names.end()) {
      no_such_command(program, m_state->renamed, "", argv[1]);
    }
  }
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) { // help and version
      program.exit(error, std::cout, std::cerr);
      return {};
    }
    fail_to_parse(program, m_state->renamed, error);
  }
  const State* at = m_state.get();
  while (true) {
    at->convert();
    const auto next = std::find_if(at->commands.begin(), at->commands.end(),
                                   [](const auto& c) { return c->m_state->app->parsed(); });
    if (next == at->commands.end()) {
      return at->run;
    }
    at = (*next)->m_state.get();
  }
}

} // namespace reckon
