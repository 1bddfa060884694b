// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/profile.hpp"

#include <string>

namespace reckon {

/// A profile with the tree of a machine that is not here and no cells: its source and its context
/// say that nothing was measured. `name` empty: the file's name without its ending. Throws
/// Error{input} as read_topology_file() does.
[[nodiscard]] Profile profile_of_topology_file(const std::string& path,
                                               const std::string& name = "");

} // namespace reckon
