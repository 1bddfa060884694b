// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schedule/schedule.hpp"

#include <string>
#include <vector>

namespace reckon {

/// What is wrong with sums in place, beside slices that lie outside of their buffers:
/// - each has operands, of whole elements, no two in one buffer;
/// - each waits for the word of every peer in whose memory it sums, and tells that peer when it is
///   done: between these words the peer awaits the sum, and its iteration does not end.
[[nodiscard]] std::vector<std::string> in_place_faults(const Schedule& schedule);

} // namespace reckon
