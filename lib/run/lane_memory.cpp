// SPDX-License-Identifier: Apache-2.0
#include "run/lane_memory.hpp"

#include "core/file.hpp"
#include "core/whole_number.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace reckon {
namespace {

constexpr int k_nobody = -1;

/// Of a folder's entries node0, node1, ... the numbers.
std::vector<int> nodes_in(const std::string& folder) {
  std::vector<int> nodes;
  for (const std::string& name : names_in(folder)) { // none: a kernel without NUMA, or no /sys
    const auto number = whole_number<int>(name.starts_with("node") ? name.substr(4) : "");
    if (number) {
      nodes.push_back(*number);
    }
  }
  return nodes;
}

} // namespace

bool has_several_numa_nodes() {
  return nodes_in("/sys/devices/system/node").size() > 1;
}

std::optional<int> numa_node_of_cpu(int cpu) {
  const std::vector<int> nodes = nodes_in(fmt::format("/sys/devices/system/cpu/cpu{}", cpu));
  return nodes.empty() ? std::nullopt : std::optional(nodes.front());
}

std::vector<PageHome> page_homes(const RankProgram& program,
                                 std::span<const std::span<std::byte>> views,
                                 std::span<const std::optional<int>> lane_nodes,
                                 std::size_t page_bytes) {
  const auto place_in_page = [&](std::size_t buffer) {
    return reinterpret_cast<std::uintptr_t>(views[buffer].data()) % page_bytes;
  };
  std::vector<std::vector<int>> node_of; // [buffer][page]
  for (std::size_t b = 0; b < views.size(); ++b) {
    node_of.emplace_back((place_in_page(b) + views[b].size() + page_bytes - 1) / page_bytes,
                         k_nobody);
  }
  for (std::size_t l = 0; l < program.lanes.size(); ++l) {
    if (!lane_nodes[l]) {
      continue;
    }
    const LaneProgram& lane = program.lanes[l];
    const auto claim = [&](Slice at, std::uint64_t bytes) {
      if (at.buffer >= views.size()) {
        return; // a peer's
      }
      const std::uint64_t begin = place_in_page(at.buffer) + at.offset;
      for (std::size_t p = begin / page_bytes; bytes > 0 && p * page_bytes < begin + bytes; ++p) {
        int& node = node_of.at(at.buffer).at(p);
        node = node == k_nobody ? *lane_nodes[l] : node;
      }
    };
    for (const Op& op : lane.ops()) {
      if (op.kind == OpKind::delay || op.kind == OpKind::await) {
        continue; // what arrives is read by another op
      }
      if (op.kind != OpKind::write) { // a write's is at the peer
        claim(op.destination, op.bytes);
      }
      if (op.source_count == 0) {
        claim(op.source, op.bytes);
      }
      for (const Slice source : lane.sources(op)) {
        claim(source, op.bytes);
      }
    }
  }
  std::vector<PageHome> homes;
  for (std::size_t b = 0; b < views.size(); ++b) {
    for (std::size_t p = 0; p < node_of[b].size(); ++p) {
      if (node_of[b][p] != k_nobody) {
        homes.push_back({views[b].data() - place_in_page(b) + p * page_bytes, node_of[b][p]});
      }
    }
  }
  return homes;
}

PageMove move_home(std::span<const PageHome> homes) {
  PageMove moved;
  moved.pages = homes.size();
  std::vector<void*> pages;
  std::vector<int> nodes;
  for (const PageHome& home : homes) {
    pages.push_back(home.page);
    nodes.push_back(home.node);
  }
  // Not mbind(): a mapping of many pieces with policies of their own would be as many mappings, of
  // which a process may have 65530.
  std::vector<int> status(homes.size(), k_nobody);
  const auto call = [&](const int* to) {
    return syscall(SYS_move_pages, 0, pages.size(), pages.data(), to, status.data(), MPOL_MF_MOVE);
  };
  if (homes.empty()) {
    return moved;
  }
  if (call(nodes.data()) < 0) {
    moved.problem = fmt::format("move_pages: {}", std::strerror(errno));
  }
  if (call(nullptr) < 0) {
    moved.problem = fmt::format("move_pages: {}", std::strerror(errno));
    std::fill(status.begin(), status.end(), k_nobody);
  }
  for (std::size_t p = 0; p < homes.size(); ++p) {
    moved.elsewhere += status[p] != nodes[p] ? 1U : 0U;
  }
  return moved;
}

} // namespace reckon
