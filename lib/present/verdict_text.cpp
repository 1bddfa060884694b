// SPDX-License-Identifier: Apache-2.0
#include "present/verdict_text.hpp"

#include "core/units.hpp"
#include "present/numbers.hpp"
#include "present/table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <vector>

namespace reckon {
namespace {

std::string side_text(const Side& side) {
  return side.number ? quantity_text(*side.number, side.unit) : side.text;
}

} // namespace

std::string render(const Verdict& verdict, const Style& style) {
  const std::string checks = counted(verdict.checks, "check");
  std::string out =
      printable(verdict.name) + ": " +
      (verdict.passed()
           ? toned("nothing odd", Tone::good, style) + fmt::format(" in {}", checks)
           : toned(fmt::format("{} to look at", counted(verdict.findings.size(), "place")),
                   Tone::bad, style) +
                 fmt::format(", {}", checks)) +
      "\n";
  if (!verdict.passed()) {
    Table table(2, "where|what|>is|>should be|>share|~which is");
    std::map<std::string, std::vector<std::string>> remedies;
    std::vector<std::string> order;
    for (const Finding& f : verdict.findings) {
      std::string against = f.against;
      if (f.others > 0) {
        against += fmt::format("; {} more here", f.others);
      }
      table.row({{f.place, Tone::strong},
                 f.what,
                 side_text(f.value),
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
  if (!verdict.unknown.empty()) {
    out += "\n" +
           folded(printable(fmt::format("not known: {}", fmt::join(verdict.unknown, "; "))), style);
  }
  return out;
}

} // namespace reckon
