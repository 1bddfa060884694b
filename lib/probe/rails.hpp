// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/profile.hpp"
#include "probe/cluster_steps.hpp"
#include "probe/rounds.hpp"
#include "topology/topology.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace reckon {

/// A machine's network ports in the order of its rails: by PCI address, then by name. Where the
/// tree knows some of them, only those: others are bridges and tunnels.
[[nodiscard]] std::vector<std::string> rails_of(const Topology& topology,
                                                std::vector<std::string> ports);

struct Rails {
  std::vector<std::vector<std::string>> ports; ///< by machine; port i of all is rail i
  std::vector<std::string> left_out;           ///< "w2 has no d3 with a carrier"
};
/// Rails of machines with those ports: those whose names all have, because after a missing one the
/// order would pair others wrongly; in order where they are as many and share no name. Throws
/// Error{unavailable} if fewer than two remain.
[[nodiscard]] Rails common_rails(const std::vector<std::vector<std::string>>& of_machines,
                                 const std::vector<std::string>& machines);

/// What is busy at once.
struct RailStep {
  Pairing pairs;          ///< disjoint
  std::vector<int> rails; ///< one, or all
};
/// Every pair of machines over each rail alone and over all at once.
[[nodiscard]] std::vector<RailStep> rail_steps(int machines, int rails);
/// Their default time; 0 without rails.
[[nodiscard]] Seconds rails_time(int machines, int rails);

/// Measures the rails between the machines of a cluster, both ways at once. After PairSteps.
class RailSteps {
public:
  explicit RailSteps(ClusterSteps& steps) : m_steps(steps) {}

  /// Writes of `bytes`; opens the transport anew, on all rails.
  void measure(std::uint64_t bytes);
  /// A cell for each direction of each pair and rail, and of all rails; `ids` by machine.
  [[nodiscard]] std::vector<Cell> cells(const std::vector<std::string>& ids,
                                        const std::string& why_not) const;

private:
  ClusterSteps& m_steps;
  std::vector<std::vector<std::string>> m_ports; ///< by machine
  std::uint64_t m_bytes = 0;
  std::array<int, 2> m_in_flight{};   ///< of each write: a rail alone, all at once
  std::vector<PairSamples> m_samples; ///< by rail; the last of all at once
};

} // namespace reckon
