// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/contention.hpp"
#include "present/style.hpp"

#include <string>

namespace reckon {

/// The communication of a cell of contention: "sum on m0/numa0", "copy m0/numa0 -> m0/numa1".
[[nodiscard]] std::string traffic_text(const CellKey& key);

/// A case of contention as a table: a row for each communication and its size, a column for each
/// computation, and in the cells the slow-down beside it. The times alone stand beside or above.
/// Factors that the samples do not distinguish from 1 are in brackets.
[[nodiscard]] std::string contention_table(const Profile& profile, const std::string& test,
                                           const Style& style);

} // namespace reckon
