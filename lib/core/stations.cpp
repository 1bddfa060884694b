// SPDX-License-Identifier: Apache-2.0
#include "core/stations.hpp"

#include "core/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace reckon {

BusyCurve::BusyCurve(std::vector<std::pair<double, double>> points) : m_points(std::move(points)) {
  double bytes_before = 0, seconds_before = 0;
  for (auto& [bytes, seconds] : m_points) {
    if (!(bytes > bytes_before) || !std::isfinite(bytes) || !(seconds >= 0) ||
        !std::isfinite(seconds)) {
      fail(ErrorKind::input,
           fmt::format("a curve has {} s at {} bytes after {} bytes; sizes must grow from above 0 "
                       "and times be finite",
                       seconds, bytes, bytes_before));
    }
    seconds = std::max(seconds, seconds_before);
    bytes_before = bytes;
    seconds_before = seconds;
  }
}

double BusyCurve::seconds(double bytes) const noexcept {
  if (m_points.empty() || !(bytes > 0)) {
    return 0;
  }
  const auto after = std::lower_bound(m_points.begin(), m_points.end(), bytes,
                                      [](const auto& p, double b) { return p.first < b; });
  if (after == m_points.end()) {
    return m_points.back().second + (bytes - m_points.back().first) / bytes_per_s();
  }
  const std::pair<double, double> before =
      after == m_points.begin() ? std::pair(0.0, 0.0) : *(after - 1);
  return before.second +
         (after->second - before.second) * (bytes - before.first) / (after->first - before.first);
}

double BusyCurve::bytes_per_s() const noexcept {
  if (m_points.empty()) {
    return std::numeric_limits<double>::infinity();
  }
  const std::size_t n = m_points.size();
  const std::pair<double, double> before = n > 1 ? m_points[n - 2] : std::pair(0.0, 0.0);
  const double seconds = m_points.back().second - before.second;
  return seconds > 0 ? (m_points.back().first - before.first) / seconds
                     : std::numeric_limits<double>::infinity();
}

double StationNetwork::rate_of(std::size_t station) const noexcept {
  const bool own = station < station_busy.size() && !station_busy[station].empty();
  return own ? station_busy[station].bytes_per_s() : station_bytes_per_s[station];
}

double StationNetwork::busy_seconds(std::uint32_t station, double piece_bytes,
                                    double write_bytes) const noexcept {
  if (station < station_busy.size() && !station_busy[station].empty()) {
    return write_bytes > 0
               ? station_busy[station].seconds(write_bytes) * (piece_bytes / write_bytes)
               : 0;
  }
  return piece_bytes / station_bytes_per_s[station];
}

double StationNetwork::write_seconds(std::size_t from, std::size_t to,
                                     double bytes) const noexcept {
  double slowest = 0;
  for (const std::uint32_t station : paths[from][to]) {
    slowest = std::max(slowest, busy_seconds(station, bytes, bytes));
  }
  return latency_of(from, to) + slowest;
}

} // namespace reckon
