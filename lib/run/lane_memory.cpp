// SPDX-License-Identifier: Apache-2.0
#include "run/lane_memory.hpp"

#include "core/whole_number.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace reckon {
namespace {

constexpr int k_nobody = -1;

/// Of a folder's entries node0, node1, ... the numbers.
std::vector<int> nodes_in(const std::string& folder) {
  std::vector<int> nodes;
  std::error_code error; // a kernel without NUMA, or no /sys: there is nothing to know
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    const auto number = whole_number<int>(name.starts_with("node") ? name.substr(4) : "");
    if (number) {
      nodes.push_back(*number);
    }
  }
  return nodes;
}

/// Of one buffer: the node of each of its pages.
class Homes {
public:
  Homes(std::span<std::byte> view, std::size_t page_bytes) : m_page_bytes(page_bytes) {
    const auto begin = reinterpret_cast<std::uintptr_t>(view.data());
    m_first = view.data() - begin % page_bytes;
    m_node.assign((begin % page_bytes + view.size() + page_bytes - 1) / page_bytes, k_nobody);
    m_ahead = begin % page_bytes;
  }
  void claim(std::uint64_t offset, std::uint64_t bytes, int node) {
    const std::size_t end = (m_ahead + offset + bytes + m_page_bytes - 1) / m_page_bytes;
    for (std::size_t p = (m_ahead + offset) / m_page_bytes; bytes > 0 && p < end; ++p) {
      m_node.at(p) = m_node.at(p) == k_nobody ? node : m_node.at(p);
    }
  }
  void append_to(std::vector<PageHome>& homes) const {
    for (std::size_t p = 0; p < m_node.size(); ++p) {
      if (m_node[p] != k_nobody) {
        homes.push_back({m_first + p * m_page_bytes, m_node[p]});
      }
    }
  }

private:
  std::size_t m_page_bytes, m_ahead = 0;
  std::byte* m_first = nullptr;
  std::vector<int> m_node;
};

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
  std::vector<Homes> buffers;
  for (const std::span<std::byte> view : views) {
    buffers.emplace_back(view, page_bytes);
  }
  for (std::size_t l = 0; l < program.lanes.size(); ++l) {
    if (!lane_nodes[l]) {
      continue;
    }
    const LaneProgram& lane = program.lanes[l];
    const auto claim = [&](Slice at, std::uint64_t bytes) {
      buffers.at(at.buffer).claim(at.offset, bytes, *lane_nodes[l]);
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
  for (const Homes& buffer : buffers) {
    buffer.append_to(homes);
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
