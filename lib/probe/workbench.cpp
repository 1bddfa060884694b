// SPDX-License-Identifier: Apache-2.0
#include "probe/workbench.hpp"

#include "core/error.hpp"
#include "core/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace reckon {
namespace {

constexpr std::uint64_t k_least_cold = std::uint64_t{256} << 20U;

bool is_below(const Topology& topology, const TopologyObject& object, const std::string& above) {
  for (const TopologyObject* o = &object; o != nullptr; o = topology.find(o->parent)) {
    if (o->id == above) {
      return true;
    }
  }
  return false;
}

} // namespace

Workbench::Workbench(const Topology& topology, std::string machine, const Clock& clock,
                     std::uint64_t seed, std::function<bool()> interrupted)
    : m_machine(std::move(machine)), m_clock(clock), m_seed(seed),
      m_interrupted(std::move(interrupted)), m_timer_step(measure_timer_step(clock)) {
  int last_level = 0;
  for (const TopologyObject* cache : topology.of_kind(ObjectKind::cache)) {
    const int level = cache->cache_level.value_or(0);
    last_level = std::max(last_level, level);
    if (cache->bytes) {
      m_caches[level] = std::max(m_caches[level], *cache->bytes);
    }
  }
  std::vector<const TopologyObject*> nodes = topology.of_kind(ObjectKind::numa_node);
  std::stable_partition(nodes.begin(), nodes.end(),
                        [](const TopologyObject* node) { return !node->cpus.empty(); });
  for (const TopologyObject* node : nodes) {
    if (is_below(topology, *node, m_machine) && node->bytes.value_or(0) > 0) {
      NodePlace place;
      place.id = node->id;
      place.os_node = node->os_index;
      std::size_t caches = 0;
      for (const TopologyObject* cache : topology.of_kind(ObjectKind::cache)) {
        if (cache->cache_level == last_level &&
            (is_below(topology, *cache, node->id) || is_below(topology, *node, cache->id))) {
          ++caches;
        }
      }
      place.caches = std::max<std::size_t>(caches, 1);
      m_nodes.push_back(std::move(place));
    }
  }
  for (const TopologyObject* core : topology.of_kind(ObjectKind::core)) {
    if (!is_below(topology, *core, m_machine) || core->cpus.empty()) {
      continue;
    }
    CorePlace place;
    place.id = core->id;
    place.cpu = core->cpus.front();
    for (std::size_t n = 0; n < m_nodes.size(); ++n) {
      if (is_below(topology, *core, m_nodes[n].id)) {
        place.node = n;
      }
    }
    if (place.node < m_nodes.size()) {
      m_nodes[place.node].cpus.push_back(place.cpu);
    }
    m_cores.push_back(std::move(place));
  }
  if (m_cores.empty() || m_nodes.empty()) {
    fail(
        ErrorKind::unavailable,
        fmt::format("probe: the system lists no {} of machine '{}' that this process may use; in a "
                    "container or chroot, mount /sys and /proc",
                    m_cores.empty() ? "core" : "memory", m_machine));
  }
}

std::vector<int> Workbench::thread_counts() const {
  std::vector<int> counts;
  const int all = static_cast<int>(m_cores.size());
  for (int n = 1; n < all; n *= m_thorough ? 2 : 4) {
    counts.push_back(n);
  }
  counts.push_back(all);
  return counts;
}

std::vector<CorePlace> Workbench::spread(int threads) const {
  std::vector<std::vector<CorePlace>> by_node(m_nodes.size());
  for (const CorePlace& core : m_cores) {
    by_node[core.node].push_back(core);
  }
  std::vector<CorePlace> chosen;
  for (std::size_t i = 0; i < m_cores.size(); ++i) { // the i-th core of each node
    for (const std::vector<CorePlace>& cores : by_node) {
      if (i < cores.size() && chosen.size() < static_cast<std::size_t>(threads)) {
        chosen.push_back(cores[i]);
      }
    }
  }
  return chosen;
}

std::vector<int> Workbench::cpus_near(std::size_t node, std::size_t threads) const {
  std::vector<int> cpus = m_nodes[node].cpus;
  for (std::size_t n = 0; cpus.empty(); ++n) {
    cpus = m_nodes[n].cpus;
  }
  cpus.resize(std::min(cpus.size(), threads));
  return cpus;
}

Team& Workbench::team(const std::vector<int>& cpus) {
  std::unique_ptr<Team>& held = m_teams[cpus];
  if (!held) {
    held = std::make_unique<Team>(cpus);
  }
  return *held;
}

std::uint64_t Workbench::wanted_cold_bytes(std::size_t node) const {
  return std::max(k_least_cold,
                  2 * (m_caches.empty() ? 0 : m_caches.rbegin()->second) * m_nodes[node].caches);
}

std::uint64_t Workbench::cold_bytes(std::size_t node) const {
  return std::min(wanted_cold_bytes(node), m_most_cold);
}

std::span<std::byte> Workbench::memory(std::size_t node, std::size_t which, std::uint64_t bytes) {
  const auto place = std::pair(node, which);
  if (const auto found = m_memory.find(place); found != m_memory.end()) {
    if (found->second.memory.bytes().size() >= bytes) {
      return found->second.memory.bytes();
    }
    m_memory.erase(found);
  }
  if (const std::uint64_t free = available_memory_bytes(); bytes > free / 2) {
    fail(ErrorKind::unavailable, fmt::format("needs {} of memory, and only {} is free",
                                             to_text(Bytes(bytes)), to_text(Bytes(free))));
  }
  Held held;
  // By a thread next to the node, as first touch may be what decides.
  team(cpus_near(node, 1)).run([&](std::size_t) {
    held.memory = NodeMemory(bytes, m_nodes[node].os_node);
  });
  held.placement = held.memory.placement();
  m_huge = std::min(m_huge.value_or(1), held.placement.huge);
  return m_memory.emplace(place, std::move(held)).first->second.memory.bytes();
}

void Workbench::fill_numbers(std::size_t which) {
  for (std::size_t n = 0; n < m_nodes.size(); ++n) {
    const std::span<std::byte> all = memory(n, which, cold_bytes(n));
    team(cpus_near(n, 1)).run([&](std::size_t) { reckon::fill_numbers(all); });
  }
}

void Workbench::remark_placement(Cell& cell, std::size_t node, std::size_t which) const {
  const auto found = m_memory.find({node, which});
  if (found == m_memory.end() || !cell.has_value()) {
    return;
  }
  const Placement& placement = found->second.placement;
  if (placement.pages_elsewhere > 0) {
    remark(cell, CellStatus::noisy, placement.doubt);
  } else {
    remark(cell, placement.doubt);
  }
  if (cell.key.state == "cold" && cold_bytes(node) < wanted_cold_bytes(node)) {
    remark(cell, CellStatus::noisy,
           fmt::format("only {} of memory in turn, where {} would be surely cold",
                       to_text(Bytes(cold_bytes(node))), to_text(Bytes(wanted_cold_bytes(node)))));
  }
  if (placement.huge < 0.9) {
    remark(cell,
           fmt::format("{:.0f} % of the memory is in small pages", 100 * (1 - placement.huge)));
  }
}

std::optional<double> Workbench::huge_fraction() const {
  return m_huge;
}

void Workbench::release_memory() {
  m_memory.clear();
}

Seconds Workbench::left(Seconds since, Seconds budget) const {
  return std::max(budget - (m_clock.now() - since), Seconds(0.005));
}

Samples Workbench::sample(Team& team, Seconds since, Seconds budget, const Operation& operation,
                          SampleLimits limits) const {
  limits.budget = left(since, budget);
  limits.timer_step = m_timer_step;
  return sample_team(team, limits, m_clock, operation, m_interrupted);
}

void fill_numbers(std::span<std::byte> memory) {
  constexpr std::uint32_t k_number = 0x3c003c00; // fp32 and bf16: 0.0078; fp16: 1
  for (std::size_t i = 0; i + 4 <= memory.size(); i += 4) {
    std::memcpy(memory.data() + i, &k_number, 4);
  }
}

} // namespace reckon
