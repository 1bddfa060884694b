// SPDX-License-Identifier: Apache-2.0
#include "present/monitor_text.hpp"

#include "core/units.hpp"
#include "present/style.hpp"
#include "present/verdict_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>

namespace reckon {
namespace {

constexpr std::array k_kinds{FindingKind::data,          FindingKind::link,
                             FindingKind::setting,       FindingKind::like,
                             FindingKind::suspect,       FindingKind::alternative,
                             FindingKind::contradiction, FindingKind::ceiling,
                             FindingKind::requirement,   FindingKind::baseline};

std::map<FindingKind, std::uint64_t> findings_by_kind(const Verdict& verdict) {
  std::map<FindingKind, std::uint64_t> counts;
  for (const Finding& finding : verdict.findings) {
    ++counts[finding.kind];
  }
  return counts;
}

/// Of the finding that lost most, 0 to 1; 1: none lost anything that has a number.
double worst_share(const Verdict& verdict) {
  double worst = 1;
  for (const Finding& finding : verdict.findings) {
    worst = finding.share > 0 ? std::min(worst, finding.share) : worst;
  }
  return worst;
}

/// Text of a line of Nagios, where | begins the performance data.
std::string nagios_words(std::string_view text) {
  std::string out = printable(text);
  std::ranges::replace(out, '|', '/');
  return out;
}

/// A value of a label: only \, " and a new line have another meaning there.
std::string prometheus_label(std::string_view text) {
  std::string out;
  for (const char c : text) {
    out += c == '\n' ? "\\n" : c == '\\' || c == '"' ? std::string{'\\', c} : std::string{c};
  }
  return out;
}

} // namespace

NagiosState nagios_state(const Verdict& verdict) {
  if (verdict.findings.empty()) {
    return verdict.passed() ? NagiosState::ok : NagiosState::unknown;
  }
  const bool grave = std::ranges::any_of(verdict.findings, [](const Finding& f) {
    return f.kind == FindingKind::data || f.kind == FindingKind::link ||
           f.kind == FindingKind::requirement;
  });
  return grave ? NagiosState::critical : NagiosState::warning;
}

std::string nagios_text(const Verdict& verdict) {
  constexpr std::array k_states{"OK", "WARNING", "CRITICAL", "UNKNOWN"};
  constexpr std::size_t k_most = 3; // some agents pass on no more than 1 KiB
  const NagiosState state = nagios_state(verdict);
  std::string out = fmt::format("{}: {}", verdict.name, outcome_text(verdict));
  for (std::size_t i = 0; i < std::min(k_most, verdict.findings.size()); ++i) {
    out += fmt::format("{}{} {}", i == 0 ? ": " : "; ", verdict.findings[i].place,
                       finding_text(verdict.findings[i]));
  }
  if (verdict.findings.size() > k_most) {
    out += fmt::format("; and {} more", verdict.findings.size() - k_most);
  }
  std::string data =
      fmt::format("findings={};;;0 checked={};;;0 worst={:.1f}%;;;0;100", verdict.findings.size(),
                  verdict.judged(), 100 * worst_share(verdict));
  auto counts = findings_by_kind(verdict);
  for (const FindingKind kind : k_kinds) {
    data += fmt::format(" {}={};;;0", name_of(kind), counts[kind]);
  }
  return fmt::format("RECKON {} - {} | {}\n", k_states[static_cast<std::size_t>(state)],
                     nagios_words(out), data);
}

std::string nagios_text(std::string_view error) {
  return fmt::format("RECKON UNKNOWN - {}\n", nagios_words(error));
}

std::string prometheus_text(const Verdict& verdict) {
  const std::string profile = prometheus_label(verdict.name);
  std::string out;
  const auto family = [&](std::string_view name, std::string_view help) {
    out += fmt::format("# HELP reckon_check_{0} {1}\n# TYPE reckon_check_{0} gauge\n", name, help);
  };
  family("passed", "Whether something was judged and nothing is wrong: 1 or 0.");
  out += fmt::format("reckon_check_passed{{profile=\"{}\"}} {:d}\n", profile, verdict.passed());
  family("findings", "Places that are wrong, by kind.");
  auto counts = findings_by_kind(verdict);
  for (const FindingKind kind : k_kinds) {
    out += fmt::format("reckon_check_findings{{profile=\"{}\",kind=\"{}\"}} {}\n", profile,
                       name_of(kind), counts[kind]);
  }
  family("judged", "Facts and quantities that were judged, by kind.");
  for (const FindingKind kind : k_kinds) {
    const auto found = verdict.checks.find(kind);
    out += fmt::format("reckon_check_judged{{profile=\"{}\",kind=\"{}\"}} {}\n", profile,
                       name_of(kind), found == verdict.checks.end() ? 0 : found->second);
  }
  if (!verdict.findings.empty()) {
    family("finding_share", "Value of a finding by what it should be, 0 without a number.");
  }
  for (const Finding& f : verdict.findings) {
    out += fmt::format(
        "reckon_check_finding_share{{profile=\"{}\",kind=\"{}\",place=\"{}\",what=\"{}\"}} {}\n",
        profile, name_of(f.kind), prometheus_label(f.place), prometheus_label(f.what), f.share);
  }
  return out;
}

} // namespace reckon
