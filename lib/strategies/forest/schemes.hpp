// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "strategies/forest/trees.hpp"

#include <string>
#include <vector>

namespace reckon {

/// A way to sum that has a name: trees with equal shares.
struct NamedScheme {
  std::string name; ///< "cpu_assisted numa0", "reduce_broadcast gpu2 gpu3", "ring", ...
  std::vector<Tree> trees;
};

/// All named schemes that are possible on the machine (docs/equations.md has the list). Of other
/// collectives than all-reduce the halves of those that have the roots that it needs.
[[nodiscard]] std::vector<NamedScheme> named_schemes(const Network& model);

} // namespace reckon
