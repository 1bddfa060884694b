// SPDX-License-Identifier: Apache-2.0
#include "stats/curve.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace reckon {
namespace {

double time_of(const CurvePoint& p, Estimate estimate) {
  switch (estimate) {
  case Estimate::lo:
    return p.lo_seconds;
  case Estimate::mid:
    return p.seconds;
  case Estimate::hi:
    return p.hi_seconds;
  }
  return p.seconds;
}

void check(const std::vector<CurvePoint>& points) {
  if (points.empty()) {
    fail(ErrorKind::input, "curve: no points");
  }
  for (std::size_t i = 0; i < points.size(); ++i) {
    const CurvePoint& p = points[i];
    const std::string where = "curve point " + std::to_string(i);
    if (!(p.bytes >= 0 && std::isfinite(p.bytes))) {
      fail(ErrorKind::input, where + ": bytes must be finite and not negative");
    }
    if (i > 0 && !(p.bytes > points[i - 1].bytes)) {
      fail(ErrorKind::input, where + ": bytes must be above those of the point before");
    }
    if (!(p.lo_seconds > 0 && p.lo_seconds <= p.seconds && p.seconds <= p.hi_seconds &&
          std::isfinite(p.hi_seconds))) {
      fail(ErrorKind::input, where + ": 0 < lo <= seconds <= hi must hold, all finite");
    }
  }
}

} // namespace

Curve::Curve(std::vector<CurvePoint> points, Shape shape) : m_points(std::move(points)) {
  check(m_points);
  if (shape == Shape::non_decreasing) {
    for (std::size_t i = 1; i < m_points.size(); ++i) {
      const CurvePoint& before = m_points[i - 1];
      CurvePoint& p = m_points[i];
      p.seconds = std::max(p.seconds, before.seconds);
      p.lo_seconds = std::max(p.lo_seconds, before.lo_seconds);
      p.hi_seconds = std::max(p.hi_seconds, before.hi_seconds);
    }
  }
}

double Curve::tail_seconds_per_byte(Estimate estimate) const {
  const CurvePoint& last = m_points.back();
  // The tail keeps the last sample's relative interval; slopes of lo and hi of their own would
  // cross the middle.
  const double relative = time_of(last, estimate) / last.seconds;
  if (m_points.size() >= 2) {
    auto from = m_points.end() - 2;
    while (from != m_points.begin() && from->bytes > last.bytes / 2) {
      --from;
    }
    const double slope = (last.seconds - from->seconds) / (last.bytes - from->bytes);
    if (slope > 0) {
      return slope * relative;
    }
  }
  return last.bytes > 0 ? time_of(last, estimate) / last.bytes : 0;
}

double Curve::seconds_at(double bytes, Estimate estimate) const {
  if (bytes <= m_points.front().bytes) {
    return time_of(m_points.front(), estimate);
  }
  const CurvePoint& last = m_points.back();
  if (bytes >= last.bytes) {
    return time_of(last, estimate) + (bytes - last.bytes) * tail_seconds_per_byte(estimate);
  }
  const auto above = std::ranges::upper_bound(m_points, bytes, {}, &CurvePoint::bytes);
  const auto below = above - 1;
  const double fraction = (bytes - below->bytes) / (above->bytes - below->bytes);
  return std::lerp(time_of(*below, estimate), time_of(*above, estimate), fraction);
}

Bandwidth Curve::bandwidth_at(double bytes, Estimate estimate) const {
  return Bandwidth::bytes_per_s(bytes / seconds_at(bytes, estimate));
}

Bandwidth Curve::marginal_bandwidth(Estimate estimate) const {
  return Bandwidth::bytes_per_s(1 / tail_seconds_per_byte(estimate));
}

} // namespace reckon
