// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/endpoint.hpp"
#include "strategies/between.hpp"

#include <array>
#include <cstdint>

namespace reckon {

/// The links of a torus of these endpoints as stations: one for each neighbour of every node, each
/// with half of the node's bandwidth in that dimension, at the links' efficiency. In a ring of two
/// nodes both links lead to the same node and are one station. Ranks that are no neighbours write
/// the shorter way round each dimension, local first. The latency is that of all links passed. With
/// a configuration a write first passes the sender's resources for communication: the memory, SMs
/// or bus that binds (equation 50), a station of each rank behind the links.
[[nodiscard]] Between torus_between(const Endpoint& endpoint,
                                    const std::array<std::uint64_t, 3>& shape,
                                    const EndpointConfiguration* configuration = nullptr);

} // namespace reckon
