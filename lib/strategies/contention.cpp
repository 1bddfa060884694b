// SPDX-License-Identifier: Apache-2.0
#include "strategies/contention.hpp"

#include "core/error.hpp"
#include "documents/contention.hpp"
#include "stats/summary.hpp"
#include "strategies/model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <vector>

namespace reckon {
namespace {

/// What would measure both factors: cells of one case give only one of them.
constexpr const char* k_remedy =
    "probe with --only contention_compute,contention_communication or more --time";

/// The computations that the profile has measured beside traffic; empty: none.
std::set<std::string> measured_computations(const Profile& profile) {
  std::set<std::string> names;
  for (const Cell& cell : profile.cells) {
    if (is_contention(cell.key) && cell.key.bytes > 0 && !cell.key.operation.empty() &&
        cell.has_value()) {
      names.insert(cell.key.operation);
    }
  }
  return names;
}

/// Threads that communicate where the computation has other cores, and where it has the same: the
/// campaign's cells name both, though some were not measured.
int threads_of(const Profile& profile, std::string_view test, const ContentionRequest& request) {
  std::set<int> threads;
  for (const Cell& cell : profile.cells) {
    if (cell.key.test == test && cell.key.operation == request.operation && cell.key.bytes > 0) {
      threads.insert(cell.key.threads);
    }
  }
  const std::set<std::string> known = measured_computations(profile);
  if (!known.empty() && !known.contains(request.operation)) {
    fail(ErrorKind::input,
         fmt::format("--contention {}: profile '{}' has no such computation beside traffic; it has "
                     "{}",
                     request.operation, profile.name, fmt::join(known, ", ")));
  }
  if (threads.empty() || (request.dedicated && threads.size() == 1)) {
    fail(ErrorKind::input,
         fmt::format("--contention {}: profile '{}' has no {} beside this computation{}; {}",
                     request.operation, profile.name, test,
                     threads.empty() ? "" : " on cores of its own", k_remedy));
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
                     "with {} threads; {}",
                     request.operation, profile.name, test, threads, k_remedy));
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
  p.terms.push_back({k_contention, lost});
}

void share_processors(Prediction& prediction, const Passes& passes, double traffic_s,
                      const CostModel& model) {
  if (!model.one_machine() || !passes.threads) {
    return;
  }
  const auto processors = static_cast<double>(model.cores());
  double computing = 0, moving = 0;
  for (const RankModel& rank : model.ranks()) {
    computing += rank.worker ? static_cast<double>(*passes.threads) : 0;
    moving += rank.lanes;
  }
  const double turns =
      (std::min(computing, processors) + std::min(moving, processors)) / processors;
  if (turns > 1) {
    add_contention(prediction, passes, traffic_s, {turns, turns});
  }
}

} // namespace reckon
