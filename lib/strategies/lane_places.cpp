// SPDX-License-Identifier: Apache-2.0
#include "strategies/lane_places.hpp"

#include "topology/numa.hpp"

#include <algorithm>
#include <map>

namespace reckon {
namespace {

/// The processors of a NUMA node: one of each core, then the second of each, and so on.
std::vector<int> in_turn(const Topology& topology, const TopologyObject& node) {
  std::map<int, std::size_t> turn; // of a processor: its number in its core
  for (const TopologyObject* core : topology.of_kind(ObjectKind::core)) {
    if (numa_node_of(topology, core->id) == &node) {
      for (std::size_t i = 0; i < core->cpus.size(); ++i) {
        turn[core->cpus[i]] = i;
      }
    }
  }
  std::vector<int> cpus = node.cpus;
  std::stable_sort(cpus.begin(), cpus.end(), [&](int a, int b) { return turn[a] < turn[b]; });
  return cpus;
}

} // namespace

std::string port_name(const Topology& topology, const std::string& port) {
  const TopologyObject* const object = topology.find(port);
  return object != nullptr && !object->name.empty() ? object->name : port;
}

std::vector<LanePlace> lane_places(const Topology& topology, const std::vector<std::string>& ports,
                                   std::size_t lanes) {
  struct Taken {
    std::vector<int> cpus;
    std::size_t lanes = 0;
  };
  std::map<const TopologyObject*, Taken> nodes;
  std::vector<LanePlace> places;
  for (std::size_t lane = 0; lane < lanes && !ports.empty(); ++lane) {
    const std::string& id = ports[lane % ports.size()];
    LanePlace place{port_name(topology, id), std::nullopt, std::nullopt};
    if (const TopologyObject* const node = numa_node_of(topology, id)) {
      const auto [at, first] = nodes.try_emplace(node);
      if (first) {
        at->second.cpus = in_turn(topology, *node);
      }
      place.numa_node = node->os_index;
      if (const std::vector<int>& cpus = at->second.cpus; !cpus.empty()) {
        place.cpu = cpus[at->second.lanes++ % cpus.size()];
      }
    }
    places.push_back(std::move(place));
  }
  return places;
}

} // namespace reckon
