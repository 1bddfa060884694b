// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "import/import.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reckon::import_detail {

/// A collective, and the factor from its tests' rate to the bus bandwidth.
struct Collective {
  std::string_view name;
  /// 2 (n - 1) / n, (n - 1) / n or 1 of n ranks.
  double (*bus_factor)(double ranks);
  bool sums = false, has_root = false;
};

[[nodiscard]] std::span<const Collective> collectives();

/// Null for an unknown name.
[[nodiscard]] const Collective* collective_named(std::string_view name);
/// The one of --collective; null when it is not given. Throws Error{usage} for an unknown name.
[[nodiscard]] const Collective* asked_collective(const ImportOptions& options);
/// "all_reduce, all_gather, ..."
[[nodiscard]] std::string collective_names();

} // namespace reckon::import_detail
