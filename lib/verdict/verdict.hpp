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
#include <utility>
#include <vector>

namespace reckon {

/// The kind of a finding, the most serious first.
enum class FindingKind {
  data,          ///< a measurement failed, or moved wrong data
  link,          ///< a link, a port or a memory is below its maximum, or below equal ones
  setting,       ///< a setting or a state that costs, as the system tells it
  like,          ///< measured: slower than its neighbours by more than the noise
  suspect,       ///< one of several places, of which one makes pairs slow
  alternative,   ///< slower than another way, the other direction or each of its parts alone
  contradiction, ///< measured: more than the link on its way carries
  ceiling,       ///< measured: far below the described rate of the link
  requirement,   ///< misses a requirement
  baseline,      ///< worse than the baseline
};
[[nodiscard]] std::string_view name_of(FindingKind kind);

/// A fault of a machine.
struct Finding {
  FindingKind kind = FindingKind::data;
  std::string place; ///< id of a machine or a part, "m0/gpu1 -> m0/gpu3", or a case
  std::string what;  ///< "PCIe link", "port_bandwidth, two_way"
  Side value, expected;
  std::string against; ///< the reason for the expectation: "both ends could do", "7 like it have"
  std::string remedy;  ///< the remedy
  double share = 0;    ///< fraction of the expected value, 0 to 1; 0 without a number
  std::uint64_t others = 0; ///< further findings of this place that follow from it or resemble it
};

/// Pairs of machines or NICs whose rates would tell which suspect it is.
struct NextPairs {
  /// By rounds: those of one can run at once, because they share no machine. Empty: none.
  std::vector<std::vector<std::pair<std::string, std::string>>> rounds;
  double seconds = 0;         ///< of all rounds, as long as the tests took that are known
  bool seconds_known = false; ///< else as pairs usually take
};

struct Verdict {
  std::string name; ///< of the profile
  /// At most one of each place and kind, the most serious first. Measurements at a place whose link
  /// is faulty count there (Finding::others).
  std::vector<Finding> findings;
  std::vector<std::string>
      unknown; ///< questions that could not be judged, with the reason; no part of the verdict
  /// What other programs took while the profile, and the baseline, was measured: small losses are
  /// not seen then. Empty: nothing.
  std::vector<std::string> disturbed;
  /// The number of judged facts and quantities, by their standard.
  std::map<FindingKind, std::uint64_t> checks;
  NextPairs next{};
  /// How many facts and quantities that is in all.
  [[nodiscard]] std::uint64_t judged() const;
  /// Whether something was judged, and nothing is wrong.
  [[nodiscard]] bool passed() const { return findings.empty() && judged() > 0; }
};

struct VerdictOptions {
  const Profile* baseline = nullptr; ///< of this machine or of its type
  std::string baseline_name = "baseline";
  const Requirements* requirements = nullptr;
};

/// Judges a machine, or a cluster, by its profile alone:
/// - links against what they could be, parts against those that are alike, measured cells against
///   those of places that are alike and against what the links are said to carry;
/// - pairs of machines or NICs for the place or the path that makes them slow (judge_pairs());
/// - the ranks of a job that an import names: late, behind, missing;
/// - a thing against its alternative: direct copies and staged ones, one direction and the other,
///   all at once and each alone, a port and the PCIe link below it;
/// - rails between two machines against each other, and all at once against their sum;
/// - rates against those of what they pass (contradictions_of());
/// - cells against the baseline (compare(), what got worse) and against requirements.
/// Whatever the profile does not know is in Verdict::unknown.
[[nodiscard]] Verdict judge(const Profile& profile, const VerdictOptions& options = {});

/// "schema": "verdict".
[[nodiscard]] Json to_json(const Verdict& verdict);

/// The network device of which a setting of a whole machine is said: "bond0". Empty: it is of the
/// machine, or of a part of it.
[[nodiscard]] std::string device_of(const Setting& setting);

} // namespace reckon
