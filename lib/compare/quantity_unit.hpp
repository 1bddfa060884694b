// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace reckon {

/// Unit of a plan's quantity or of an input of one, by its name: the suffix ("_bytes", "_seconds",
/// "_bytes_per_second"), or the letters of the papers: M is the model's bytes, B a bandwidth. Empty
/// for a plain number.
[[nodiscard]] inline std::string_view unit_of_quantity(std::string_view name) {
  if (name.ends_with("bytes_per_second") || name == "B" || name.starts_with("B_") ||
      name.ends_with("_B")) {
    return "bytes_per_second";
  }
  if (name.ends_with("bytes") || name == "M") {
    return "bytes";
  }
  return name.ends_with("seconds") ? "seconds" : "";
}

/// The same for an input among others. In COARSE's formulas p counts the workers, and n is the
/// gradient's bytes; elsewhere n counts the workers.
[[nodiscard]] inline std::string_view unit_of_input(std::string_view name,
                                                    const std::map<std::string, double>& inputs) {
  if (name == "n" && inputs.contains("p")) {
    return "bytes";
  }
  return name == "forward" || name == "backward" ? "seconds" : unit_of_quantity(name);
}

} // namespace reckon
