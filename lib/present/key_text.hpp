// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/profile.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// The parts of a CellKey beside the case, in reading order.
enum class KeyField {
  from,
  to,
  transport,
  direction,
  operation,
  dtype,
  sources,
  state,
  threads,
  pairs,
  in_flight,
  bytes
};
using KeyFields = std::vector<KeyField>;

[[nodiscard]] std::string_view name_of(KeyField field);
[[nodiscard]] const KeyFields& all_fields();
[[nodiscard]] bool has(const KeyFields& fields, KeyField field);
[[nodiscard]] KeyFields without(KeyFields fields, KeyField field);
/// "4 threads", "256 MiB", "tcp;ofi_rxm"; empty when the field does not apply.
[[nodiscard]] std::string field_text(const CellKey& key, KeyField field);
/// The texts of `fields` that apply, separated.
[[nodiscard]] std::string label_of(const CellKey& key, const KeyFields& fields,
                                   std::string_view separator = ", ");
/// Fields that are the same in all cells, and the others.
[[nodiscard]] KeyFields common_fields(const std::vector<const Cell*>& cells);
[[nodiscard]] KeyFields varying_fields(const std::vector<const Cell*>& cells);

} // namespace reckon
