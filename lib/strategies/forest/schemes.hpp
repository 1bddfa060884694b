// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "strategies/forest/trees.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// A way to sum that has a name.
struct NamedScheme {
  std::string name; ///< "cpu_assisted numa0", "reduce_broadcast gpu2 gpu3", "ring", ...
  std::vector<Tree> trees;
  std::vector<double> shares; ///< by tree: of the gradient; they add up to 1
};

/// All named schemes that are possible on the network (docs/equations.md has the list). Of other
/// collectives than all-reduce the halves of those that have the roots that it needs. Of many
/// workers those whose trees are as many stars as workers only where `wanted` names them: they are
/// slow there, and would slow the search.
[[nodiscard]] std::vector<NamedScheme> named_schemes(const Network& model,
                                                     std::string_view wanted = {});

} // namespace reckon
