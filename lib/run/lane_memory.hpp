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
/// The NUMA node of a processor, both numbered by the operating system; nullopt: unknown.
[[nodiscard]] std::optional<int> numa_node_of_cpu(int cpu);

/// A page of memory and its intended NUMA node.
struct PageHome {
  void* page = nullptr; ///< its first byte
  int node = 0;
  bool operator==(const PageHome&) const = default;
};

/// The intended places of the memory of a rank's lanes: each page that a lane's ops read or write
/// here, on the node of that lane (`lane_nodes`, one a lane; nullopt: no node). A page of several
/// lanes is the first one's. `views`: the rank's buffers in the schedule's order.
[[nodiscard]] std::vector<PageHome> page_homes(const RankProgram& program,
                                               std::span<const std::span<std::byte>> views,
                                               std::span<const std::optional<int>> lane_nodes,
                                               std::size_t page_bytes);

/// The result of moving pages to their nodes.
struct PageMove {
  std::size_t pages = 0, elsewhere = 0; ///< requested pages; those not on their node afterwards
  std::string problem;                  ///< why the kernel moves no pages; empty: it does
};
/// Moves pages that are elsewhere, as far as the kernel allows, and asks it for the final places.
/// Call it before a transport registers the memory, which fixes the place.
[[nodiscard]] PageMove move_home(std::span<const PageHome> homes);

} // namespace reckon
