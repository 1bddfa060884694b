// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/document.hpp"

namespace reckon::test {

// Documents of a believable size, for what is shown and drawn. All numbers are made up by fixed
// formulas.

/// Two NUMA nodes of four cores: matrices, curves with two segments, summation, optimizers, two
/// transports, and cells that failed, were skipped and are unsupported.
[[nodiscard]] Profile machine_profile();
/// 8 workers and 2 extra servers, 240 parts.
[[nodiscard]] Plan machine_plan();
[[nodiscard]] Report machine_report();

} // namespace reckon::test
