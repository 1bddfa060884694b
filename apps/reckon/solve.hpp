// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "command_line.hpp"
#include "core/error.hpp"
#include "core/json.hpp"
#include "core/units.hpp"
#include "documents/workload.hpp"
#include "equations/coarse.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// `reckon solve`: a calculator is a table of inputs, one function, and its answer. solve.cpp reads
/// the inputs and prints the answer of all of them. To add one: a function that returns it, and a
/// line in the list of solve.cpp.
namespace reckon::solve {

/// The kind of an input: all but `text` and `flag` are numbers, in bytes, bytes per second,
/// seconds, or parts of one (a fraction or a factor).
enum class Unit { text, count, bytes, bandwidth, seconds, fraction, factor, flag };

/// One option.
struct Input {
  std::string names; ///< as in "-m,--workload"
  Unit unit = Unit::text;
  std::string help;
  std::string usual = {};                 ///< default value, which help shows
  std::vector<std::string> excluded = {}; ///< flags of inputs before this one
  std::string needed = {};                ///< the flag of one before this one
  std::string type = {};                  ///< name of the value in help; empty: TEXT, INT or FACTOR
  bool needs_value = false;               ///< must be given
  double least = 1;                       ///< for a factor
};
[[nodiscard]] Input required(const std::string& names, Unit unit, const std::string& help);

/// More machines than any cluster has; keeps a slip such as --workers 1e12 from filling the memory.
inline constexpr std::int64_t k_most_machines = 1'000'000;

/// The values of the inputs on the command line, by flag. Numbers throw Error{usage} that names the
/// flag.
class Given {
public:
  /// Whether it is on the command line.
  [[nodiscard]] bool present(std::string_view flag) const { return of(flag).argument->given(); }
  /// Whether it is, with a non-empty value.
  [[nodiscard]] bool has(std::string_view flag) const;
  [[nodiscard]] bool on(std::string_view flag) const { return of(flag).on; }
  /// The given value, else the default.
  [[nodiscard]] const std::string& text(std::string_view flag) const { return of(flag).text; }
  /// Any whole number.
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view flag) const;
  /// A whole number from 1 to k_most_machines.
  [[nodiscard]] std::uint64_t count(std::string_view flag) const;
  [[nodiscard]] std::uint64_t count(std::string_view flag, std::uint64_t otherwise) const;
  /// Any other number, in its unit.
  [[nodiscard]] double number(std::string_view flag) const;
  [[nodiscard]] double number(std::string_view flag, double otherwise) const;
  [[nodiscard]] std::optional<double> optional_number(std::string_view flag) const;
  /// A number that is greater than 0; for bytes at least 1.
  [[nodiscard]] double positive(std::string_view flag) const;
  /// Its index in `names`. Throws Error{usage} for another.
  [[nodiscard]] std::size_t one_of(std::string_view flag,
                                   std::initializer_list<const char*> names) const;
  /// The workload of --workload; absent without it.
  [[nodiscard]] std::optional<Workload> workload() const;

  /// Adds an option to the command; this must then keep its address.
  void add(Arguments& command, const Input& input);

private:
  struct Value {
    Unit unit = Unit::text;
    std::optional<Argument> argument;
    std::string text;
    std::optional<std::int64_t> count;
    double factor = 1;
    bool on = false;
  };
  [[nodiscard]] const Value& of(std::string_view flag) const { return m_values.find(flag)->second; }
  std::map<std::string, Value, std::less<>> m_values;
};

/// An alternative way, its time, and its equation with the number in docs/equations.md.
struct Strategy {
  std::string name;
  std::string key; ///< key of the time in the JSON
  double seconds = 0;
  std::string equation;
};

struct Answer {
  Json json;        ///< one object
  std::string text; ///< for people, with final newline

  /// A line for each of them and an entry in the JSON. The first is the best, called `best`.
  void add(const std::string& best, const std::vector<Strategy>& strategies);
};

struct Calculator {
  std::string name, help;
  std::string example; ///< arguments of the example in help
  std::vector<Input> inputs;
  Answer (*answer)(const Given& given);
  std::string footer = {}; ///< empty: help ends with that of the program
  /// Former names of options, and what they are called now.
  std::vector<std::pair<std::string, std::string>> renamed = {};
};

Calculator split();
Calculator placement();
Calculator aggregation();
Calculator routing();
Calculator partition();
Calculator dual_sync();
Calculator memory();
Calculator dense();
Calculator locality();
Calculator ring();
Calculator oversubscription();
Calculator capacity();
Calculator torus();
Calculator overlap();

// ---------------------------------------------------------------- shared by calculators

/// Throws Error{usage} with the message if `wrong`. The inputs that it names must be given.
template <class... Args>
void refuse_if(bool wrong, fmt::format_string<Args...> message, Args&&... args) {
  if (wrong) {
    fail(ErrorKind::usage, fmt::format(message, std::forward<Args>(args)...));
  }
}

/// Lines whose cells stand below each other: each line is written by one format string.
class Lines {
public:
  explicit Lines(const std::string& layout) : m_layout(layout + "\n") {}
  template <class... Cells>
  Lines& operator()(const Cells&... cells) {
    m_text += fmt::format(fmt::runtime(m_layout), cells...);
    return *this;
  }
  /// A line that has no cells, or nothing; with final newline.
  void append(std::string_view line) { m_text += line; }
  [[nodiscard]] const std::string& text() const { return m_text; }

private:
  std::string m_layout, m_text;
};

/// Rows of a table with one row a machine; the JSON holds all of them.
inline constexpr std::size_t k_most_rows = 64;
/// A last line if there are more than `shown` of `all`.
[[nodiscard]] std::string rows_left_out(std::size_t all, std::size_t shown, std::string_view what);

[[nodiscard]] std::string bytes_text(double bytes);
/// "80.36 KiB (82285.7 B)": the value of the document beside the one for people.
[[nodiscard]] std::string exact_text(double bytes);
[[nodiscard]] std::string rate_text(double bytes_per_s);
[[nodiscard]] std::string time_text(double seconds);
/// "1.375 x" as long as the best; "-" where that takes no time.
[[nodiscard]] std::string times_text(double seconds, double best_s);
/// The time with this change.
[[nodiscard]] std::string remedy_text(const char* name, double seconds, double now_s);

/// The name of an enumerator, of all in their order.
template <class Names, class Enum>
[[nodiscard]] const char* named(const Names& names, Enum value) {
  return names[static_cast<std::size_t>(value)];
}

template <class T>
[[nodiscard]] Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}
/// null where nothing takes any time.
[[nodiscard]] Json ratio_or_null(double part, double whole);

/// From a CSV file with the columns bytes and `column`. Throws Error{input} with file and line.
[[nodiscard]] Curve read_curve(const std::string& path, const std::string& column = "seconds");

/// For each tensor, in order.
[[nodiscard]] std::vector<std::uint64_t> tensor_bytes(const Workload& workload);
[[nodiscard]] std::vector<SizeCount> tensor_sizes(const Workload& workload);

} // namespace reckon::solve
