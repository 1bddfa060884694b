// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "verdict/verdict.hpp"

namespace reckon::verdict_detail {

/// Each check adds its findings to the verdict, what it cannot know, and how much it judged.

/// PCIe links, NVLinks and xGMI links, ports and memories as the topology describes them.
void check_links(const Profile& profile, Verdict& verdict);
/// Cells of places that are alike, and copies against the links they pass.
void check_measured(const Profile& profile, Verdict& verdict);

[[nodiscard]] Side text_side(std::string text);
[[nodiscard]] Side number_side(double number, std::string unit);
/// A group of one machine by that machine's own name; any other id unchanged.
[[nodiscard]] std::string shown_place(const Profile& profile, const std::string& id);
[[nodiscard]] std::string to_place(const std::string& from, const std::string& to);
/// The quantity of a cell, without its places.
[[nodiscard]] std::string setting_of(CellKey key);
/// The remedy for a slow part.
[[nodiscard]] std::string remedy_for(const Profile& profile, const std::string& id);
/// The common part of names of NICs of one make: "mlx_" of "eth0 mlx5_0", "rdmaps" of "rdmap79s0".
[[nodiscard]] std::string make_of(const TopologyObject& nic);

} // namespace reckon::verdict_detail
