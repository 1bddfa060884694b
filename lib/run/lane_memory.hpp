// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schedule/schedule.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace reckon {

[[nodiscard]] bool has_several_numa_nodes();
/// The NUMA node of a processor, as the operating system numbers both; nullopt: it does not say.
[[nodiscard]] std::optional<int> numa_node_of_cpu(int cpu);

/// A page of memory and the NUMA node that it should be on.
struct PageHome {
  void* page = nullptr; ///< its first byte
  int node = 0;
  bool operator==(const PageHome&) const = default;
};

/// Where the memory of a rank's lanes should be: each page that a lane's ops read or write here, on
/// the node of that lane (`lane_nodes`, one a lane; nullopt: it has none). A page that several
/// lanes name is the first one's. `views`: the rank's buffers in the schedule's order.
[[nodiscard]] std::vector<PageHome> page_homes(const RankProgram& program,
                                               std::span<const std::span<std::byte>> views,
                                               std::span<const std::optional<int>> lane_nodes,
                                               std::size_t page_bytes);

/// What came of moving pages home.
struct PageMove {
  std::size_t pages = 0, elsewhere = 0; ///< asked for; of these not on their node afterwards
  std::string problem;                  ///< why the kernel moves nothing; empty: it was willing
};
/// Moves pages that are elsewhere, as far as the kernel lets us, and asks it where all of them are
/// then. To be called before a transport registers the memory, which keeps it where it is.
[[nodiscard]] PageMove move_home(std::span<const PageHome> homes);

} // namespace reckon
