// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "strategies/job.hpp"
#include "strategies/ways.hpp"

#include <cstddef>
#include <optional>
#include <tuple>
#include <vector>

namespace reckon {

/// One way to cut a gradient into shards and to sum those in trees.
struct TreeCut {
  /// The tensors before this one, in gradient order, go through the proxies, the others round the
  /// workers' ring (dual synchronization).
  std::size_t boundary = 0;
  int directions = 1;     ///< 2: half of the bytes of a proxy's shards go round each way
  bool dense = false;     ///< one device for all
  double shard_bytes = 0; ///< least length of a shard
  /// Present: tensors go by priority, for a link that needs this long for all of them.
  std::optional<double> traffic_s;
  std::optional<UpdatePlan> update;

  /// All of it, as a key for comparisons.
  [[nodiscard]] auto key() const {
    return std::tuple(boundary, directions, dense, shard_bytes, traffic_s.value_or(-1),
                      update ? static_cast<int>(update->place) : -1);
  }
  bool operator<(const TreeCut& other) const { return key() < other.key(); }
};

/// The plan's tensors, parts, trees and ranks, without window and prediction. Shards go to the
/// member of their ring that has the least so far.
[[nodiscard]] Plan cut_into_trees(const Job& job, const Ways& ways,
                                  const std::vector<ProxyRoute>& routes, const TreeCut& cut);

} // namespace reckon
