// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compare/comparison.hpp"
#include "core/json_fwd.hpp"
#include "documents/profile.hpp"
#include "documents/requirements.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// How a finding came about, the most serious first.
enum class FindingKind {
  data,          ///< a measurement failed, or moved wrong data
  contradiction, ///< measured: more than what it passes carries
  link,          ///< a link, a port or a memory is less than it could be, or than those like it
  like,          ///< measured: slower than its neighbours by more than the noise
  ceiling,       ///< measured: far below what the link is said to carry
  requirement,   ///< misses a requirement
  baseline,      ///< worse than the baseline
};
[[nodiscard]] std::string_view name_of(FindingKind kind);

/// Something about a machine that is not as it should be.
struct Finding {
  FindingKind kind = FindingKind::data;
  std::string place; ///< id of a machine or a part, "m0/gpu1 -> m0/gpu3", or a case
  std::string what;  ///< "PCIe link", "port_bandwidth, two_way"
  Side value, expected;
  std::string against; ///< why that is expected: "both ends could do", "7 like it have"
  std::string remedy;  ///< what to do
  double share = 0; ///< how much of what is expected there is, 0 to 1; 0 where there is no number
  std::uint64_t others = 0; ///< further findings of this place that follow from it or are like it
};

struct Verdict {
  std::string name; ///< of the profile
  /// At most one of each place and kind, the most serious first. What was measured at a place whose
  /// link is found wanting counts there (Finding::others).
  std::vector<Finding> findings;
  std::vector<std::string> unknown; ///< what could not be judged, and why; no part of the verdict
  /// How many facts and quantities were judged, by what they were judged for.
  std::map<FindingKind, std::uint64_t> checks;
  [[nodiscard]] bool passed() const { return findings.empty(); }
};

struct VerdictOptions {
  const Profile* baseline = nullptr; ///< of this machine or of its type
  std::string baseline_name = "baseline";
  const Requirements* requirements = nullptr;
};

/// Judges a machine, or a cluster, by its profile alone:
/// - links against what they could be, parts against those that are alike, measured cells against
///   those of places that are alike and against what the links are said to carry;
/// - rates against those of what they pass (contradictions_of());
/// - cells against the baseline (compare(), what got worse) and against requirements.
/// Whatever the profile does not know is in Verdict::unknown.
[[nodiscard]] Verdict judge(const Profile& profile, const VerdictOptions& options = {});

/// "schema": "verdict".
[[nodiscard]] Json to_json(const Verdict& verdict);

} // namespace reckon
