// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/profile.hpp"

#include <cstddef>
#include <string>

namespace reckon {

/// `hosts` machines like this one, whose GPUs share its NVSwitches (an NVLink domain, as NVL72), as
/// one machine: parts are numbered through, those of the first host first. Throws Error{usage} for
/// a machine without a link switch, and for one that was measured, which says nothing of others.
[[nodiscard]] Profile joined_by_nvlink(Profile profile, const std::string& machine,
                                       std::size_t hosts);

/// The hosts of an imported log in the same groups, in their order; each has the places of
/// `gpus_each` GPUs. Throws Error{usage} where the groups do not come out even.
[[nodiscard]] Profile joined_log(Profile measured, std::size_t hosts, std::size_t gpus_each);

} // namespace reckon
