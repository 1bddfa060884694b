// SPDX-License-Identifier: Apache-2.0
#include "stats/rank_test.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

namespace reckon {
namespace {

double tie_term_of(std::size_t ties) {
  const auto t = static_cast<double>(ties);
  return t * t * t - t;
}

/// Where the values that equal one lie among ascending ones.
struct Equal {
  std::size_t below = 0, ties = 0;
};

Equal equal_to(double value, const std::vector<double>& ascending) {
  const auto [first, end] = std::equal_range(ascending.begin(), ascending.end(), value);
  return {static_cast<std::size_t>(first - ascending.begin()),
          static_cast<std::size_t>(end - first)};
}

/// Of a's samples and b's together.
struct Ranked {
  std::size_t doubled_sum_a = 0; ///< 2 x rank sum of a, ties by their mid-rank: an integer
  double tie_term = 0;           ///< sum over ties of t^3 - t
};

Ranked rank_together(const RankedSamples& a, const RankedSamples& b) {
  Ranked ranked{.tie_term = b.tie_term};
  const std::vector<double>& own = a.values;
  for (std::size_t first = 0; first < own.size();) {
    const std::size_t ties = equal_to(own[first], own).ties;
    const Equal others = equal_to(own[first], b.values);
    // Of the ranks below + 1 to below + ties, each has the mean.
    ranked.doubled_sum_a += ties * (2 * (first + others.below) + ties + others.ties + 1);
    ranked.tie_term += tie_term_of(ties + others.ties) - tie_term_of(others.ties);
    first += ties;
  }
  return ranked;
}

/// 2 x mid-rank of every sample, a's and b's together: integers.
std::vector<std::size_t> doubled_ranks(const RankedSamples& a, const RankedSamples& b) {
  std::vector<double> all = a.values;
  all.insert(all.end(), b.values.begin(), b.values.end());
  std::ranges::sort(all);
  std::vector<std::size_t> ranks;
  for (const double value : all) {
    const Equal equal = equal_to(value, all);
    ranks.push_back(2 * equal.below + equal.ties + 1);
  }
  return ranks;
}

/// Counts, for every doubled rank sum, the ways to choose `n_a` of the samples. All counts are
/// below C(40, 20) = 1.4e11, so doubles hold them exactly.
double exact_p_value(const std::vector<std::size_t>& doubled_ranks, std::size_t doubled_sum_a,
                     std::size_t n_a) {
  const std::size_t top = std::accumulate(doubled_ranks.begin(), doubled_ranks.end(), 0UL);
  std::vector<std::vector<double>> ways(n_a + 1, std::vector<double>(top + 1, 0.0));
  ways[0][0] = 1;
  for (const std::size_t r : doubled_ranks) {
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
    below += sum <= doubled_sum_a ? w : 0;
    above += sum >= doubled_sum_a ? w : 0;
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

RankedSamples::RankedSamples(std::vector<double> samples) : values(std::move(samples)) {
  if (std::ranges::any_of(values, [](double x) { return std::isnan(x); })) {
    fail(ErrorKind::internal, "rank test: a sample is not a number");
  }
  std::ranges::sort(values);
  for (std::size_t first = 0; first < values.size();) {
    const std::size_t ties = equal_to(values[first], values).ties;
    tie_term += tie_term_of(ties);
    first += ties;
  }
}

std::optional<double> rank_test(std::span<const double> samples, const RankedSamples& b,
                                double alpha) {
  constexpr std::size_t k_most_exact = 40;
  const std::size_t n_a = samples.size(), n_b = b.values.size();
  if (n_a == 0 || n_b == 0 || smallest_p_value(n_a, n_b) > alpha) {
    return std::nullopt;
  }
  const RankedSamples a({samples.begin(), samples.end()});
  const Ranked ranked = rank_together(a, b);
  if (n_a + n_b > k_most_exact) {
    return normal_p_value(ranked, static_cast<double>(n_a), static_cast<double>(n_b));
  }
  if (a.values.back() < b.values.front() || b.values.back() < a.values.front()) {
    return smallest_p_value(n_a, n_b); // nothing is more uneven
  }
  return exact_p_value(doubled_ranks(a, b), ranked.doubled_sum_a, n_a);
}

std::optional<double> rank_test(std::span<const double> a, std::span<const double> b,
                                double alpha) {
  return rank_test(a, RankedSamples({b.begin(), b.end()}), alpha);
}

} // namespace reckon
