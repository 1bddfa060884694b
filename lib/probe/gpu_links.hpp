// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "probe/campaign.hpp"
#include "probe/gpu_places.hpp"
#include "topology/topology.hpp"

#include <memory>

namespace reckon {

/// What links carry that the ways of several copies share, each direction: links_campaign() of
/// copies between GPUs and NUMA nodes, each way, and between GPUs with peer access. Copy engines
/// move them, host memory is pinned. Two GPUs are left out where something joins them that the
/// tree does not have: nobody knows which links their copies pass.
[[nodiscard]] Campaign gpu_links_campaign(const std::shared_ptr<GpuPlaces>& places,
                                          const Topology& topology, Seconds most);

} // namespace reckon
