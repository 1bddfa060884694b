// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// The source of a plan's links in its quantity "profile", when they are those of a profile's
/// endpoint: these ranks have no ports.
inline constexpr std::string_view k_endpoint_links = "endpoint: torus";

/// Plan::transport between machines whose ports have no transport in the profile.
inline constexpr std::string_view k_unspecified_transport = "unspecified";

/// Whether a plan predicts ranks on machines of their own: with a port each, the nodes of an
/// endpoint's torus, or places in several. Otherwise they share one machine, which was measured so.
[[nodiscard]] bool predicts_own_machines(const Plan& plan);

/// The ranks that the plan predicts on different machines and that ran on one host: "ranks 4 and 5
/// shared w3", with several ranks a machine "machines s0 and s1 shared w3"; empty: no two did.
/// `hosts`: host of each rank.
[[nodiscard]] std::string shared_hosts(const Plan& plan, const std::vector<std::string>& hosts);

} // namespace reckon
