// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/document.hpp"

#include <random>

namespace reckon::test {

// Valid documents of random content: every optional field is there or not, names are of any kind
// that a document may hold, numbers are of any size. Equal engines give equal documents.

[[nodiscard]] Profile random_profile(std::mt19937_64& random);
[[nodiscard]] Workload random_workload(std::mt19937_64& random);
[[nodiscard]] Roles random_roles(std::mt19937_64& random);
[[nodiscard]] Plan random_plan(std::mt19937_64& random);
[[nodiscard]] Report random_report(std::mt19937_64& random);

} // namespace reckon::test
