// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/error.hpp"

#include <fmt/format.h>

#include <cmath>

/// Checks of the equations' arguments. Not for other modules.
namespace reckon::equations {

/// Two times whose relative difference is smaller are the same time: they come from different
/// orders of the same operations.
inline constexpr double k_tie = 1e-12;

/// Throws Error{usage} that names `what`.
inline void check_positive(double value, const char* what) {
  if (!(std::isfinite(value) && value > 0)) {
    fail(ErrorKind::usage, fmt::format("{} of {}: must be finite and greater than 0", what, value));
  }
}

/// The same, but 0 is allowed.
inline void check_amount(double value, const char* what) {
  if (!(std::isfinite(value) && value >= 0)) {
    fail(ErrorKind::usage, fmt::format("{} of {}: must be finite and not negative", what, value));
  }
}

} // namespace reckon::equations
