// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/json_fwd.hpp"
#include "documents/profile.hpp"

#include <string>
#include <vector>

namespace reckon {

/// Cells that somebody meant for plans and that no plan reads: of a case that there is not, in
/// another unit than the case has, or between ends that the case cannot have. A sentence each,
/// which begins with the file and the JSON pointer and says what to write instead. `json` is what
/// `profile` was read from. Imported profiles keep the names that other programs gave their cases.
[[nodiscard]] std::vector<std::string> cell_doubts(const Profile& profile, const Json& json,
                                                   const std::string& file);

} // namespace reckon
