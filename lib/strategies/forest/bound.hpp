// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "network/network.hpp"

#include <string>

namespace reckon {

struct NetworkBound {
  double seconds_per_byte = 0;
  std::string by; ///< "what b/gpu0-3 must send over b port nic0 out", ...
};

/// Equation 27 of docs/equations.md: no way to sum on the model's links is faster, with any copies.
/// It takes cuts between the workers of a set and everything else, and the number of messages that
/// the sums of the set need. Sets are each worker, each group, the workers behind each node of the
/// graph, all workers, and with at most 8 workers every set.
[[nodiscard]] NetworkBound network_bound(const Network& model);

} // namespace reckon
