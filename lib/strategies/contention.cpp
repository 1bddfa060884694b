// SPDX-License-Identifier: Apache-2.0
#include "strategies/contention.hpp"

#include "core/error.hpp"
#include "documents/contention.hpp"
#include "stats/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

namespace reckon {
namespace {

/// Threads that communicate where the computation has other cores, and where it has the same: the
/// campaign's cells name both, though some were not measured.
int threads_of(const Profile& profile, std::string_view test, const ContentionRequest& request) {
  std::set<int> threads;
  for (const Cell& cell : profile.cells) {
    if (cell.key.test == test && cell.key.operation == request.operation && cell.key.bytes > 0) {
      threads.insert(cell.key.threads);
    }
  }
  if (threads.empty() || (request.dedicated && threads.size() == 1)) {
    fail(
        ErrorKind::input,
        fmt::format("--contention {}: profile '{}' has no {} beside this computation{}; probe with "
                    "--only {} or more --budget",
                    request.operation, profile.name, test,
                    threads.empty() ? "" : " on cores of its own", test));
  }
  return request.dedicated ? *threads.begin() : *threads.rbegin();
}

double median_factor(const Profile& profile, std::string_view test,
                     const ContentionRequest& request) {
  const int threads = threads_of(profile, test, request);
  std::vector<double> factors;
  for (const Contention& c : contention_of(profile, test)) {
    if (c.together->key.operation == request.operation && c.together->key.threads == threads) {
      factors.push_back(c.factor);
    }
  }
  if (factors.empty()) {
    fail(ErrorKind::input,
         fmt::format("--contention {}: in profile '{}' no {} beside this computation was measured "
                     "with {} threads; probe with --only {} or more --budget",
                     request.operation, profile.name, test, threads, test));
  }
  std::sort(factors.begin(), factors.end());
  return std::max(1.0, percentile(factors, 0.5));
}

} // namespace

ContentionFactors contention_factors(const Profile& profile, const ContentionRequest& request) {
  return {median_factor(profile, k_contention_compute, request),
          median_factor(profile, k_contention_communication, request)};
}

void add_contention(Prediction& p, const Passes& passes, double traffic_s,
                    const ContentionFactors& factors) {
  const double computed = passes.total_seconds();
  const double exposed = std::max(0.0, p.mid_seconds - computed);
  const double beside = std::max(0.0, computed - passes.backward_seconds.front());
  const double hidden = std::clamp(traffic_s - exposed, 0.0, beside);
  const double lost = contended_seconds(beside, hidden, factors) - std::max(beside, hidden);
  p.lo_seconds += lost;
  p.mid_seconds += lost;
  p.hi_seconds += lost;
  p.terms.push_back({"contention", lost});
}

double contention_seconds(const Prediction& prediction) {
  const auto it = std::find_if(prediction.terms.begin(), prediction.terms.end(),
                               [](const Term& t) { return t.name == "contention"; });
  return it == prediction.terms.end() ? 0 : it->seconds;
}

} // namespace reckon
