// SPDX-License-Identifier: Apache-2.0
#include "strategies/torus/network.hpp"

#include "strategies/endpoint/overlap.hpp"
#include "strategies/torus/places.hpp"

#include <fmt/format.h>

#include <limits>
#include <string_view>
#include <vector>

namespace reckon {
namespace {

std::string_view name_of(CollectiveLimit limit) {
  switch (limit) {
  case CollectiveLimit::memory:
    return "memory";
  case CollectiveLimit::cores:
    return "SMs";
  case CollectiveLimit::bus:
    return "bus";
  case CollectiveLimit::network:
    break;
  }
  return "links";
}

/// Puts what a configuration gives to communication before the links of every node.
void add_endpoints(Between& between, const Endpoint& endpoint,
                   const std::array<std::uint64_t, 3>& shape,
                   const EndpointConfiguration& configuration) {
  const CommunicationShare share = communication_share(
      endpoint, configuration, torus_all_reduce(torus_of(endpoint, shape)), true);
  const CollectiveRate rate = collective_rate(std::numeric_limits<double>::max(), share);
  if (rate.limit == CollectiveLimit::network) {
    return; // ideal: nothing limits it
  }
  PlayNetwork& network = between.network;
  for (std::size_t r = 0; r < network.paths.size(); ++r) {
    const auto station = static_cast<std::uint32_t>(between.names.size());
    network.station_bytes_per_s.push_back(rate.bytes_per_s);
    between.names.push_back(fmt::format("rank {} {}", r, name_of(rate.limit)));
    for (std::vector<std::uint32_t>& path : network.paths[r]) {
      if (!path.empty()) {
        path.insert(path.begin(), station);
      }
    }
  }
}

} // namespace

Between torus_between(const Endpoint& endpoint, const std::array<std::uint64_t, 3>& shape,
                      const EndpointConfiguration* configuration) {
  const TorusPlaces places(shape);
  const std::uint64_t ranks = places.size();
  Between between;
  PlayNetwork& network = between.network;
  // [rank][dimension]: station of the link forward; that of the link backward is the next one, or
  // the same where the ring has two nodes.
  std::vector<std::array<std::uint32_t, TorusPlaces::k_dimensions>> forward(ranks);
  for (std::uint64_t r = 0; r < ranks; ++r) {
    for (std::size_t d = 0; d < TorusPlaces::k_dimensions; ++d) {
      const double rate = endpoint.link_efficiency * endpoint.rings[d].bytes_per_second;
      const std::size_t links = places.nodes(d) > 2 ? 2 : places.nodes(d) - 1;
      forward[r][d] = static_cast<std::uint32_t>(between.names.size());
      for (std::size_t link = 0; link < links; ++link) {
        network.station_bytes_per_s.push_back(rate / static_cast<double>(links));
        between.names.push_back(fmt::format("rank {} -> {} {}", r, places.next(r, d, link == 1),
                                            TorusPlaces::k_names[d]));
      }
    }
  }
  network.paths.assign(ranks, std::vector<std::vector<std::uint32_t>>(ranks));
  network.path_latency_s.assign(ranks, std::vector<double>(ranks, 0));
  for (std::uint64_t from = 0; from < ranks; ++from) {
    for (std::uint64_t to = 0; to < ranks; ++to) {
      std::uint64_t here = from;
      for (std::size_t d = 0; d < TorusPlaces::k_dimensions; ++d) {
        const std::uint64_t n = places.nodes(d);
        const std::uint64_t ahead = places.steps(places.at(from, d), places.at(to, d), d, false);
        const bool backward = 2 * ahead > n;
        for (std::uint64_t hops = backward ? n - ahead : ahead; hops > 0; --hops) {
          network.paths[from][to].push_back(forward[here][d] + (backward ? 1 : 0));
          network.path_latency_s[from][to] += endpoint.rings[d].latency_seconds;
          here = places.next(here, d, backward);
        }
      }
    }
  }
  if (configuration != nullptr) {
    add_endpoints(between, endpoint, shape, *configuration);
  }
  return between;
}

} // namespace reckon
