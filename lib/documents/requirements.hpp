// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/json_fwd.hpp"
#include "documents/profile.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace reckon {

/// The limit for every matching cell.
struct RequiredCell {
  /// Fields that are not given match anything. `from` and `to` may end with `*`, which stands for
  /// any rest: "m0/gpu*".
  CellKey key;
  std::optional<double> at_least, at_most; ///< of the median, in the cell's unit
  std::string remedy;                      ///< remedy for a cell that misses it; may be empty
  bool operator==(const RequiredCell&) const = default;
};

/// The least number of parts of a kind in a profile's topology.
struct RequiredParts {
  ObjectKind kind = ObjectKind::gpu;
  std::string name; ///< text in their names; empty: any
  std::uint64_t at_least = 1;
  bool operator==(const RequiredParts&) const = default;
};

/// The conditions for accepting a machine or a cluster.
struct Requirements {
  std::string name;
  std::vector<RequiredCell> cells;
  std::vector<RequiredParts> parts;
  bool operator==(const Requirements&) const = default;
};

/// Validates strictly. Throws Error{input} with `file` and the JSON pointer.
[[nodiscard]] Requirements requirements_from_json(const Json& json, const std::string& file);
[[nodiscard]] Json to_json(const Requirements& requirements);
/// Reads the file `path` ("-" for standard input).
[[nodiscard]] Requirements read_requirements(const std::string& path);

} // namespace reckon
