// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "planning/request.hpp"

namespace reckon {

/// Adds to a plan what it counts as free because nobody says how long it takes, and the share of
/// latency in it (add_latency()).
void add_assumed(Plan& plan, const PlanDocuments& documents, const PlanRequest& request);

} // namespace reckon
