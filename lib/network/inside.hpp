// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/profile.hpp"
#include "network/network.hpp"
#include "topology/paths.hpp"

#include <string>
#include <vector>

namespace reckon {

/// A machine of a cluster, before it is joined with others. Its stations have no machine's name.
struct OpenedMachine {
  Network network;
  /// By place: its ways out of the machine and into it, with the port at their end. Empty: the
  /// network does not reach it.
  std::vector<std::vector<Uses>> leave, enter;
  /// By place: how far the NICs of these ways are; PathClass::self without any.
  std::vector<PathClass> distance;
  /// The same by port, for a machine that is one place with several ports.
  std::vector<Uses> leave_by_port, enter_by_port;
  /// Where the machine ends: a node of the network's graph and the stations of its port.
  struct Port {
    std::size_t node = 0, out = 0, in = 0;
  };
  std::vector<Port> ports;
};

/// Throws Error{input} where the group, an endpoint or the rate of a port is not known, or no place
/// of the machine reaches the network.
[[nodiscard]] OpenedMachine open_machine(const CellIndex& index, const OpenMachine& machine,
                                         const std::string& transport);

} // namespace reckon
