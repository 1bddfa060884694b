// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace reckon {

/// What long messages usually reach of a way's ceiling.
struct UsualShare {
  std::string way;              ///< as WayCeiling::way
  std::string through;          ///< what limits it: "nvlink", "xgmi", "pcie", "port"
  double low = 0, high = 0;     ///< fractions of the ceiling
  std::string measured, source; ///< where that was seen, and published
  /// Of which machines: from and to so many GPUs in each, and so many bytes per second of a GPU.
  std::pair<double, double> gpus{0, std::numeric_limits<double>::infinity()};
  std::pair<double, double> bytes_per_second = gpus;
};

/// The GPUs of one machine: how many, and what each sends to the others by links of its own.
struct GpuLinks {
  std::size_t gpus = 0;
  double bytes_per_second = 0; ///< 0: by PCIe
};

/// From the shipped usual/collectives.json, or the file of that name in $RECKON_DATA_DIR: the first
/// entry for such GPUs; absent where nothing is published. Throws Error{input} for a damaged file.
[[nodiscard]] std::optional<UsualShare> usual_share(std::string_view way, std::string_view through,
                                                    const GpuLinks& links);

} // namespace reckon
