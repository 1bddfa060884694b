// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace reckon {

/// A collective as nccl-tests and its like measure it.
struct TestedCollective {
  std::string_view name; ///< "all_reduce"
  /// From the tests' rate (bytes over time) to the bus bandwidth: 2 (n - 1) / n, (n - 1) / n or 1
  /// of n ranks.
  double (*bus_factor)(double ranks);
  bool sums = false, has_root = false;
};

/// All of them, all_reduce first.
[[nodiscard]] std::span<const TestedCollective> tested_collectives();
/// Null for an unknown name.
[[nodiscard]] const TestedCollective* collective_named(std::string_view name);
/// The same. Throws Error{usage} for an unknown name, with the known ones; `option`:
/// "--collective".
[[nodiscard]] const TestedCollective& asked_collective(std::string_view name,
                                                       std::string_view option);
/// "all_reduce, all_gather, ..."
[[nodiscard]] std::string collective_names();

} // namespace reckon
