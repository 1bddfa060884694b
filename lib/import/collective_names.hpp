// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tested_collective.hpp"
#include "import/import.hpp"

#include <span>

namespace reckon::import_detail {

using Collective = TestedCollective;

[[nodiscard]] inline std::span<const Collective> collectives() {
  return tested_collectives();
}

/// The one of --collective; null when it is not given. Throws Error{usage} for an unknown name.
[[nodiscard]] inline const Collective* asked_collective(const ImportOptions& options) {
  return options.collective.empty()
             ? nullptr
             : &reckon::asked_collective(options.collective, "--collective");
}

} // namespace reckon::import_detail
