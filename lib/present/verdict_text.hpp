// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "present/style.hpp"
#include "verdict/verdict.hpp"

#include <string>

namespace reckon {

/// What disturbed the measurement and what to do; empty: nothing did.
[[nodiscard]] std::string disturbed_text(const Verdict& verdict);
/// "no faults found", "2 findings" or "nothing could be judged".
[[nodiscard]] std::string outcome_text(const Verdict& verdict);
/// "PCIe link, 25 % of what it should be"
[[nodiscard]] std::string finding_text(const Finding& finding);
/// A verdict: one line that says whether anything is odd, a table of the odd places, a remedy for
/// each, and one paragraph of what is unknown.
[[nodiscard]] std::string render(const Verdict& verdict, const Style& style);

} // namespace reckon
