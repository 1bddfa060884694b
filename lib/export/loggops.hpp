// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "export/export.hpp"

#include <optional>
#include <string>

/// Only for the GOAL export.
namespace reckon {

/// A network whose ranks all send and receive at one rate, with one latency between any two.
struct LogGops {
  double latency_s = 0;        ///< L
  double write_overhead_s = 0; ///< g
  double seconds_per_byte = 0; ///< G
  /// "LogGOPS in ns: L=0 o=0 g=0 G=0.1 O=0", with G in nanoseconds a byte.
  [[nodiscard]] std::string line() const;
};

/// The network as far as the schedule uses it. Absent when LogGOPS cannot express it; `why_not`
/// then says what differs.
[[nodiscard]] std::optional<LogGops> loggops_of(const ExportNetwork& network,
                                                const Schedule& schedule, std::string& why_not);

} // namespace reckon
