// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/document.hpp"
#include "documents/requirements.hpp"

namespace reckon::test {

// One document of each kind in which every field differs from its default and every list has an
// element, so that a field that is lost on the way to a file or back is noticed.

[[nodiscard]] Profile example_profile();
[[nodiscard]] Workload example_workload();
[[nodiscard]] Roles example_roles();
[[nodiscard]] Requirements example_requirements();
[[nodiscard]] Plan example_plan();
[[nodiscard]] Report example_report();

} // namespace reckon::test
