// SPDX-License-Identifier: Apache-2.0
#include "stats/fit.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace reckon {
namespace {

constexpr std::size_t k_fewest_points = 5;
constexpr std::size_t k_fewest_in_segment = 3;
constexpr double k_infinity = std::numeric_limits<double>::infinity();
/// A sample's error is taken as at least this fraction of its time: no machine follows straight
/// lines more closely, and a MAD of 0 (a coarse clock) must not get infinite weight.
constexpr double k_least_relative_error = 0.02;
/// A sample is an outlier when it is this many errors from its segment's line, which is fitted
/// without it.
constexpr double k_outlier_errors = 5;

/// Of alpha and slope.
struct Covariance {
  double alpha = 0, slope = 0; ///< variances
  double both = 0;
};

/// A line through some of the points, in the scale that keeps the problem well conditioned: every
/// row divided by its error, bytes divided by the segment's largest.
struct Line {
  double alpha_s = 0;
  double slope_s = 0; ///< seconds per byte
  double chi_squared = 0;
  double scale_bytes = 1;
  /// Covariance of the parameters that are not on a bound, in scaled units.
  Covariance active;
  bool flat = false;
};

struct SegmentFit {
  Line line;
  std::vector<std::size_t> left_out;
  double cost = k_infinity;
};

class Fitter {
public:
  Fitter(std::span<const FitPoint> points, const FitOptions& options)
      : m_points(points), m_options(options) {
    for (const FitPoint& p : points) {
      m_errors.push_back(std::max(p.mad, k_least_relative_error * p.seconds));
    }
  }

  /// Points [first, last), outliers left out. Each outlier costs what a point at the outlier limit
  /// costs, so that leaving a point out is never better than a line that passes by it within the
  /// limit.
  [[nodiscard]] SegmentFit segment(std::size_t first, std::size_t last) const {
    std::vector<std::size_t> used;
    for (std::size_t i = first; i < last; ++i) {
      used.push_back(i);
    }
    SegmentFit fit;
    const auto may_leave =
        static_cast<std::size_t>(m_options.most_outliers * static_cast<double>(used.size()));
    fit.line = line_through(used);
    while (fit.left_out.size() < may_leave && used.size() > k_fewest_in_segment) {
      // The point whose absence helps most, not the one with the largest residual: an outlier at
      // the end of a segment pulls the line so far that another point has that. A point with
      // leverage h and residual r is r / (1 - h) away from the line fitted without it, and leaving
      // it out lowers chi-squared by r^2 / (1 - h).
      std::size_t worst = 0;
      double most_gained = 0;
      double distance = 0;
      for (std::size_t k = 0; k < used.size(); ++k) {
        const double r = residual(fit.line, used[k]);
        const double rest = std::max(1e-9, 1 - leverage(fit.line, used[k]));
        if (r * r / rest > most_gained) {
          worst = k;
          most_gained = r * r / rest;
          distance = std::abs(r) / rest;
        }
      }
      if (distance <= k_outlier_errors) {
        break;
      }
      fit.left_out.push_back(used[worst]);
      used.erase(used.begin() + static_cast<std::ptrdiff_t>(worst));
      fit.line = line_through(used);
    }
    fit.cost = fit.line.chi_squared +
               static_cast<double>(fit.left_out.size()) * k_outlier_errors * k_outlier_errors;
    return fit;
  }

private:
  [[nodiscard]] double residual(const Line& line, std::size_t i) const {
    const FitPoint& p = m_points[i];
    return (line.alpha_s + line.slope_s * p.bytes - p.seconds) / m_errors[i];
  }

  [[nodiscard]] double leverage(const Line& line, std::size_t i) const {
    const double x = m_points[i].bytes / line.scale_bytes;
    return (line.active.alpha + x * (2 * line.active.both + x * line.active.slope)) /
           (m_errors[i] * m_errors[i]);
  }

  [[nodiscard]] Line line_through(const std::vector<std::size_t>& used) const {
    // Least squares of y = alpha + slope x, each point divided by its error: a QR decomposition of
    // the two columns, written out. `mean_x` and `mean_y` are weighted means.
    const double scale = m_points[used.back()].bytes;
    double weights = 0, mean_x = 0, mean_y = 0;
    for (const std::size_t i : used) {
      const double weight = 1 / (m_errors[i] * m_errors[i]);
      weights += weight;
      mean_x += weight * (m_points[i].bytes / scale);
      mean_y += weight * m_points[i].seconds;
    }
    mean_x /= weights;
    mean_y /= weights;
    double xx = 0, xy = 0; // about the means
    for (const std::size_t i : used) {
      const double weight = 1 / (m_errors[i] * m_errors[i]);
      const double x = m_points[i].bytes / scale - mean_x;
      xx += weight * x * x;
      xy += weight * x * (m_points[i].seconds - mean_y);
    }
    double slope = xy / xx;
    double alpha = mean_y - slope * mean_x;
    Line line;
    line.scale_bytes = scale;
    line.active = {1 / weights + mean_x * mean_x / xx, 1 / xx, -mean_x / xx};
    // Two unknowns with lower bounds: when the free optimum breaks one, the optimum lies on that
    // bound.
    const double least_slope = 1e-6 * m_points[used.front()].seconds;
    if (alpha < 0) {
      const double about_zero = xx + weights * mean_x * mean_x; // sum of weight x^2
      alpha = 0;
      slope = (xy + weights * mean_x * mean_y) / about_zero;
      line.active = {0, 1 / about_zero, 0};
    }
    if (slope < least_slope) {
      slope = least_slope;
      alpha = std::max(0.0, mean_y - slope * mean_x);
      line.active = {1 / weights, 0, 0};
      line.flat = true;
    }
    for (const std::size_t i : used) {
      const double r =
          (alpha + slope * (m_points[i].bytes / scale) - m_points[i].seconds) / m_errors[i];
      line.chi_squared += r * r;
    }
    line.alpha_s = alpha;
    line.slope_s = slope / scale;
    return line;
  }

  std::span<const FitPoint> m_points;
  FitOptions m_options;
  std::vector<double> m_errors;
};

void check(std::span<const FitPoint> points) {
  for (std::size_t i = 0; i < points.size(); ++i) {
    const FitPoint& p = points[i];
    const bool good = p.bytes > 0 && p.seconds > 0 && p.mad >= 0 && std::isfinite(p.bytes) &&
                      std::isfinite(p.seconds) && std::isfinite(p.mad) &&
                      (i == 0 || p.bytes > points[i - 1].bytes);
    if (!good) {
      fail(ErrorKind::internal, "fit: point " + std::to_string(i) + " is out of order or range");
    }
  }
}

Segment to_segment(const SegmentFit& fit, std::span<const FitPoint> points) {
  Segment s;
  s.from_bytes = points.front().bytes;
  s.to_bytes = points.back().bytes;
  s.alpha_seconds = fit.line.alpha_s;
  s.bandwidth_bytes_per_second = 1 / fit.line.slope_s;
  s.flat = fit.line.flat;
  return s;
}

} // namespace

AlphaBetaFit fit_alpha_beta(std::span<const FitPoint> points, const FitOptions& options) {
  check(points);
  const std::size_t n = points.size();
  if (n < k_fewest_points) {
    return {};
  }
  const Fitter fitter(points, options);
  // Of one more segment in units of chi-squared: the Bayesian information criterion (G. Schwarz,
  // Ann. Stat. 6, 1978) for alpha, beta and a border.
  const double penalty = 3 * std::log(static_cast<double>(n));
  const std::size_t most = std::clamp<std::size_t>(options.most_segments, 1, n);

  // best[k][end]: least cost of points [0, end) in k segments; the last of them is from[k][end] ..
  // end.
  std::vector<std::vector<double>> best(most + 1, std::vector<double>(n + 1, k_infinity));
  std::vector<std::vector<std::size_t>> from(most + 1, std::vector<std::size_t>(n + 1, 0));
  best[0][0] = 0;
  for (std::size_t end = k_fewest_in_segment; end <= n; ++end) {
    for (std::size_t first = 0; first + k_fewest_in_segment <= end; ++first) {
      const double cost = fitter.segment(first, end).cost + penalty;
      for (std::size_t k = 1; k <= most; ++k) {
        if (best[k - 1][first] + cost < best[k][end]) {
          best[k][end] = best[k - 1][first] + cost;
          from[k][end] = first;
        }
      }
    }
  }

  std::size_t segments = 1;
  for (std::size_t k = 2; k <= most; ++k) {
    segments = best[k][n] < best[segments][n] ? k : segments;
  }
  AlphaBetaFit result;
  for (std::size_t end = n, k = segments; k > 0; --k) {
    const std::size_t first = from[k][end];
    const SegmentFit fit = fitter.segment(first, end);
    Segment s = to_segment(fit, points.subspan(first, end - first));
    double sum = 0;
    for (std::size_t i = first; i < end; ++i) {
      if (std::ranges::find(fit.left_out, i) == fit.left_out.end()) {
        const double t = fit.line.alpha_s + fit.line.slope_s * points[i].bytes;
        sum += std::pow((t - points[i].seconds) / points[i].seconds, 2);
      }
    }
    s.relative_residual = std::sqrt(sum / static_cast<double>(end - first - fit.left_out.size()));
    result.segments.push_back(s);
    result.outliers.insert(result.outliers.end(), fit.left_out.begin(), fit.left_out.end());
    end = first;
  }
  std::ranges::reverse(result.segments);
  std::ranges::sort(result.outliers);
  return result;
}

std::optional<double> knee_bytes(std::span<const FitPoint> points) {
  check(points);
  constexpr double k_full = 0.9;
  double best = 0;
  for (const FitPoint& p : points) {
    best = std::max(best, p.bytes / p.seconds);
  }
  for (const FitPoint& p : points) {
    if (p.bytes / p.seconds >= k_full * best) {
      return p.bytes;
    }
  }
  return std::nullopt;
}

} // namespace reckon
