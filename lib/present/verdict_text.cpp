// SPDX-License-Identifier: Apache-2.0
#include "present/verdict_text.hpp"

#include "core/units.hpp"
#include "present/numbers.hpp"
#include "present/table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <map>
#include <utility>
#include <vector>

namespace reckon {
namespace {

std::string side_text(const Side& side) {
  return side.absent() ? "" : side.number ? quantity_text(*side.number, side.unit) : side.text;
}

/// "12 links, 40 measured values"
std::string checked(const Verdict& verdict) {
  struct Words {
    FindingKind kind;
    const char *one, *several;
  };
  constexpr std::array<Words, 8> k_words{
      {{FindingKind::link, "link, port or memory", "links, ports and memories"},
       {FindingKind::setting, "setting", "settings"},
       {FindingKind::data, "measured cell", "measured cells"},
       {FindingKind::like, "comparison of parts that are alike",
        "comparisons of parts that are alike"},
       {FindingKind::alternative, "comparison of alternatives", "comparisons of alternatives"},
       {FindingKind::ceiling, "copy against its link", "copies against their links"},
       {FindingKind::requirement, "requirement", "requirements"},
       {FindingKind::baseline, "quantity against the baseline",
        "quantities against the baseline"}}};
  std::vector<std::string> parts;
  for (const auto& [kind, one, several] : k_words) {
    if (const auto found = verdict.checks.find(kind);
        found != verdict.checks.end() && found->second > 0) {
      parts.push_back(counted(found->second, one, several));
    }
  }
  return parts.empty() ? "nothing" : fmt::format("{}", fmt::join(parts, ", "));
}

/// "to be certain, run next: a with b, c with d; then a with c (2 rounds, about 20 s)"
std::string next_text(const NextPairs& next) {
  std::vector<std::string> rounds;
  std::size_t count = 0;
  for (const auto& round : next.rounds) {
    std::vector<std::string> pairs;
    for (const auto& [from, to] : round) {
      pairs.push_back(fmt::format("{} with {}", from, to));
    }
    count += pairs.size();
    rounds.push_back(fmt::format("{}", fmt::join(pairs, ", ")));
  }
  return fmt::format(
      "to be certain, run next: {} ({} in {}, about {:.2g} s {})", fmt::join(rounds, "; then "),
      counted(count, "pair"), counted(next.rounds.size(), "round"), next.seconds,
      next.seconds_known ? "as these tests took, beside their starts" : "at 10 s a test");
}

} // namespace

std::string disturbed_text(const Verdict& verdict) {
  return verdict.disturbed.empty()
             ? ""
             : fmt::format("measured on a busy machine: {}. Losses below a quarter may be missed; "
                           "stop those programs and measure again before this is a baseline",
                           fmt::join(verdict.disturbed, ", "));
}

std::string outcome_text(const Verdict& verdict) {
  return !verdict.findings.empty() ? counted(verdict.findings.size(), "finding")
         : verdict.passed()        ? "no faults found"
                                   : "nothing could be judged";
}

std::string finding_text(const Finding& finding) {
  return fmt::format("{}{}", finding.what,
                     finding.share > 0
                         ? fmt::format(", {} of what it should be", percent_text(finding.share))
                         : "");
}

std::string render(const Verdict& verdict, const Style& style) {
  const std::string rest = printable("; checked: " + checked(verdict));
  std::string out = printable(verdict.name) + ": " +
                    toned(outcome_text(verdict), verdict.passed() ? Tone::good : Tone::bad, style) +
                    rest + "\n";
  if (const std::string text = disturbed_text(verdict); !text.empty()) {
    out += toned(folded(printable(text), style), Tone::warning, style);
  }
  if (!verdict.findings.empty()) {
    Table table(2, "where|what|>is|>should be|>share|~as");
    std::map<std::string, std::vector<std::string>> remedies;
    std::vector<std::string> order;
    for (const Finding& f : verdict.findings) {
      std::string against = f.against;
      if (f.others > 0) {
        against +=
            fmt::format("; {} more {} from it", f.others, f.others == 1 ? "follows" : "follow");
      }
      table.row({{f.place, Tone::strong},
                 f.what,
                 f.value.absent() ? "(none)" : side_text(f.value),
                 side_text(f.expected),
                 {f.share > 0 ? percent_text(f.share) : "", Tone::bad},
                 {against, Tone::dim}});
      if (f.remedy.empty()) {
        continue;
      }
      auto& places = remedies[f.remedy];
      if (places.empty()) {
        order.push_back(f.remedy);
      }
      if (places.empty() || places.back() != f.place) {
        places.push_back(f.place);
      }
    }
    out += "\n" + table.text(style) + "\n";
    for (const std::string& remedy : order) {
      out += folded(printable(fmt::format("  {}: {}", fmt::join(remedies[remedy], ", "), remedy)),
                    style);
    }
  }
  if (!verdict.next.rounds.empty()) {
    out += "\n" + folded(printable(next_text(verdict.next)), style);
  }
  if (!verdict.unknown.empty()) {
    out += "\n" +
           folded(printable(fmt::format("not known: {}", fmt::join(verdict.unknown, "; "))), style);
  }
  return out;
}

} // namespace reckon
