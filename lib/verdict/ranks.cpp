// SPDX-License-Identifier: Apache-2.0
#include "documents/named_ranks.hpp"
#include "verdict/checks.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace reckon::verdict_detail {
namespace {

/// Ranks that a line of the context names, "PLACE: VALUE; PLACE: VALUE" or "none ...".
struct NamedRanks {
  const char* context;
  FindingKind kind;
  const char *what, *remedy;
};

constexpr std::array<NamedRanks, 3> k_named_ranks{
    {{k_missing_ranks, FindingKind::data, "takes no part",
      "see whether its process runs, and its machine's log (`dmesg`)"},
     {k_late_rank, FindingKind::like, "arrives late",
      "see what it does before: its input, its GPU's clocks (`nvidia-smi -q -d PERFORMANCE`), and "
      "who else runs there"},
     {k_behind, FindingKind::suspect, "is behind",
      "if the job hangs, see where this rank is (`py-spy dump`); if it goes on, the records are of "
      "different moments: record again"}}};

} // namespace

void check_ranks(const Profile& profile, Verdict& verdict) {
  for (const NamedRanks& ranks : k_named_ranks) {
    const auto line = profile.context.find(ranks.context);
    if (line == profile.context.end()) {
      continue;
    }
    ++verdict.checks[FindingKind::like];
    std::string_view rest = line->second;
    while (!rest.empty() && !line->second.starts_with("none")) {
      const std::string_view one = rest.substr(0, rest.find("; "));
      rest.remove_prefix(std::min(one.size() + 2, rest.size()));
      const std::size_t colon = one.find(": ");
      if (colon != one.npos) {
        verdict.findings.push_back({.kind = ranks.kind,
                                    .place = std::string(one.substr(0, colon)),
                                    .what = ranks.what,
                                    .value = text_side(std::string(one.substr(colon + 2))),
                                    .expected = {},
                                    .against = "the others wait for it",
                                    .remedy = ranks.remedy});
      }
    }
  }
}

} // namespace reckon::verdict_detail
