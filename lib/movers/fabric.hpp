// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "movers/habits.hpp"
#include "movers/mover.hpp"

#include <memory>
#include <string>
#include <vector>

namespace reckon {

/// The settings of the fabric mover in the user's environment. libfabric reads variables of its own
/// (FI_LOG_LEVEL, FI_TCP_IFACE, ...; `fi_info -e` lists them); they are the user's. Three of them
/// matter to us: FI_OFI_RXM_BUFFER_SIZE is set to 1024 where the user has not set it (fabric.cpp
/// says why); FI_UNIVERSE_SIZE above 127 makes verbs;ofi_rxm ask Soft-RoCE for a longer completion
/// queue than it has; FI_PROVIDER hides every provider that it does not name.
struct FabricEnvironment {
  /// RECKON_FABRIC_ADDRESS, for a transport with IP addresses: an address of this machine, an
  /// interface ("eth0") or a libfabric domain ("mlx5_0"); several, separated by commas, to spread
  /// lanes over network ports: lane i takes the i-th of them, in turn, on every machine, so all
  /// have to name as many, in an order in which they reach each other. Empty: the loopback
  /// interface while every rank is in this machine's network, otherwise the first address that is
  /// not a loopback one.
  std::string address;
  [[nodiscard]] static FabricEnvironment read();
};

/// The libfabric providers with reliable datagram endpoints, one-sided writes and at least 4 bytes
/// of remote completion data: shm first, then by name. `why_not` gets a line for each omitted one.
/// Never throws: without a usable libfabric the list is empty.
[[nodiscard]] std::vector<std::string> fabric_transports(std::vector<std::string>* why_not);

/// Moves bytes with libfabric's remote writes with completion data, over the provider of that name.
/// Every lane is a domain, an endpoint, a completion queue and an address vector of its own: lanes
/// share nothing. connect() makes every connection and takes a message both ways over each. A lane
/// sleeps on the completion queue's file descriptor; providers without one (shm) are polled between
/// naps of 50 us. Throws Error{unavailable} for an unknown provider or address.
[[nodiscard]] std::unique_ptr<Mover> make_fabric_mover(const std::string& transport,
                                                       const FabricEnvironment& environment,
                                                       const Habits& habits = {});

} // namespace reckon
