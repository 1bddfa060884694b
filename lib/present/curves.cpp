// SPDX-License-Identifier: Apache-2.0
#include "present/curves.hpp"

#include <algorithm>
#include <cmath>

namespace reckon {

const Fit* fit_for(const Profile& profile, CellKey key) {
  key.bytes = 0;
  const auto it = std::find_if(profile.fits.begin(), profile.fits.end(),
                               [&](const Fit& f) { return f.key == key; });
  return it == profile.fits.end() ? nullptr : &*it;
}

bool shows_time(const Cell& cell) {
  return !is_rate(cell) && !moves_its_bytes(cell.key);
}

std::optional<double> plotted(const Cell& cell) {
  if (!cell.has_value()) {
    return std::nullopt;
  }
  if (shows_time(cell)) {
    return cell.p50 * 1e9;
  }
  const auto rate = rate_of(cell);
  return rate ? std::optional(*rate / 1e9) : std::nullopt;
}

std::vector<CurveRow> curve_rows(const Cells& curve) {
  std::vector<CurveRow> rows;
  for (const Cell* cell : curve) {
    const auto median = plotted(*cell);
    if (!median) {
      continue;
    }
    const auto bytes = static_cast<double>(cell->key.bytes);
    const auto scaled = [&](double v) {
      return shows_time(*cell) ? v * 1e9 : (is_rate(*cell) ? v : bytes / v) / 1e9;
    };
    const double fast = is_rate(*cell) ? cell->max : cell->min;
    rows.emplace_back(bytes, *median, scaled(cell->p99), scaled(fast));
  }
  return rows;
}

std::vector<std::pair<double, double>> fit_rows(const FitSegment& s) {
  constexpr int k_steps = 40;
  std::vector<std::pair<double, double>> rows;
  const double from = std::max(s.from_bytes, 1.0);
  for (int i = 0; i <= k_steps; ++i) {
    const double bytes =
        from * std::pow(std::max(s.to_bytes, from) / from, static_cast<double>(i) / k_steps);
    rows.emplace_back(bytes,
                      bytes / (s.alpha_seconds + bytes / s.bandwidth_bytes_per_second) / 1e9);
  }
  return rows;
}

} // namespace reckon
