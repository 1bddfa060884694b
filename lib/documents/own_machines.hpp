// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"

#include <string_view>

namespace reckon {

/// Where a plan's links come from, as its quantity "profile" has it, when they are those of the
/// endpoint in a profile: such ranks have no ports.
inline constexpr std::string_view k_endpoint_links = "endpoint: torus";

/// Plan::transport between machines of whose ports the profile says none.
inline constexpr std::string_view k_unspecified_transport = "unspecified";

/// Whether a plan predicts ranks on machines of their own: with a port each, the nodes of an
/// endpoint's torus, or places in several. Else they share one machine, which was measured so.
[[nodiscard]] bool predicts_own_machines(const Plan& plan);

} // namespace reckon
