// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace reckon {

/// Ceiling of a port_bandwidth whose machine has several ports: what the ports of all machines that
/// tried them can do together. A rate that comes near is that of those, and not of these ports.
inline constexpr const char* k_peers_ceiling = "the peers' ports";

} // namespace reckon
