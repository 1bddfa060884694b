// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/profile.hpp"
#include "present/matrix.hpp"

#include <optional>
#include <string>
#include <vector>

namespace reckon {

using Cells = std::vector<const Cell*>;

/// Whether a case has curves of pairs, each a curve by itself, and not a matrix for each size.
[[nodiscard]] bool is_pair_curve(const CellKey& key);

/// The cells of one case in the forms of their display.
struct CaseGroups {
  std::vector<Cells> matrices; ///< between two or more pairs of endpoints, all else equal
  std::vector<Cells> curves;   ///< three or more sizes, all else equal, ascending
  Cells others;
};
[[nodiscard]] CaseGroups groups_of(const Cells& cells);
/// Cells of one case, by key; all of the profile's when `test` is empty.
[[nodiscard]] Cells cells_of(const Profile& profile, const std::string& test);
/// Those of cell_cases() in its order, then others by name.
[[nodiscard]] std::vector<std::string> cases_of(const Profile& profile);
/// Of a cluster the case that shows its network best: a matrix of its pairs of machines, bandwidth
/// before latency. Empty where there is none.
[[nodiscard]] std::string case_between_machines(const Profile& profile);
/// One of CaseGroups::matrices, in GB/s (MB/s where all are below a tenth
/// of that), ns or us.
[[nodiscard]] Matrix matrix_of(const Cells& cells);

/// Whether a cell's bytes are moved, so that they have a rate. Cases of latencies are timed in
/// steps of constant work; their bytes are the footprint.
[[nodiscard]] bool moves_its_bytes(const CellKey& key);
/// Bytes per second: as measured, or the size over the median time. Absent without a value, and
/// where the bytes are not moved.
[[nodiscard]] std::optional<double> rate_of(const Cell& cell);
[[nodiscard]] bool is_rate(const Cell& cell);
/// The measured part of the ceiling; of times the other way round, so that more is better. Absent
/// without a value or a ceiling.
[[nodiscard]] std::optional<double> ceiling_share(const Cell& cell);
/// "32"; "?" where the profile does not say.
[[nodiscard]] std::string cores_text(const MachineGroup& machine);
[[nodiscard]] bool any_value(const Cells& cells);
/// The text for a cell (or nullptr) without a value: "N/A", "skipped", "failed", ...
[[nodiscard]] std::string missing_text(const Cell* cell);
/// Its median in GB/s or as a time, after a ~ if it is noisy; or the text for a missing value.
[[nodiscard]] std::string value_text(const Cell* cell);
/// A line of the profile's context; empty without.
[[nodiscard]] std::string fact(const Profile& profile, const char* name);
/// ", reads and writes counted" for bandwidths with that convention; the usual one counts each byte
/// once.
[[nodiscard]] std::string convention_text(const Cells& cells);

} // namespace reckon
