// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/units.hpp"

#include <span>
#include <vector>

namespace reckon {

/// One measured size: the time of moving `bytes`.
struct CurvePoint {
  double bytes = 0;
  double seconds = 0;
  bool operator==(const CurvePoint&) const = default;
};

/// The time of moving any number of bytes, from samples. Immutable.
///
/// Linear in time between samples. Below the first sample: the first sample's time (a size that was
/// not measured is not assumed to be faster). Beyond the last: the marginal rate over the last
/// octave of sizes (at least the last two samples), or the last sample's mean rate if the marginal
/// one is not positive, which is noise.
class Curve {
public:
  enum class Shape {
    as_measured,
    /// Each time is raised to the largest time of any smaller size, so that seconds_at never
    /// decreases.
    non_decreasing,
  };

  /// At least one point; bytes >= 0, finite, strictly increasing; seconds > 0, finite.
  /// Throws Error{input} otherwise.
  explicit Curve(std::vector<CurvePoint> points, Shape shape = Shape::as_measured);

  [[nodiscard]] double seconds_at(double bytes) const;
  /// bytes / seconds_at(bytes): the mean rate of one move, start-up included.
  [[nodiscard]] Bandwidth bandwidth_at(double bytes) const;
  /// The rate at which bytes beyond the last sample are added.
  [[nodiscard]] Bandwidth marginal_bandwidth() const;
  [[nodiscard]] std::span<const CurvePoint> points() const { return m_points; }

private:
  [[nodiscard]] double tail_seconds_per_byte() const;

  std::vector<CurvePoint> m_points;
};

} // namespace reckon
