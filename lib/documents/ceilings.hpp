// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace reckon {

/// Ceiling of a port_bandwidth whose machine has several ports: the joint rate of the ports of all
/// machines that measured with them. A rate near it shows their limit, not that of these ports.
inline constexpr const char* k_peers_ceiling = "the peers' ports";

} // namespace reckon
