// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/profile.hpp"

#include <optional>
#include <string_view>
#include <vector>

namespace reckon {

/// Seconds of a communication of `bytes`: alone, or while the computation `operation` runs.
inline constexpr const char* k_contention_communication = "contention_communication";
/// Seconds of the computation `operation`: alone, or while communications of `bytes` run.
inline constexpr const char* k_contention_compute = "contention_compute";
[[nodiscard]] bool is_contention(const CellKey& key);
/// The cell measured alone that this one, of either case, is compared with; nullopt when this cell
/// was measured alone.
[[nodiscard]] std::optional<CellKey> alone(const CellKey& key);

/// The slow-down of one activity beside another (ACE, section III).
struct Contention {
  const Cell* together = nullptr;
  const Cell* alone = nullptr;
  double factor = 1; ///< together / alone, of the medians
  /// Whether the samples tell the two apart (rank test, 5 %); nullopt: too few samples.
  std::optional<bool> shown;
};
/// One for each cell of the case that was measured together and whose twin was measured alone, in
/// the order of the cells. Points into `profile`.
[[nodiscard]] std::vector<Contention> contention_of(const Profile& profile, std::string_view test);

} // namespace reckon
