// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compare/comparison.hpp"

#include <map>
#include <optional>
#include <string>

namespace reckon {

/// The speed-up: after / before of a rate, before / after of a time. Absent where a side is missing
/// or is neither.
[[nodiscard]] std::optional<double> speed_of(const Difference& difference);

/// Gives the differences of a profile their causes: everything that passes a link is as slow as the
/// link, pairs as slow as a port of theirs, sums and copies as the memory. An effect moved the same
/// way as its cause, and not much further. Undecided differences with a cause count as differences.
/// Causes come before their effects. `set_of`: the name of the machines that differences call by
/// one name, by member.
void tell_what_follows(Comparison& comparison, const std::map<std::string, std::string>& set_of);

} // namespace reckon
