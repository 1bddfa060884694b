// SPDX-License-Identifier: Apache-2.0
#include "equations/port_placement.hpp"

#include "core/error.hpp"
#include "equations/placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

namespace reckon {
namespace {

std::size_t nodes_of(const ServerLayout& layout) {
  std::size_t nodes = 0;
  for (const ServerLayout::Interface& interface : layout.interfaces) {
    nodes = std::max(nodes, interface.node + 1);
  }
  for (const std::size_t node : layout.core_node) {
    nodes = std::max(nodes, node + 1);
  }
  return nodes;
}

/// [node]
std::vector<std::vector<std::size_t>> cores_of(const ServerLayout& layout) {
  std::vector<std::vector<std::size_t>> cores(nodes_of(layout));
  for (std::size_t c = 0; c < layout.core_node.size(); ++c) {
    cores[layout.core_node[c]].push_back(c);
  }
  return cores;
}

} // namespace

ServerLayout equal_layout(std::size_t interfaces, std::size_t cores, std::size_t nodes) {
  if (nodes == 0 || interfaces < nodes || cores < nodes) {
    fail(ErrorKind::usage,
         fmt::format(
             "placement: {} interfaces and {} cores on {} nodes; each node needs one of both",
             interfaces, cores, nodes));
  }
  ServerLayout layout;
  for (std::size_t i = 0; i < interfaces; ++i) {
    layout.interfaces.push_back({1, i * nodes / interfaces});
  }
  for (std::size_t c = 0; c < cores; ++c) {
    layout.core_node.push_back(c * nodes / cores);
  }
  return layout;
}

PortPlacement place_on_ports(const std::vector<std::uint64_t>& chunks, const ServerLayout& layout) {
  std::vector<double> speeds;
  for (const ServerLayout::Interface& interface : layout.interfaces) {
    speeds.push_back(interface.bytes_per_s);
  }
  const Balance on_interfaces = balance_by_speed(chunks, speeds);
  const std::vector<std::vector<std::size_t>> cores_of_node = cores_of(layout);
  const std::size_t nodes = cores_of_node.size();
  std::vector<bool> used(nodes, false);
  for (const ServerLayout::Interface& interface : layout.interfaces) {
    used[interface.node] = true;
  }
  PortPlacement out;
  out.lane_of.resize(chunks.size());
  out.interface_bytes = on_interfaces.loads;
  out.node_bytes.assign(nodes, 0);
  out.core_bytes.assign(layout.core_node.size(), 0);

  std::vector<std::vector<std::size_t>> of_node(nodes); // chunks, in the order given
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    of_node[layout.interfaces[on_interfaces.bin_of[i]].node].push_back(i);
  }
  std::vector<std::size_t> core_of(chunks.size());
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> queues; // interface, core
  for (std::size_t node = 0; node < nodes; ++node) {
    if (!used[node]) {
      continue;
    }
    const std::vector<std::size_t>& cores = cores_of_node[node];
    if (cores.empty()) {
      fail(ErrorKind::usage, fmt::format("placement: node {} has interfaces and no core", node));
    }
    std::vector<std::uint64_t> here;
    for (const std::size_t i : of_node[node]) {
      here.push_back(chunks[i]);
    }
    const Balance on_cores = balance_longest_first(here, cores.size());
    for (std::size_t h = 0; h < here.size(); ++h) {
      const std::size_t i = of_node[node][h];
      core_of[i] = cores[on_cores.bin_of[h]];
      queues[{on_interfaces.bin_of[i], core_of[i]}] = 0;
    }
    for (std::size_t c = 0; c < cores.size(); ++c) {
      out.core_bytes[cores[c]] = on_cores.loads[c];
      out.node_bytes[node] += on_cores.loads[c];
    }
  }
  for (auto& [key, number] : queues) {
    number = out.lanes.size();
    out.lanes.push_back({key.first, layout.interfaces[key.first].node, key.second, 0, 0});
  }
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    out.lane_of[i] = queues.at({on_interfaces.bin_of[i], core_of[i]});
    PortLane& lane = out.lanes[out.lane_of[i]];
    lane.chunks += 1;
    lane.bytes += chunks[i];
  }
  return out;
}

PlacementEvenness evenness_of(const PortPlacement& placement, const ServerLayout& layout,
                              const std::vector<std::uint64_t>& chunks) {
  const std::uint64_t total = std::accumulate(chunks.begin(), chunks.end(), std::uint64_t{0});
  if (total == 0) {
    return {};
  }
  const std::uint64_t longest = *std::max_element(chunks.begin(), chunks.end());
  const auto bytes = static_cast<double>(total);
  double speed = 0;
  std::vector<double> node_speed(placement.node_bytes.size(), 0);
  for (const ServerLayout::Interface& interface : layout.interfaces) {
    speed += interface.bytes_per_s;
    node_speed[interface.node] += interface.bytes_per_s;
  }
  PlacementEvenness out;
  out.interfaces = {0, fullest_at_most(total, longest, layout.interfaces.size()) *
                           static_cast<double>(layout.interfaces.size()) / bytes};
  out.nodes = {0, out.interfaces.at_most};
  out.cores = {0, 0};
  const auto raise = [](double& to, double value) { to = std::max(to, value); };
  for (std::size_t i = 0; i < layout.interfaces.size(); ++i) {
    raise(out.interfaces.over_mean, static_cast<double>(placement.interface_bytes[i]) * speed /
                                        layout.interfaces[i].bytes_per_s / bytes);
  }
  const std::vector<std::vector<std::size_t>> cores = cores_of(layout);
  const double of_core = bytes / static_cast<double>(layout.core_node.size());
  for (std::size_t node = 0; node < placement.node_bytes.size(); ++node) {
    if (node_speed[node] == 0) {
      continue;
    }
    raise(out.nodes.over_mean,
          static_cast<double>(placement.node_bytes[node]) * speed / node_speed[node] / bytes);
    raise(out.cores.at_most,
          fullest_at_most(placement.node_bytes[node], longest, cores[node].size()) / of_core);
  }
  for (const std::uint64_t core : placement.core_bytes) {
    raise(out.cores.over_mean, static_cast<double>(core) / of_core);
  }
  return out;
}

double exchange_s(const PortPlacement& placement, const ChunkCosts& costs, double chunk_bytes) {
  const auto workers = static_cast<double>(costs.workers);
  std::vector<double> interface_s(placement.interface_bytes.size(), 0);
  for (const PortLane& lane : placement.lanes) {
    interface_s[lane.interface] +=
        workers * (static_cast<double>(lane.chunks) * costs.write_s +
                   static_cast<double>(lane.bytes) / costs.interface_bytes_per_s);
  }
  double longest = 0;
  for (const double seconds : interface_s) {
    longest = std::max(longest, seconds);
  }
  for (const std::uint64_t bytes : placement.core_bytes) {
    longest = std::max(longest, workers * static_cast<double>(bytes) / costs.sum_bytes_per_s);
  }
  const double fill = workers * (costs.write_s + chunk_bytes / costs.interface_bytes_per_s +
                                 chunk_bytes / costs.sum_bytes_per_s);
  return longest + fill;
}

ChunkChoice choose_chunk(std::span<const std::uint64_t> keys, const ServerLayout& layout,
                         const ChunkCosts& costs) {
  constexpr std::uint64_t k_least = 1024, k_most = 16U << 20U;
  constexpr double k_as_good = 0.002;
  const double total = std::accumulate(keys.begin(), keys.end(), 0.0);
  const double longest_key =
      keys.empty() ? 0 : static_cast<double>(*std::max_element(keys.begin(), keys.end()));
  ChunkChoice choice{k_most, {}};
  double shortest_s = std::numeric_limits<double>::infinity();
  for (std::uint64_t bytes = k_least; bytes <= k_most; bytes *= 2) {
    const auto size = static_cast<double>(bytes);
    const double most_pieces = total / size + static_cast<double>(keys.size());
    if (bytes < k_most && most_pieces > static_cast<double>(k_most_pieces)) {
      continue;
    }
    const auto pieces = cut_into_pieces(keys, bytes);
    if (!pieces) {
      return choice;
    }
    const double seconds =
        exchange_s(place_on_ports(*pieces, layout), costs, std::min(size, longest_key));
    choice.tried.push_back({bytes, seconds});
    shortest_s = std::min(shortest_s, seconds);
    if (longest_key < size) { // longer chunks are the same
      break;
    }
  }
  for (const TriedChunk& tried : choice.tried) {
    if (tried.seconds <= (1 + k_as_good) * shortest_s) {
      choice.bytes = tried.bytes;
    }
  }
  return choice;
}

} // namespace reckon
