// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/json_fwd.hpp"
#include "documents/profile.hpp"

#include <string>
#include <vector>

namespace reckon {

/// Cells that were meant for plans but that no plan reads: of an unknown case, in another unit than
/// the case has, or between ends that the case cannot have. One sentence each, which begins with
/// the file and the JSON pointer and says what to write instead. `json` is the source of `profile`.
/// Imported profiles keep the case names of other programs.
[[nodiscard]] std::vector<std::string> cell_doubts(const Profile& profile, const Json& json,
                                                   const std::string& file);

} // namespace reckon
