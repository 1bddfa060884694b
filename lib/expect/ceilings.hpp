// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tested_collective.hpp"
#include "documents/profile.hpp"
#include "expect/usual.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace reckon {

/// A collective's ranks: the same GPUs of each of several equal machines.
struct CollectiveJob {
  std::string machine;           ///< a MachineGroup with a topology, or without GPUs
  std::vector<std::string> gpus; ///< ids in that machine; empty: a rank is a whole machine
  std::size_t machines = 1;
  bool sharp = false; ///< whether the switches between machines sum what passes (SHARP)
  [[nodiscard]] std::size_t ranks() const {
    return machines * (gpus.empty() ? std::size_t{1} : gpus.size());
  }
};

/// What long messages usually reach, bus bytes per second: what the way gives when each link gives
/// the published share of its rate.
struct UsualRange {
  double low = 0, high = 0;
  UsualShare share; ///< of the links that decide `low`
};

/// How a collective's bytes can go, and what the links allow it.
struct WayCeiling {
  /// "ring", "tree", "nvls", "nvls_tree", "sharp", "direct"; "any": no way is faster.
  std::string way;
  /// Bus bandwidth as nccl-tests count it: TestedCollective::bus_factor times bytes over time.
  double bus_bytes_per_second = 0;
  std::vector<std::string> by; ///< the links that are always busy: "NVLink gpu0-7", "port nic0"
  /// Absent for "any", where nothing is published of the links that limit it, and where a
  /// rate between two GPUs of a machine is unknown.
  std::optional<UsualRange> usual{};
};

struct WayCeilings {
  std::vector<WayCeiling>
      ways; ///< those that exist there; empty where no rate that they need is known
  std::vector<std::string> unknown; ///< links of unknown rate, counted as unlimited
};

/// Equations 57 to 60 of docs/equations.md, by collective: what the links between these ranks allow
/// each way that NCCL has, and all ways (equations 26 and 27). Links are as measured
/// (link_bandwidth, port_bandwidth) or described; rates of single pairs do not count. Throws
/// Error{input} as open_machine(), and where `gpus` are not joined; Error{usage} for fewer than two
/// ranks.
[[nodiscard]] std::vector<WayCeilings>
ceilings_of(const Profile& profile, const CollectiveJob& job,
            const std::vector<const TestedCollective*>& collectives);

/// What the busiest machine sends, and receives, in the two binary trees that NCCL lays over
/// machines, half of the bytes on each; in gradients (equation 58).
struct TreeTraffic {
  double out = 0, in = 0;
};
[[nodiscard]] TreeTraffic two_trees(std::size_t machines);

} // namespace reckon
