// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/profile.hpp"

#include <cstdint>
#include <random>

namespace reckon::test {

/// A rate of a link or of a pair, one direction, as a cell of a paper.
void add_link_rate(Profile& profile, const std::string& test, const std::string& from,
                   const std::string& to, double bytes_per_second);

/// The same for both directions of a link, as cells `link_bandwidth`.
void add_link_both_ways(Profile& profile, const std::string& a, const std::string& b,
                        double bytes_per_second);

void add_object(Profile& profile, ObjectKind kind, const std::string& id,
                const std::string& parent);

/// A machine m0 with up to `gpus` GPUs below switches of one or two processors, links of random
/// rates (sometimes the same for all), and by chance: a NIC, pairs slower than their links, pairs
/// that cannot copy, NVLinks, limits of memory and of summation. At least two GPUs.
[[nodiscard]] Profile random_inside_profile(std::mt19937_64& random, std::size_t gpus);

} // namespace reckon::test
