// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace reckon {

/// The memory modules that firmware describes: "8 x 32 GiB DDR5 4800 MT/s", different kinds joined
/// by ", ". `table` is /sys/firmware/dmi/tables/DMI (readable by root). Empty when it holds no
/// module; a damaged table gives what stands before the damage. Source: DMTF DSP0134 (SMBIOS 3.7),
/// section 7.18, structure type 17.
[[nodiscard]] std::string memory_modules(std::string_view table);

} // namespace reckon
