// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "verdict/verdict.hpp"

#include <string>
#include <string_view>

namespace reckon {

/// The states of a plug-in of Nagios, which are its exit statuses.
enum class NagiosState { ok = 0, warning = 1, critical = 2, unknown = 3 };

/// Unknown where nothing could be judged; critical with a faulty link or part, a failed cell, wrong
/// data or a missed requirement; a warning with anything else that was found.
[[nodiscard]] NagiosState nagios_state(const Verdict& verdict);
/// "RECKON WARNING - NAME: 1 finding: ... | findings=1;;;0 ...": one line with performance data, as
/// Nagios' guidelines for plug-ins say.
[[nodiscard]] std::string nagios_text(const Verdict& verdict);
/// The line of a check that failed, without performance data.
[[nodiscard]] std::string nagios_text(std::string_view error);

/// Gauges in Prometheus' text format 0.0.4, for a file of node_exporter's textfile collector. Every
/// kind of finding has a line, also without findings.
[[nodiscard]] std::string prometheus_text(const Verdict& verdict);

} // namespace reckon
