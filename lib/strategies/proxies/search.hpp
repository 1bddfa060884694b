// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "equations/coarse.hpp"
#include "strategies/prediction.hpp"
#include "strategies/proxies/cutting.hpp"
#include "strategies/proxies/planner.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace reckon {

/// A wider window, a further ring or another boundary must save this fraction of the time.
inline constexpr double k_worth_searching = 0.002;

/// Equations 32 and 33 for this job; both absent without a ring on either side.
struct DualSolutions {
  DualSync inputs;
  std::optional<DualSplit> paper, corrected;
};
[[nodiscard]] DualSolutions solve_dual(const Job& job, const Ways& ways,
                                       const std::vector<ProxyRoute>& routes);

/// One device for all; all through the proxies; and with the workers' ring, which a search for
/// "dense" leaves out.
struct ProxyPlans {
  Plan dense, whole;
  std::optional<Plan> dual;
};

/// Looks for the shard length, window, number of directions and boundary with the least predicted
/// time: by short plays, coarse before fine, each played once; the result is predicted thoroughly.
/// Deterministic.
class ProxySearch {
public:
  ProxySearch(const Job& job, const Ways& ways, const std::vector<ProxyRoute>& routes,
              const PlanOptions& options, const ProxyOptions& proxies, const DualSolutions& dual);

  /// `partition_bytes`: S' of equation 30, the lower limit of the longest shards.
  [[nodiscard]] ProxyPlans search(double partition_bytes, const std::optional<UpdatePlan>& update);
  [[nodiscard]] double shard_bytes() const { return m_shard; }

private:
  struct Found {
    TreeCut cut;
    std::uint64_t window = 1;
    double seconds = 0; ///< by a short play
  };
  [[nodiscard]] double seconds_of(const TreeCut& cut, std::uint64_t window);
  [[nodiscard]] Found best_window(const TreeCut& cut, std::uint64_t first_guess);
  [[nodiscard]] Found best_directions(TreeCut cut, std::uint64_t first_guess);
  [[nodiscard]] std::optional<Found> best_boundary(const Found& whole);
  [[nodiscard]] Plan thorough(const Found& found) const;
  [[nodiscard]] ProxyPlans plans(TreeCut cut);
  void choose_shards(double partition_bytes, TreeCut cut);
  void tell(const char* step, double done) const;

  const Job& m_job;
  const Ways& m_ways;
  const std::vector<ProxyRoute>& m_routes;
  const PlanOptions& m_options;
  const ProxyOptions& m_proxies;
  const DualSolutions& m_dual;
  double m_shard = 0;
  std::map<std::pair<TreeCut, std::uint64_t>, double> m_played; ///< (cut, window): seconds
};

} // namespace reckon
