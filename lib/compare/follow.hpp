// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compare/comparison.hpp"

#include <map>
#include <optional>
#include <string>

namespace reckon {

/// How many times as fast: after / before of a rate, before / after of a time. Nothing where either
/// is not there, or is neither.
[[nodiscard]] std::optional<double> speed_of(const Difference& difference);

/// Gives the differences of a profile what they follow from: what passes a link is as slow as the
/// link, pairs as slow as a port of theirs, sums and copies as the memory. What follows moved the
/// same way, and not much further. Undecided ones that follow are differences, for it is known why.
/// Causes come before what follows from them. `set_of`: the name of the machines that differences
/// call by one name, by member.
void tell_what_follows(Comparison& comparison, const std::map<std::string, std::string>& set_of);

} // namespace reckon
