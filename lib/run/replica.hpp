// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "run/values.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace reckon {

/// The expected parameters of one rank: the same kernel, applied one element range at a time to the
/// known sums, iteration after iteration. Holds a second copy of the rank's parameters and their
/// optimizer states.
class ParameterReplica {
public:
  /// `schedule` must outlive it.
  ParameterReplica(const Schedule& schedule, std::size_t rank, const TestValues& values);

  /// Makes the step of `iteration` (0, 1, 2, ... in turn) and compares every parameter that the
  /// rank holds, bit for bit.
  [[nodiscard]] RankVerification check(Views views, std::uint32_t iteration);
  /// Makes the step of `iteration` without a look at the buffers: to follow a run that resumed from
  /// a checkpoint.
  void step(std::uint32_t iteration);
  /// Compares the data at the given places with the rank's current parameters and states, bit for
  /// bit.
  [[nodiscard]] RankVerification compare(Views views, std::span<const KeptRun> places,
                                         std::uint32_t steps) const;

private:
  /// Makes the step block by block; f(held run, first element in it, elements, first element in the
  /// replica) after each.
  template <class F>
  void step_blocks(std::uint32_t iteration, F f);
  struct Held {
    std::uint64_t bytes = 0;
    std::size_t first = 0; ///< element in the replica
  };
  const Schedule& m_schedule;
  const RankProgram& m_rank;
  TestValues m_values;
  std::vector<float> m_parameters, m_state1, m_state2; ///< of all held runs, one after another
  std::map<std::uint64_t, Held> m_held;                ///< by place in the gradient
};

/// Digest of all parameters that a rank holds in the gradient's order, at any place.
[[nodiscard]] std::string parameters_digest(const RankProgram& program, Views views);

} // namespace reckon
