// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/stations.hpp"
#include "documents/plan.hpp"
#include "documents/profile.hpp"
#include "stats/curve.hpp"
#include "strategies/job.hpp"
#include "strategies/ways.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace reckon {

/// Between ranks of the model: pair_curve() of a cluster; else the rates of the ports or the
/// machine and the one latency that the profile knows. Both must outlive the curves.
[[nodiscard]] CurveOf write_curves(const Profile& profile, const CostModel& model);

/// Between ranks that are places: cells `gpu_copy` of two in one machine; else the rates of `ways`,
/// the links between the ranks. The curves throw Error{input} where nothing about two places is
/// known; `profile` and `places` must outlive them.
[[nodiscard]] CurveOf place_curves(const Profile& profile, const Places& places,
                                   StationNetwork ways);

/// The routing tables of all workers of a job and their source.
struct RoutingTables {
  std::vector<ProxyRoute> routes;     ///< in the order of the workers' ranks
  std::vector<std::string> sources;   ///< for the plan: cases of the profile
  std::vector<std::string> ambiguous; ///< clients whose curves cross more than once, in words
};

/// COARSE III-E, with the decisions of docs/equations.md where it is silent. Proxies within 10 % of
/// the best count as equal; among those a client takes the one that it is paired with (the q
/// devices are dealt to the p clients in equal blocks), else the one that the fewest clients before
/// it have taken; then clients move to equal ones as long as that evens out the devices' numbers of
/// clients. A proxy for short tensors must save 1 % of the client's time for all tensors: a smaller
/// saving may be noise. `tolerance`: how far below the full bandwidth a size may stay and still
/// count as reaching it. Throws Error{input} without a memory device (a rank that serves and has no
/// gradient).
[[nodiscard]] RoutingTables solve_routing_tables(const Job& job, const CurveOf& curve_of,
                                                 double tolerance);

} // namespace reckon
