// SPDX-License-Identifier: Apache-2.0
#include "stats/curve.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace reckon {
namespace {

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
    if (!(p.seconds > 0 && std::isfinite(p.seconds))) {
      fail(ErrorKind::input, where + ": seconds must be finite and greater than 0");
    }
  }
}

} // namespace

Curve::Curve(std::vector<CurvePoint> points, Shape shape) : m_points(std::move(points)) {
  check(m_points);
  if (shape == Shape::non_decreasing) {
    for (std::size_t i = 1; i < m_points.size(); ++i) {
      m_points[i].seconds = std::max(m_points[i].seconds, m_points[i - 1].seconds);
    }
  }
}

double Curve::tail_seconds_per_byte() const {
  const CurvePoint& last = m_points.back();
  if (m_points.size() >= 2) {
    auto from = m_points.end() - 2;
    while (from != m_points.begin() && from->bytes > last.bytes / 2) {
      --from;
    }
    const double slope = (last.seconds - from->seconds) / (last.bytes - from->bytes);
    if (slope > 0) {
      return slope;
    }
  }
  return last.bytes > 0 ? last.seconds / last.bytes : 0;
}

double Curve::seconds_at(double bytes) const {
  if (bytes <= m_points.front().bytes) {
    return m_points.front().seconds;
  }
  const CurvePoint& last = m_points.back();
  if (bytes >= last.bytes) {
    return last.seconds + (bytes - last.bytes) * tail_seconds_per_byte();
  }
  const auto above = std::ranges::upper_bound(m_points, bytes, {}, &CurvePoint::bytes);
  const auto below = above - 1;
  const double fraction = (bytes - below->bytes) / (above->bytes - below->bytes);
  return std::lerp(below->seconds, above->seconds, fraction);
}

Bandwidth Curve::bandwidth_at(double bytes) const {
  return Bandwidth::bytes_per_s(bytes / seconds_at(bytes));
}

Bandwidth Curve::marginal_bandwidth() const {
  return Bandwidth::bytes_per_s(1 / tail_seconds_per_byte());
}

} // namespace reckon
