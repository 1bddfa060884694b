// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/clock.hpp"
#include "probe/pin.hpp"
#include "probe/sampling.hpp"
#include "probe/team.hpp"
#include "topology/topology.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace reckon {

/// A NUMA node to measure: some memory, and one processor of each core next to it.
struct NodePlace {
  std::string id;
  std::optional<int> os_node; ///< the operating system's number
  std::vector<int> cpus;      ///< one for each core; empty when all cores are elsewhere
  std::size_t caches = 1;     ///< last-level caches next to it
};

/// A core, by the first of its processors.
struct CorePlace {
  std::string id;
  int cpu = 0;
  std::size_t node = 0; ///< index into Workbench::nodes()
};

/// The common part of the campaigns of one machine: its places, pinned threads, memory on each
/// node, and results for later campaigns. Thread-compatible.
class Workbench {
public:
  /// `machine` is the id of a machine in `topology`. Throws Error{unavailable} when it has no core
  /// that this process may use.
  Workbench(const Topology& topology, std::string machine, const Clock& clock, std::uint64_t seed,
            std::function<bool()> interrupted);
  /// More cells than the usual ones: whole curves, all numbers of threads.
  void measure_thoroughly() { m_thorough = true; }
  [[nodiscard]] bool thorough() const { return m_thorough; }
  /// Limits cold_bytes() to this; cells with less should say so.
  void limit_memory(std::uint64_t bytes) { m_most_cold = bytes; }

  [[nodiscard]] const std::string& machine() const { return m_machine; }
  /// Nodes with cores first; the first of all is the home of measurements on one node only.
  [[nodiscard]] const std::vector<NodePlace>& nodes() const { return m_nodes; }
  [[nodiscard]] const std::vector<CorePlace>& cores() const { return m_cores; }
  [[nodiscard]] std::uint64_t seed() const { return m_seed; }
  [[nodiscard]] const Clock& clock() const { return m_clock; }
  [[nodiscard]] const std::function<bool()>& interrupted() const { return m_interrupted; }
  [[nodiscard]] Seconds timer_step() const { return m_timer_step; }

  /// Numbers of threads to measure: 1, 4, 16, ... and all cores; thoroughly 1, 2, 4, ...
  [[nodiscard]] std::vector<int> thread_counts() const;
  /// `threads` cores, taken from the nodes in turn, so that few threads already use all memories.
  [[nodiscard]] std::vector<CorePlace> spread(int threads) const;
  /// Up to `threads` processors next to `node`; those of the first node with cores if it has no
  /// cores.
  [[nodiscard]] std::vector<int> cpus_near(std::size_t node, std::size_t threads) const;

  /// Threads on these processors; kept for the next user.
  [[nodiscard]] Team& team(const std::vector<int>& cpus);

  /// Capacities of the data caches next to a core, by level, from the machine's description.
  [[nodiscard]] const std::map<int, std::uint64_t>& caches() const { return m_caches; }
  /// Bytes that have to be touched in turn on a node so that every line has left the caches: twice
  /// its last-level caches, at least 256 MiB; less under limit_memory().
  [[nodiscard]] std::uint64_t cold_bytes(std::size_t node) const;

  /// Memory on a node, `which` 0 or 1, at least `bytes` long; the same as long as it is long
  /// enough. Throws Error{unavailable} when it would take more than half of the free memory.
  [[nodiscard]] std::span<std::byte> memory(std::size_t node, std::size_t which,
                                            std::uint64_t bytes);
  /// fill_numbers() in memory `which` of all nodes.
  void fill_numbers(std::size_t which);
  /// A cell's remark on the memory that it used: wrong node, small pages, too little of it to be
  /// cold.
  void remark_placement(Cell& cell, std::size_t node, std::size_t which) const;
  /// Least fraction of any memory so far that is in huge pages; nullopt before the first.
  [[nodiscard]] std::optional<double> huge_fraction() const;
  void release_memory();

  /// The rest of `budget` since `since`; some milliseconds at least.
  [[nodiscard]] Seconds left(Seconds since, Seconds budget) const;
  /// sample_team with the usual limits; `budget` is for all time since `since`.
  [[nodiscard]] Samples sample(Team& team, Seconds since, Seconds budget,
                               const Operation& operation, SampleLimits limits = {}) const;

private:
  struct Held {
    NodeMemory memory;
    Placement placement;
  };
  std::string m_machine;
  std::vector<NodePlace> m_nodes;
  std::vector<CorePlace> m_cores;
  const Clock& m_clock;
  std::uint64_t m_seed;
  std::function<bool()> m_interrupted;
  Seconds m_timer_step;
  [[nodiscard]] std::uint64_t wanted_cold_bytes(std::size_t node) const;

  std::map<int, std::uint64_t> m_caches;
  std::uint64_t m_most_cold = UINT64_MAX;
  bool m_thorough = false;
  std::map<std::vector<int>, std::unique_ptr<Team>> m_teams;
  std::map<std::pair<std::size_t, std::size_t>, Held> m_memory;
  std::optional<double> m_huge;
};

/// Fills memory with ordinary small numbers, whether read as fp32, fp16 or bf16: summing denormal
/// numbers would measure something else.
void fill_numbers(std::span<std::byte> memory);

} // namespace reckon
