// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/profile.hpp"
#include "network/rate.hpp"

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace reckon {

/// What the NICs of a machine carry, each direction, over a transport ("": any), from cells
/// port_bandwidth and the described rates of links.
class NicRates {
public:
  /// `machine`: a MachineGroup; `member`: which of its machines, where those have names.
  NicRates(const CellIndex& index, std::string machine, std::string member, std::string transport);

  /// The machine's NICs of known rate, in order.
  [[nodiscard]] const std::vector<std::string>& nics() const { return m_nics; }
  /// The NIC's port: the NIC itself, or the cable that it shares with other functions of its card.
  [[nodiscard]] std::string port_of(const std::string& nic) const;
  [[nodiscard]] bool known(const std::string& nic) const { return m_ports.contains(port_of(nic)); }
  /// A port alone: what was measured of it, else what is described; of functions that share a cable
  /// the fastest.
  [[nodiscard]] const Rate& of(const std::string& port) const { return m_ports.at(port); }
  /// Whether its rate was measured.
  [[nodiscard]] bool measured(const std::string& port) const { return m_measured.contains(port); }
  /// All ports together: what was measured of the machine, or of its group, else their sum; 0 where
  /// nothing is known.
  [[nodiscard]] Rate whole() const;
  /// The same where it was measured and is less than the sum: what is behind the ports limits them.
  [[nodiscard]] std::optional<Rate> behind() const;

private:
  [[nodiscard]] Rate cell(const std::string& of) const;
  [[nodiscard]] Rate nic_rate(const std::string& nic, std::size_t nics) const;
  [[nodiscard]] Rate measured_whole() const;
  [[nodiscard]] Rate sum() const;

  const CellIndex& m_index;
  const Topology& m_topology;
  std::string m_machine, m_member, m_transport;
  std::vector<std::string> m_nics;
  std::map<std::string, Rate> m_ports;
  std::set<std::string> m_measured; ///< ports
};

} // namespace reckon
