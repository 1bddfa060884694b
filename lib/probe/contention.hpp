// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/profile.hpp"

#include <cstddef>
#include <string>

namespace reckon {

/// A computation that something else is measured beside.
struct ComputeKind {
  bool embedding = false; ///< lookups; else a matrix product
  std::size_t size = 0;   ///< of a matrix's side, or of a batch
  /// As CellKey::operation: "gemm_1000".
  [[nodiscard]] std::string name() const;
};

/// Adds to the key of a cell of contention what its communication of key.bytes is: a sum of two
/// fp32 operands, or a copy to `to`. Nothing where there is none.
void describe_traffic(CellKey& key, bool sum, const std::string& to);

} // namespace reckon
