// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "verdict/odd_ones.hpp"
#include "verdict/verdict.hpp"

#include <optional>
#include <string>
#include <vector>

namespace reckon::verdict_detail {

/// Each check adds its findings to the verdict, what it cannot know, and how much it judged.

/// PCIe links, NVLinks and xGMI links, ports and memories as the topology describes them.
void check_links(const Profile& profile, Verdict& verdict);
/// Cells of places that are alike, and copies against the links they pass.
void check_measured(const Profile& profile, Verdict& verdict);
/// Ranks that the records of a job name: late at its collectives, behind others, or missing.
void check_ranks(const Profile& profile, Verdict& verdict);
/// What the system says of the paths (Profile::settings).
void check_settings(const Profile& profile, Verdict& verdict);
/// A thing against its alternative: direct copies and staged ones, one direction and the other, all
/// at once and each alone, a port and the PCIe link below it.
void check_alternatives(const Profile& profile, Verdict& verdict);

/// Rails against the others of the same two machines, and all at once against their sum.
void check_rails(const Profile& profile, Verdict& verdict);

/// Equal parts of one machine differ by 1 to 3 %.
inline constexpr double k_rate_tolerance = 0.10;
/// A copy engine reaches 75 to 90 % of what PCIe or NVLink carries after line coding.
inline constexpr double k_least_of_link = 0.6;

/// More is better.
[[nodiscard]] double goodness(const Cell& cell);
/// The odd ones of a group, but for those that their samples do not tell from the others. Too few
/// samples tell nothing: then the values decide, unless the cell was disturbed.
[[nodiscard]] OddOnes odd_cells(const std::vector<const Cell*>& group);
/// Whether a rate is below so much of what it could be that noise is no reason.
[[nodiscard]] bool is_far_below(const Cell& cell, double expected);
/// The NIC that an end of a rail, "w0/eth0", is; nullptr where the tree does not know it.
[[nodiscard]] const TopologyObject* nic_of(const Profile& profile, const std::string& port);
/// One direction; of a NIC or GPU whose PCIe link is known.
[[nodiscard]] std::optional<double> pcie_rate(const TopologyObject& o);

/// The remedy for what is slow only together.
inline constexpr const char* k_shared_remedy =
    "see what they share: a PCIe switch's link, one node's memory, a cable, the switch of the "
    "network";

[[nodiscard]] Side text_side(std::string text);
[[nodiscard]] Side number_side(double number, std::string unit);
/// A group of one machine, and its parts, by that machine's own name; any other id unchanged.
[[nodiscard]] std::string shown_place(const Profile& profile, const std::string& id);
[[nodiscard]] std::string to_place(const std::string& from, const std::string& to);
/// The quantity of a cell, without its places.
[[nodiscard]] std::string setting_of(CellKey key);
/// The remedy for a part that was slow in a measurement. Of a machine alone no port is at fault.
[[nodiscard]] std::string remedy_for(const Profile& profile, const std::string& id,
                                     const CellKey& slow);
/// NICs of one make, one place (beside a GPU or not) and one possible PCIe link.
[[nodiscard]] std::map<std::string, std::vector<const TopologyObject*>>
like_nics(const Topology& topology);
/// The common part of names of NICs of one make: "mlx_" of "eth0 mlx5_0", "rdmaps" of "rdmap79s0".
[[nodiscard]] std::string make_of(const TopologyObject& nic);

} // namespace reckon::verdict_detail
