// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/system_files.hpp"
#include "documents/profile.hpp"
#include "probe/flows.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace reckon {

/// TCP's segments, as /proc/net/snmp counts them for all that share this process's network.
struct TcpSegments {
  std::uint64_t sent = 0, again = 0;
  /// Zeros where the file cannot be read.
  [[nodiscard]] static TcpSegments counted(const SystemFiles& files);
  [[nodiscard]] TcpSegments since(const TcpSegments& before) const {
    return {sent - before.sent, again - before.again};
  }
};

/// What machines sent each other again while a cluster was measured, by pair: a switch that drops
/// packets or a bad cable shows nowhere else in the machines.
class TcpLosses {
public:
  /// What each machine counted during a task. One that sends to several says nothing of a pair.
  void add(const FlowTask& task, const std::vector<TcpSegments>& by_machine);
  /// For each of `machines`, settings of a probed machine "m0" named k_tcp_again: the share of what
  /// it sent or was sent, in percent, if most of its peers see as much; else of each pair that
  /// loses as much by itself, for the sender. Shares of less than 0.1 % are left out, and those of
  /// fewer than 1000 segments.
  [[nodiscard]] std::vector<std::vector<Setting>>
  settings(const std::vector<std::string>& machines) const;

private:
  /// nullopt: not known.
  [[nodiscard]] std::optional<double> share(std::size_t from, std::size_t to) const;
  std::map<std::pair<std::size_t, std::size_t>, TcpSegments> m_pairs; ///< from, to
};

} // namespace reckon
