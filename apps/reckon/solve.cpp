// SPDX-License-Identifier: Apache-2.0
#include "solve.hpp"

#include "commands.hpp"
#include "core/file.hpp"
#include "documents/document.hpp"
#include "documents/measured_csv.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

namespace reckon::solve {

// ---------------------------------------------------------------- inputs

Input required(const std::string& names, Unit unit, const std::string& help) {
  Input input{names, unit, help};
  input.needs_value = true;
  return input;
}

bool Given::has(std::string_view flag) const {
  const Value& value = of(flag);
  return present(flag) &&
         (value.unit == Unit::count ? value.count.has_value() : !value.text.empty());
}

std::optional<std::int64_t> Given::integer(std::string_view flag) const {
  return of(flag).count;
}

std::uint64_t Given::count(std::string_view flag) const {
  const std::int64_t value = of(flag).count.value_or(0);
  refuse_if(value < 1 || value > k_most_machines, "{} {}: must be between 1 and {}", flag, value,
            k_most_machines);
  return static_cast<std::uint64_t>(value);
}

std::uint64_t Given::count(std::string_view flag, std::uint64_t otherwise) const {
  return has(flag) ? count(flag) : otherwise;
}

double Given::number(std::string_view flag) const {
  const Value& value = of(flag);
  switch (value.unit) {
  case Unit::bytes:
    return parse_bytes(value.text, flag).as_double();
  case Unit::bandwidth:
    return parse_bandwidth(value.text, flag).as_bytes_per_s();
  case Unit::seconds:
    return parse_seconds(value.text, flag).count();
  case Unit::fraction:
    return parse_fraction(value.text, flag);
  case Unit::factor:
    return value.factor;
  case Unit::text:
  case Unit::count:
  case Unit::flag:
    break;
  }
  fail(ErrorKind::internal, fmt::format("{} is not a number with a unit", flag));
}

double Given::number(std::string_view flag, double otherwise) const {
  return has(flag) ? number(flag) : otherwise;
}

std::optional<double> Given::optional_number(std::string_view flag) const {
  return has(flag) ? std::optional(number(flag)) : std::nullopt;
}

double Given::positive(std::string_view flag) const {
  const double value = number(flag);
  refuse_if(!(value > 0), "{} {}: must be greater than 0", flag, text(flag));
  return value;
}

std::size_t Given::one_of(std::string_view flag, std::initializer_list<const char*> names) const {
  const auto it = std::find(names.begin(), names.end(), text(flag));
  refuse_if(it == names.end(), "{} '{}': must be {} or {}", flag, text(flag),
            fmt::join(names.begin(), names.end() - 1, ", "), *(names.end() - 1));
  return static_cast<std::size_t>(it - names.begin());
}

std::optional<Workload> Given::workload() const {
  return has("--workload") ? std::optional(read_workload(text("--workload"))) : std::nullopt;
}

void Given::add(Arguments& command, const Input& input) {
  Value& value = m_values[input.names.substr(input.names.rfind(',') + 1)];
  value.unit = input.unit;
  const Target target = [&]() -> Target {
    switch (input.unit) {
    case Unit::flag:
      return &value.on;
    case Unit::count:
      return &value.count;
    case Unit::factor:
      return factor(&value.factor, input.least);
    default:
      return &value.text;
    }
  }();
  Argument argument = command.option(input.names, target, input.help);
  if (input.needs_value) {
    argument.required();
  }
  if (!input.usual.empty()) {
    argument.defaults_to(input.usual);
  }
  if (!input.type.empty() || input.unit == Unit::factor) {
    argument.type(input.type.empty() ? "FACTOR" : input.type);
  }
  for (const std::string& other : input.excluded) {
    argument.excludes(*of(other).argument);
  }
  if (!input.needed.empty()) {
    argument.needs(*of(input.needed).argument);
  }
  value.argument = argument;
}

// ---------------------------------------------------------------- answers

void Answer::add(const std::string& best, const std::vector<Strategy>& strategies) {
  Lines lines("{:<18} {:>10} {:>9}  {}");
  lines("strategy", "time", "to " + best, "equation");
  for (const Strategy& s : strategies) {
    json[s.key] = s.seconds;
    lines(s.name, time_text(s.seconds), times_text(s.seconds, strategies.front().seconds),
          s.equation);
  }
  text += lines.text();
}

std::string rows_left_out(std::size_t all, std::size_t shown, std::string_view what) {
  return all <= shown
             ? ""
             : fmt::format("... and {} more; --json has all\n", counted(all - shown, what));
}

std::string bytes_text(double bytes) {
  return to_text(Bytes(static_cast<std::uint64_t>(std::llround(bytes))));
}
std::string exact_text(double bytes) {
  return fmt::format("{} ({:.10g} B)", bytes_text(bytes), bytes);
}
std::string rate_text(double bytes_per_s) {
  return to_text(Bandwidth::bytes_per_s(bytes_per_s));
}
std::string time_text(double seconds) {
  return to_text(Seconds(seconds));
}
std::string times_text(double seconds, double best_s) {
  return best_s > 0 ? fmt::format("{:.4g} x", seconds / best_s) : "-";
}
std::string remedy_text(const char* name, double seconds, double now_s) {
  return fmt::format("  {:<34} {:>10}  {:+.1f} %\n", name, time_text(seconds),
                     100 * (seconds / now_s - 1));
}

Json ratio_or_null(double part, double whole) {
  return whole > 0 ? Json(part / whole) : Json(nullptr);
}

// ---------------------------------------------------------------- texts and files

Curve read_curve(const std::string& path, const std::string& column) {
  return Curve(curve_from_csv(read_file(path), path, column));
}

std::vector<std::uint64_t> tensor_bytes(const Workload& workload) {
  std::vector<std::uint64_t> bytes;
  for (const Tensor& tensor : workload.tensors) {
    bytes.push_back(tensor.bytes());
  }
  return bytes;
}

std::vector<SizeCount> tensor_sizes(const Workload& workload) {
  std::vector<SizeCount> sizes;
  for (const Tensor& tensor : workload.tensors) {
    sizes.push_back({static_cast<double>(tensor.bytes()), 1});
  }
  return sizes;
}

} // namespace reckon::solve

// ---------------------------------------------------------------- the command

namespace reckon {

void add_solve_command(Arguments& program) {
  Arguments& solve =
      program.command("solve", "Solve one of the papers' equations from numbers alone");
  solve.example("reckon solve split --workers 8 --servers 4 --bytes 553MB --bandwidth 100Gb/s");
  for (const solve::Calculator& calculator :
       {solve::split(), solve::placement(), solve::aggregation(), solve::routing(),
        solve::partition(), solve::dual_sync(), solve::memory(), solve::dense(), solve::locality(),
        solve::ring(), solve::oversubscription(), solve::capacity(), solve::torus(),
        solve::overlap()}) {
    Arguments& command = solve.command(calculator.name, calculator.help);
    command.example("reckon solve " + calculator.name + " " + calculator.example);
    const auto given = std::make_shared<solve::Given>();
    for (const solve::Input& input : calculator.inputs) {
      given->add(command, input);
    }
    given->add(command, {"--json", solve::Unit::flag, "JSON on standard output: one object"});
    if (!calculator.footer.empty()) { // else that of the program
      command.footer(calculator.footer);
    }
    for (const auto& [before, now] : calculator.renamed) {
      command.renamed(before, now);
    }
    command.action([given, answer = calculator.answer] {
      const solve::Answer answered = answer(*given);
      write_file("-", given->on("--json") ? canonical(answered.json) : answered.text);
      return k_exit_ok;
    });
  }
}

} // namespace reckon
