// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// Where a plan's links come from, as its quantity "profile" has it, when they are those of the
/// endpoint in a profile: such ranks have no ports.
inline constexpr std::string_view k_endpoint_links = "endpoint: torus";

/// Plan::transport between machines of whose ports the profile says none.
inline constexpr std::string_view k_unspecified_transport = "unspecified";

/// Whether a plan predicts ranks on machines of their own: with a port each, the nodes of an
/// endpoint's torus, or places in several. Else they share one machine, which was measured so.
[[nodiscard]] bool predicts_own_machines(const Plan& plan);

/// Which ranks that the plan predicts on different machines ran on one host: "ranks 4 and 5 shared
/// w3", with several ranks a machine "machines s0 and s1 shared w3"; empty: none did. `hosts`: name
/// of each rank's.
[[nodiscard]] std::string shared_hosts(const Plan& plan, const std::vector<std::string>& hosts);

} // namespace reckon
