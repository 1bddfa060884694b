// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "verdict/verdict.hpp"

namespace reckon::verdict_detail {

/// Each adds to the verdict what it finds, what it cannot know, and how much it judged.

/// PCIe links, NVLinks and xGMI links, ports and memories as the topology describes them.
void check_links(const Profile& profile, Verdict& verdict);
/// Cells of places that are alike, and copies against the links they pass.
void check_measured(const Profile& profile, Verdict& verdict);

[[nodiscard]] Side text_side(std::string text);
[[nodiscard]] Side number_side(double number, std::string unit);
/// A group of one machine by that machine's own name; any other id as it is.
[[nodiscard]] std::string shown_place(const Profile& profile, const std::string& id);
[[nodiscard]] std::string to_place(const std::string& from, const std::string& to);
/// What a cell measures, without its places.
[[nodiscard]] std::string setting_of(CellKey key);
/// What to do about a part that is slow.
[[nodiscard]] std::string remedy_for(const Profile& profile, const std::string& id);
/// "mlx_" of "eth0 mlx5_0", "rdmaps" of "rdmap79s0": what NICs of one make share.
[[nodiscard]] std::string make_of(const TopologyObject& nic);

} // namespace reckon::verdict_detail
