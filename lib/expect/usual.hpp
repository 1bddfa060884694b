// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace reckon {

/// What long messages usually reach of a way's ceiling.
struct UsualShare {
  std::string way;              ///< as WayCeiling::way
  std::string through;          ///< what limits it: "nvlink", "xgmi", "pcie", "port"
  double low = 0, high = 0;     ///< fractions of the ceiling
  std::string measured, source; ///< where that was seen, and published
};

/// From the shipped usual/collectives.json, or the file of that name in $RECKON_DATA_DIR; absent
/// where nothing is published. Throws Error{input} for a damaged file.
[[nodiscard]] std::optional<UsualShare> usual_share(std::string_view way, std::string_view through);

} // namespace reckon
