// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace reckon {

/// One measured size, as the fit wants it.
struct FitPoint {
  double bytes = 0;   ///< > 0
  double seconds = 0; ///< median, > 0
  double mad = 0;     ///< median absolute deviation of the samples, in seconds, >= 0
};

/// T(s) = alpha + s / beta for from_bytes <= s <= to_bytes, the sizes of the first and last sample
/// it was fitted to.
struct Segment {
  double from_bytes = 0;
  double to_bytes = 0;
  double alpha_seconds = 0;              ///< >= 0
  double bandwidth_bytes_per_second = 0; ///< beta: > 0, finite
  /// Root mean square of (T - t) / t over the samples used.
  double relative_residual = 0;
  /// The time does not grow measurably within the segment: alpha is its time, and beta is only a
  /// number large enough to add less than 1e-6 of it. Print no bandwidth then.
  bool flat = false;
};

struct FitOptions {
  std::size_t most_segments = 8;
  /// At most this fraction of a segment's samples, rounded down, may be left out as outliers.
  double most_outliers = 0.15;
};

struct AlphaBetaFit {
  std::vector<Segment> segments;     ///< in order of size; empty when the fit was refused
  std::vector<std::size_t> outliers; ///< indices of the points left out, ascending
};

/// Fits T(s) = alpha + s / beta per segment by least squares with weights 1 / MAD^2; the number of
/// segments and their borders minimise chi-squared plus the penalty exactly, by dynamic programming
/// over all borders. Each segment has at least 3 points that are not outliers, alpha >= 0 and beta
/// > 0. Fewer than 5 points: refused, empty. Points must be ascending in bytes, strictly. Throws
/// Error{internal} on points that break the limits stated in FitPoint. Takes O(n^2) small
/// least-squares problems.
[[nodiscard]] AlphaBetaFit fit_alpha_beta(std::span<const FitPoint> points,
                                          const FitOptions& options = {});

/// The smallest measured size whose rate, bytes / seconds, reaches 90 % of the best measured rate;
/// nullopt without points.
[[nodiscard]] std::optional<double> knee_bytes(std::span<const FitPoint> points);

} // namespace reckon
