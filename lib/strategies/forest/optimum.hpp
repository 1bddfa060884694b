// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "strategies/forest/program.hpp"
#include "strategies/forest/trees.hpp"

#include <vector>

namespace reckon {

/// The best mix of trees on a network (equation 25): the least time of any trees with any shares,
/// found by column generation.
struct Optimum {
  std::vector<Tree> trees;
  std::vector<double> shares; ///< by tree; they add up to 1
  /// Other shares of the same trees, which need up to 0.2 % longer: the shallowest trees, which
  /// play better or worse than the trees with the least work.
  std::vector<std::vector<double>> shallow;
  /// By station, >= 0: dual values, with sum of capacity times price = 1.
  std::vector<double> prices;
  double seconds_per_byte = 0; ///< of these shares, until the busiest station is done
  /// A bound on all mixes of trees, by dual values (weak duality).
  double certificate = 0;
  /// The same bound with every capacity at the high end of its samples.
  double low_certificate = 0;
};

/// Equation 25 on a network's stations, without columns.
[[nodiscard]] SharesProgram program_of(const Network& network,
                                       const std::vector<double>& groups = {1.0});

/// Starts from `trees`, which must not be empty, and adds trees as long as prices show a cheaper
/// one: first spanning trees whose lower half mirrors the upper one, which loses nothing where
/// links are as fast in both directions; then, where a gap is left, arborescences. A collective
/// with given roots uses arborescences for each root only; `trees` must have one for each.
[[nodiscard]] Optimum optimum_of(const Network& network, std::vector<Tree> trees);

/// Seconds for each byte that no mix of trees on the network beats, with every capacity at the high
/// end of its samples: Optimum::low_certificate. 0 where no trees join all workers.
[[nodiscard]] double least_of_trees(const Network& network);

} // namespace reckon
