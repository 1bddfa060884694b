// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "probe/campaign.hpp"
#include "probe/shared_links.hpp"
#include "probe/workbench.hpp"

#include <string>
#include <vector>

namespace reckon {

/// Bytes per second of one direction of a link inside a machine that several ways pass: from and to
/// are neighbouring objects.
inline constexpr const char* k_link_bandwidth = "link_bandwidth";

/// What a finding says, in a cell of that case: the capacity of a link that limits, noisy what one
/// carried that may carry more, and no value where it is unclear.
void fill_link_cell(Cell& cell, const LinkFinding& finding);

/// Copies between NUMA nodes, alone and at once, over every link that the tree says several of them
/// pass (find_shared_links). The cores of the source copy; as many for each pair, alone or not.
/// Nothing to do with fewer than three nodes. All of it is measured when the campaign begins,
/// within about `most`, or it fails with what it would take.
[[nodiscard]] Campaign numa_links_campaign(Workbench& bench, const Topology& topology,
                                           Seconds most);

} // namespace reckon
