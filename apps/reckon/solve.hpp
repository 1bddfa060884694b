// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "commands.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/units.hpp"
#include "equations/coarse.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <string>

/// What the files of `reckon solve` share, one for each group of equations.
namespace CLI {
class App;
}

namespace reckon {

using Command = std::function<int()>;

Command add_solve_placement(CLI::App& solve);
Command add_solve_routing(CLI::App& solve);
Command add_solve_partition(CLI::App& solve);
Command add_solve_dual_sync(CLI::App& solve);
Command add_solve_memory(CLI::App& solve);
Command add_solve_dense(CLI::App& solve);
Command add_solve_locality(CLI::App& solve);
Command add_solve_ring(CLI::App& solve);
Command add_solve_oversubscription(CLI::App& solve);
Command add_solve_capacity(CLI::App& solve);
Command add_solve_torus(CLI::App& solve);
Command add_solve_overlap(CLI::App& solve);

namespace solve_command {

/// More machines than any cluster has; keeps a slip such as --workers 1e12 from filling the memory.
inline constexpr std::int64_t k_most_machines = 1'000'000;

/// Rows of a table with one row a machine; the JSON holds all of them.
inline constexpr std::size_t k_most_rows = 64;

inline void print(const std::string& text) {
  write_file("-", text);
}

inline std::string bytes_text(double bytes) {
  return to_text(Bytes(static_cast<std::uint64_t>(std::llround(bytes))));
}
inline std::string rate_text(double bytes_per_s) {
  return to_text(Bandwidth::bytes_per_s(bytes_per_s));
}
inline std::string time_text(double seconds) {
  return to_text(Seconds(seconds));
}

/// A count given as an option. Throws Error{usage} unless 1 <= value <= k_most_machines.
inline std::uint64_t count_of(std::int64_t value, const char* flag) {
  if (value < 1 || value > k_most_machines) {
    fail(ErrorKind::usage,
         fmt::format("{} {}: must be between 1 and {}", flag, value, k_most_machines));
  }
  return static_cast<std::uint64_t>(value);
}

/// Times by size from a CSV file with the columns bytes and seconds; from one with the columns
/// bytes and `factor`, where that is given. Throws Error{input} with file and line.
SizeCurve read_curve(const std::string& path, const std::string& factor = {});

} // namespace solve_command
} // namespace reckon
