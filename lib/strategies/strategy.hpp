// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "strategies/model.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace reckon {

/// A scheme's demands on the ranks: who sums how much, and the cost by the papers' equation.
struct Solution {
  std::string strategy;
  std::string reason;              ///< why the scheme does not apply; empty: it applies
  std::vector<double> share_bytes; ///< by rank: solved share of the summation
  double star_seconds = 0;         ///< the equation's time on the ports (no meaning on one machine)
  std::string bound_by;            ///< the port that binds
  std::string relief;
  std::vector<Quantity> quantities;
  /// Ports differ, but the scheme's shares do not follow them: parts follow the shares. Otherwise
  /// parts go to the rank that is done first.
  bool fixed_shares = false;
  bool ring = false; ///< sums travel round the ring of workers instead of to a server
  std::vector<std::size_t> ring_order; ///< for a ring: the workers in the order of sending
  std::size_t groups = 0;              ///< of workers, for trees of two levels; 0: of one level
  /// Whether a part's sum passes other ranks than the one that owns it.
  [[nodiscard]] bool hands_on() const { return ring || groups > 0; }
};

/// The strategy whose sums are made in groups of workers first, then over the groups.
inline constexpr const char* k_two_level_split = "two_level_split";

/// The strategies that give each rank a share of the gradient to sum: "ring", "ps_noncolocated",
/// "ps_colocated", "byteps_split", and "two_level_split".
[[nodiscard]] const std::vector<std::string>& strategy_names();

/// Solves one scheme's equations for the model's ranks and a gradient of `model_bytes`.
[[nodiscard]] Solution solve(const std::string& strategy, const CostModel& model,
                             double model_bytes);

/// Bytes that the ranks send, receive and add up in one iteration when rank r sums loads[r] bytes.
struct Load {
  std::vector<double> egress_bytes, ingress_bytes;
  /// The bytes that decide a rank's port time: the larger of both directions.
  [[nodiscard]] double port_bytes(std::size_t rank) const {
    return std::max(egress_bytes[rank], ingress_bytes[rank]);
  }
  std::vector<double> summed_bytes; ///< operand bytes: (operands - 1) times the bytes of the sum
  std::size_t operands = 2;         ///< of one summation
  /// Parts that pass a port, and sums that are made one after another, from a part's first write to
  /// its last; of servers' schemes.
  double parts_of_fill = 0, levels = 1;
  double port_seconds = 0; ///< until the busiest port is done; with `alike` set by load_of()
  /// Ranks that have equal ports, send, receive and sum as much, and play one role: of each such
  /// group the first rank, and how many they are.
  struct AlikeRanks {
    std::size_t first = 0;
    double count = 1;
  };
  std::vector<AlikeRanks> alike;
  /// The bytes that leave each rack of the model (as many come in), and when the slowest uplink is
  /// done.
  std::map<std::string, double> uplink_bytes;
  double uplink_seconds = 0;
  std::string slowest_uplink;
};
[[nodiscard]] Load load_of(const Solution& solution, const CostModel& model,
                           std::span<const double> loads);
/// Time until the busiest port is done, of any load.
[[nodiscard]] double port_seconds(const Load& load, const CostModel& model);

} // namespace reckon
