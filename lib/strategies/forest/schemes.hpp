// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "strategies/forest/trees.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// A named way to sum.
struct NamedScheme {
  std::string name; ///< "cpu_assisted numa0", "reduce_broadcast gpu2 gpu3", "ring", ...
  std::vector<Tree> trees;
  std::vector<double> shares; ///< by tree: fraction of the gradient; they add up to 1
};

/// All named schemes that are possible on the network (docs/equations.md lists them). For a
/// collective other than all-reduce, the halves of the schemes that have its roots. Schemes whose
/// trees are as many stars as workers are included for many workers only if `wanted` names them:
/// they are slow there, and would slow the search.
[[nodiscard]] std::vector<NamedScheme> named_schemes(const Network& model,
                                                     std::string_view wanted = {});

} // namespace reckon
