// SPDX-License-Identifier: Apache-2.0
#include "stats/speeds.hpp"

#include "stats/summary.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace reckon {
namespace {

/// Of numbers that are added one after the other.
struct Moments {
  double n = 0, sum = 0, squares = 0;
  void add(double x) {
    n += 1;
    sum += x;
    squares += x * x;
  }
  [[nodiscard]] double mean() const { return sum / n; }
  /// Of their distances from the mean.
  [[nodiscard]] double squared() const { return std::max(0.0, squares - sum * sum / n); }
};

} // namespace

std::optional<TwoSpeeds> two_speeds(std::vector<double> seconds) {
  constexpr std::size_t k_fewest = 30;
  constexpr double k_part = 0.1, k_slower = 1.15, k_apart = 5;
  const std::size_t n = seconds.size();
  if (n < k_fewest) {
    return std::nullopt;
  }
  std::ranges::sort(seconds);
  const auto log_at = [&](std::size_t i) { return std::log(seconds[i] / seconds.front()); };
  std::vector<Moments> slow(n + 1); // from this one on
  for (std::size_t i = n; i-- > 0;) {
    slow[i] = slow[i + 1];
    slow[i].add(log_at(i));
  }
  const auto least = static_cast<std::size_t>(std::ceil(k_part * static_cast<double>(n)));
  Moments fast, best;
  std::size_t split = 0;
  for (std::size_t i = 1; i <= n - least; ++i) {
    fast.add(log_at(i - 1));
    if (i >= least && (split == 0 || fast.squared() + slow[i].squared() <
                                         best.squared() + slow[split].squared())) {
      best = fast;
      split = i;
    }
  }
  const Moments& rest = slow[split];
  const double apart = rest.mean() - best.mean();
  const double varies = std::sqrt((best.squared() / best.n + rest.squared() / rest.n) / 2);
  if (apart < std::log(k_slower) || apart < k_apart * varies) {
    return std::nullopt;
  }
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(split);
  return TwoSpeeds{median({seconds.begin(), middle}), median({middle, seconds.end()}),
                   static_cast<double>(split) / static_cast<double>(n)};
}

} // namespace reckon
