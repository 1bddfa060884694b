// SPDX-License-Identifier: Apache-2.0
#include "stats/rank_test.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace reckon {
namespace {

struct Ranked {
  std::vector<std::size_t>
      doubled_ranks;             ///< 2 x mid-rank of every sample, a's and b's together: integers
  std::size_t doubled_sum_a = 0; ///< 2 x rank sum of a
  double tie_term = 0;           ///< sum over ties of t^3 - t
};

Ranked rank_together(std::span<const double> a, std::span<const double> b) {
  struct Item {
    double value;
    bool from_a;
  };
  std::vector<Item> items;
  items.reserve(a.size() + b.size());
  for (const double x : a) {
    items.push_back({x, true});
  }
  for (const double x : b) {
    items.push_back({x, false});
  }
  if (std::ranges::any_of(items, [](const Item& i) { return std::isnan(i.value); })) {
    fail(ErrorKind::internal, "rank test: a sample is not a number");
  }
  std::ranges::sort(items, {}, &Item::value);
  Ranked ranked;
  for (std::size_t first = 0; first < items.size();) {
    std::size_t last = first + 1;
    while (last < items.size() && items[last].value == items[first].value) {
      ++last;
    }
    const std::size_t doubled = first + 1 + last; // ranks first+1 .. last have this mean, doubled
    const auto ties = static_cast<double>(last - first);
    ranked.tie_term += ties * ties * ties - ties;
    for (; first < last; ++first) {
      ranked.doubled_ranks.push_back(doubled);
      ranked.doubled_sum_a += items[first].from_a ? doubled : 0;
    }
  }
  return ranked;
}

/// Counts, for every doubled rank sum, the ways to choose `n_a` of the samples. All counts are
/// below C(40, 20) = 1.4e11, so doubles hold them exactly.
double exact_p_value(const Ranked& ranked, std::size_t n_a) {
  std::size_t top = 0;
  for (const std::size_t r : ranked.doubled_ranks) {
    top += r;
  }
  std::vector<std::vector<double>> ways(n_a + 1, std::vector<double>(top + 1, 0.0));
  ways[0][0] = 1;
  for (const std::size_t r : ranked.doubled_ranks) {
    for (std::size_t chosen = n_a; chosen >= 1; --chosen) {
      for (std::size_t sum = top; sum >= r; --sum) {
        ways[chosen][sum] += ways[chosen - 1][sum - r];
      }
    }
  }
  double below = 0;
  double above = 0;
  double all = 0;
  for (std::size_t sum = 0; sum <= top; ++sum) {
    const double w = ways[n_a][sum];
    all += w;
    below += sum <= ranked.doubled_sum_a ? w : 0;
    above += sum >= ranked.doubled_sum_a ? w : 0;
  }
  return std::min(1.0, 2 * std::min(below, above) / all);
}

double normal_p_value(const Ranked& ranked, double n_a, double n_b) {
  const double n = n_a + n_b;
  const double u = static_cast<double>(ranked.doubled_sum_a) / 2 - n_a * (n_a + 1) / 2;
  const double variance = n_a * n_b / 12 * ((n + 1) - ranked.tie_term / (n * (n - 1)));
  const double distance = std::max(0.0, std::abs(u - n_a * n_b / 2) - 0.5);
  if (variance <= 0) {
    return 1; // every sample is equal
  }
  return std::min(1.0, std::erfc(distance / std::sqrt(2 * variance)));
}

/// 2 / C(n, k), the two-sided p-value of complete separation.
double smallest_p_value(std::size_t n_a, std::size_t n_b) {
  double ways = 1;
  const std::size_t k = std::min(n_a, n_b);
  for (std::size_t i = 1; i <= k; ++i) {
    ways *= static_cast<double>(n_a + n_b - k + i) / static_cast<double>(i);
  }
  return 2 / ways;
}

} // namespace

std::optional<double> rank_test(std::span<const double> a, std::span<const double> b,
                                double alpha) {
  constexpr std::size_t k_most_exact = 40;
  if (a.empty() || b.empty() || smallest_p_value(a.size(), b.size()) > alpha) {
    return std::nullopt;
  }
  const Ranked ranked = rank_together(a, b);
  if (a.size() + b.size() <= k_most_exact) {
    const auto [a_low, a_high] = std::ranges::minmax(a);
    const auto [b_low, b_high] = std::ranges::minmax(b);
    if (a_high < b_low || b_high < a_low) {
      return smallest_p_value(a.size(), b.size()); // nothing is more uneven
    }
    return exact_p_value(ranked, a.size());
  }
  return normal_p_value(ranked, static_cast<double>(a.size()), static_cast<double>(b.size()));
}

} // namespace reckon
