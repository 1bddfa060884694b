// SPDX-License-Identifier: Apache-2.0
#include "strategies/forest/switch_sums.hpp"

#include "core/name_ranges.hpp"
#include "strategies/forest/bound.hpp"
#include "strategies/forest/optimum.hpp"

#include <fmt/format.h>

namespace reckon {

std::optional<SwitchSums> switch_sums(const Network& network, double bytes,
                                      const Prediction& prediction) {
  std::vector<std::string> switches;
  for (std::size_t v = 0; v < network.places.size(); ++v) {
    if (network.places[v].link_switch) {
      switches.push_back(network.name_of(v));
    }
  }
  if (switches.empty()) {
    return std::nullopt;
  }
  const double any = network_bound(at_high_capacities(network)).seconds_per_byte,
               trees = least_of_trees(network), least = bytes * std::max(any, trees);
  constexpr double k_worth_saying = 0.001;
  if (least >= prediction.bound_seconds * (1 - k_worth_saying)) {
    return std::nullopt;
  }
  return SwitchSums{least,
                    fmt::format("with sums in {} (NVLink SHARP, equation {}); no mover of reckon "
                                "can sum there",
                                first_names(name_ranges(switches)), trees >= any ? 26 : 27)};
}

} // namespace reckon
