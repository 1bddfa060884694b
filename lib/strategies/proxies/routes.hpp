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

/// How long one write between two ranks of the model takes, by its size: pair_curve() of a cluster,
/// whose cells `source` gets; else the ports' or the machine's rates and the one latency that the
/// profile knows.
[[nodiscard]] Curve write_curve(const Profile& profile, const CostModel& model, std::size_t from,
                                std::size_t to, std::string* source = nullptr);

/// The same between ranks that are places: cells `gpu_copy` of two in one machine, whose name
/// `source` gets; else what `ways`, the links between the ranks, carry. Throws Error{input} where
/// nothing is known of them.
[[nodiscard]] Curve place_curve(const Profile& profile, const Places& places,
                                const StationNetwork& ways, std::size_t from, std::size_t to,
                                std::string* source = nullptr);

/// How long one write between two ranks takes; the string gets what that was read from, a case of
/// the profile first.
using CurveOf = std::function<Curve(std::size_t from, std::size_t to, std::string* source)>;

/// The routing tables of all workers of a job and what they were read from.
struct RoutingTables {
  std::vector<ProxyRoute> routes;     ///< in the order of the workers' ranks
  std::vector<std::string> sources;   ///< for the plan: cases of the profile
  std::vector<std::string> ambiguous; ///< clients whose curves cross more than once, in words
};

/// COARSE III-E, with the decisions of docs/equations.md where it is silent: proxies within 10 % of
/// the best are as good, and among those a client takes the one that it is paired with (the q
/// devices are dealt to the p clients in equal blocks), else the one that the fewest clients before
/// it have taken; then clients move to others as good, as long as that evens out how many a device
/// has. A proxy of their own for the short tensors must save 1 % of the client's time for
/// all tensors: a difference of latencies that saves less may be noise. `tolerance`: how far below
/// the full bandwidth a size may stay and count as reaching it. Throws Error{input} without a
/// memory device (a rank that serves and has no gradient).
[[nodiscard]] RoutingTables solve_routing_tables(const Job& job, const CurveOf& curve_of,
                                                 double tolerance);

} // namespace reckon
