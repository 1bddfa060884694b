// SPDX-License-Identifier: Apache-2.0
#include "run/rank_memory.hpp"

#include "core/error.hpp"
#include "run/lane_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unistd.h>

namespace reckon {

namespace {

bool is_adopted(Mover& mover, std::span<std::byte> memory) {
  try {
    mover.adopt(memory);
    return true;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unavailable) {
      throw;
    }
    return false;
  }
}

} // namespace

RankMemory::RankMemory(Mover& mover, const RankProgram& program, std::span<std::byte> gradient)
    : m_mover(mover) {
  for (const std::uint64_t bytes : program.buffer_bytes) {
    const bool given = m_buffers.size() == program.gradient_buffer && !gradient.empty() &&
                       is_adopted(mover, gradient);
    m_buffers.push_back(given ? gradient : mover.allocate(bytes));
    m_views.push_back(mover.view(m_buffers.back()));
  }
}

void RankMemory::push() const {
  for (const std::span<std::byte> buffer : m_buffers) {
    m_mover.push(buffer);
  }
}

void RankMemory::pull(std::size_t count) const {
  for (const std::span<std::byte> buffer : std::span(m_buffers).first(count)) {
    m_mover.pull(buffer);
  }
}

std::string RankMemory::settle(const RankProgram& program, std::span<const int> cpus,
                               std::span<const int> wanted) const {
  std::string text;
  const auto places = std::count_if(wanted.begin(), wanted.end(), [](int cpu) { return cpu >= 0; });
  if (places > 0) {
    std::size_t there = 0;
    for (std::size_t l = 0; l < std::min(cpus.size(), wanted.size()); ++l) {
      there += wanted[l] >= 0 && cpus[l] == wanted[l] ? 1U : 0U;
    }
    text = fmt::format("{} of {} lanes on the plan's processors", there, places);
  }
  const bool here = std::equal(m_views.begin(), m_views.end(), m_buffers.begin(),
                               [](auto a, auto b) { return a.data() == b.data(); });
  if (!has_several_numa_nodes() || !here) { // else all memory is alike, or a GPU's
    return text;
  }
  std::vector<std::optional<int>> nodes;
  for (const int cpu : cpus) {
    nodes.push_back(cpu >= 0 ? numa_node_of_cpu(cpu) : std::nullopt);
  }
  const PageMove moved = move_home(
      page_homes(program, m_views, nodes, static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))));
  return text + fmt::format("{}{} of {} pages on their lane's NUMA node{}{}",
                            text.empty() ? "" : ", ", moved.pages - moved.elsewhere, moved.pages,
                            moved.problem.empty() ? "" : ": ", moved.problem);
}

} // namespace reckon
