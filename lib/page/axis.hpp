// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

namespace reckon {

/// Where numbers lie on an axis of a picture: `from` at `begin`, `to` at `end`, in the picture's
/// units.
struct Axis {
  double from = 0, to = 1; ///< from < to; of a logarithmic axis both above 0
  double begin = 0, end = 1;
  bool logarithmic = false;
  /// Values outside are at the nearer end.
  [[nodiscard]] double at(double value) const;
};

/// Round numbers within an axis, ascending, at most `most` of them (2 or more): 1, 2 or 5 times a
/// power of ten; on a logarithmic axis 1 or 3 times one where that is too many, then powers of ten
/// alone, then every second one, and so on, and numbers in equal steps where that is too few.
[[nodiscard]] std::vector<double> round_numbers(const Axis& axis, std::size_t most);
/// Powers of two within a logarithmic axis in equal steps, at most `most` of them.
[[nodiscard]] std::vector<double> powers_of_two(const Axis& axis, std::size_t most);

} // namespace reckon
