// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "probe/cluster_pairs.hpp"
#include "probe/cluster_steps.hpp"
#include "probe/rack_search.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace reckon {

/// Halves of the machines that sent to each other.
struct BisectionResult {
  std::string test;
  Pairing pairs;
  std::vector<double> samples; ///< of all pairs together, in the slower direction
};

/// Whether any half of a cluster can send to the other at full speed, and where its racks are when
/// it cannot. Used at rank 0, after PairSteps::measure().
class RackSteps {
public:
  static constexpr double k_full_bisection = 0.95;

  RackSteps(ClusterSteps& steps, PairSteps& pairs);

  void measure();

  /// Of flows that may have to share something thin: they are slower than a port.
  [[nodiscard]] std::uint64_t part() const;
  /// By rank; all 0 where there are no racks.
  [[nodiscard]] const std::vector<int>& rack_of() const { return m_rack; }
  [[nodiscard]] int count() const;
  [[nodiscard]] const std::vector<BisectionResult>& bisections() const { return m_bisections; }
  /// By rack, samples of the slower direction.
  [[nodiscard]] const std::map<int, std::vector<double>>& uplinks() const { return m_uplinks; }
  /// Why the racks may be others, and what to do about it; empty where they are certain.
  [[nodiscard]] const std::string& doubt() const { return m_doubt; }

private:
  void note_bisection(const char* test, const Pairing& pairs, const std::string& step);
  [[nodiscard]] double share_of(const BisectionResult& bisection) const;
  void find();
  void measure_uplinks();

  ClusterSteps& m_steps;
  PairSteps& m_pairs;
  std::vector<int> m_rack;
  std::vector<BisectionResult> m_bisections;
  std::map<int, std::vector<double>> m_uplinks;
  std::string m_doubt;
};

} // namespace reckon
