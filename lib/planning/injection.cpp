// SPDX-License-Identifier: Apache-2.0
#include "planning/injection.hpp"

#include "core/error.hpp"
#include "core/log.hpp"
#include "strategies/plan_network.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace reckon {
namespace {

/// A write between two endpoints that the model knows no way between would take no time at all.
void check_ways(const Schedule& schedule, const Plan& plan, const StationNetwork& network,
                const Profile& profile) {
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    for (const LaneProgram& lane : schedule.ranks[rank].lanes) {
      for (const Op& op : lane.ops()) {
        if (op.kind == OpKind::write && network.paths[rank][op.peer].empty()) {
          fail(ErrorKind::input,
               fmt::format("profile '{}' knows no link or memory with a rate between {} and {}, "
                           "which the plan writes between; give a profile of a machine that has "
                           "these, or the one that the plan was made from",
                           profile.name, plan.ranks[rank].place_name(),
                           plan.ranks[op.peer].place_name()));
        }
      }
    }
  }
}

} // namespace

Injection injection_of(const Plan& plan, const Schedule& schedule, const std::string& path) {
  const Profile profile = read_profile(path);
  StationNetwork network = network_of(plan, profile).network;
  if (has_places(plan)) {
    check_ways(schedule, plan, network, profile);
    const Places places = places_of(plan, profile);
    if (!places.network->unknown.empty()) {
      log(LogLevel::warn, "--inject: no rate is known of {}; they delay nothing",
          fmt::join(places.network->unknown, ", "));
    }
  }
  return {std::move(network), link_to(path, canonical_text(profile))};
}

} // namespace reckon
