// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/json.hpp"
#include "documents/plan.hpp"

namespace reckon::documents {

/// What no single field says: whether a plan's parts, trees, ring, groups, routes and passes go
/// together. Throws Error{input} that names the place in the document.
void check(const Plan& plan, const JsonView& view);

} // namespace reckon::documents
