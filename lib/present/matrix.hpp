// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "present/style.hpp"

#include <optional>
#include <string>
#include <vector>

namespace reckon {

struct MatrixCell {
  std::optional<double> value;           ///< in the matrix's unit, scaled
  std::string text;                      ///< what stands there instead of a value ("N/A")
  bool noisy = false;                    ///< marked with ~
  std::optional<double> ceiling_share{}; ///< as ceiling_share() of groups.hpp ...
  std::string ceiling{};                 ///< ... and what limits
};

/// Measurements between endpoints, row = source, column = destination.
struct Matrix {
  std::string title;   ///< the case
  std::string setting; ///< the other fixed parts: "one way, 4 threads"
  std::string unit;    ///< "GB/s", "ns"
  std::vector<std::string> rows, columns;
  std::vector<std::vector<MatrixCell>> cells; ///< [row][column]
  int decimals = 2;
  bool higher_is_better = true;
};

/// The values between which a matrix has colours.
struct ColorScale {
  double worst = 0, best = 0;
  /// 0 for the worst value, 1 for the best.
  [[nodiscard]] double goodness(double value) const {
    return best == worst ? 1 : (value - worst) / (best - worst);
  }
};
/// From the matrix's worst value to its best, but at least a fifth of the best away from it: values
/// that differ by no more than noise look alike.
[[nodiscard]] ColorScale color_scale_of(const Matrix& matrix);

/// The beginning that all ids share when what follows are numbers; else empty.
[[nodiscard]] std::string common_beginning(const std::vector<std::string>& ids);

/// The title line, the matrix as aligned numbers, then sum (of rates), min and max with their
/// pairs. Ids that differ only in a number after a common beginning are shown as that number. With
/// colours the cells get a heat map, light is good; one that does not fit the terminal shows the
/// colours alone, and without colours it is cut into blocks of columns.
[[nodiscard]] std::string render(const Matrix& matrix, const Style& style);

} // namespace reckon
