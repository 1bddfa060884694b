// SPDX-License-Identifier: Apache-2.0
#include "present/monitor_text.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <initializer_list>
#include <string>

namespace reckon {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

Verdict monitored(std::initializer_list<FindingKind> kinds) {
  Verdict verdict;
  verdict.name = "site";
  verdict.checks[FindingKind::like] = 7;
  for (const FindingKind kind : kinds) {
    verdict.findings.push_back({.kind = kind, .place = "m0", .what = "port", .share = 0.5});
  }
  return verdict;
}

TEST(MonitorText, HasTheStatesOfNagiosPlugins) {
  // 0 ok, 1 warning, 2 critical, 3 unknown: the worst of the findings decides.
  EXPECT_EQ(static_cast<int>(nagios_state(monitored({}))), 0);
  EXPECT_EQ(static_cast<int>(nagios_state(monitored({FindingKind::like}))), 1);
  EXPECT_EQ(static_cast<int>(nagios_state(monitored({FindingKind::baseline}))), 1);
  EXPECT_EQ(static_cast<int>(nagios_state(monitored({FindingKind::like, FindingKind::link}))), 2);
  EXPECT_EQ(static_cast<int>(nagios_state(monitored({FindingKind::requirement}))), 2);
  EXPECT_EQ(static_cast<int>(nagios_state(monitored({FindingKind::data}))), 2);
  Verdict nothing = monitored({});
  nothing.checks.clear();
  EXPECT_EQ(static_cast<int>(nagios_state(nothing)), 3);
  EXPECT_THAT(prometheus_text(nothing), HasSubstr("reckon_check_passed{profile=\"site\"} 0\n"));
  EXPECT_THAT(prometheus_text(monitored({})), HasSubstr("passed{profile=\"site\"} 1\n"));
  nothing.findings = monitored({FindingKind::like}).findings;
  EXPECT_EQ(static_cast<int>(nagios_state(nothing)), 1) << "what was found was judged";
}

TEST(MonitorText, PutsANagiosResultOnOneLine) {
  Verdict verdict = monitored({FindingKind::like, FindingKind::like, FindingKind::ceiling,
                               FindingKind::baseline, FindingKind::baseline});
  verdict.name = "a|b\nc"; // | would begin the performance data, and a new line a second one
  verdict.findings[2].share = 0.256;
  const std::string text = nagios_text(verdict);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  EXPECT_EQ(std::count(text.begin(), text.end(), '|'), 1);
  EXPECT_THAT(text, HasSubstr("RECKON WARNING - a/b"));
  EXPECT_THAT(text, HasSubstr("; and 2 more | findings=5;;;0 checked=7;;;0 worst=25.6%;;;0;100 "));
  EXPECT_THAT(
      text,
      EndsWith(" like=2;;;0 suspect=0;;;0 alternative=0;;;0 contradiction=0;;;0 ceiling=1;;;0 "
               "requirement=0;;;0 baseline=2;;;0\n"));
  EXPECT_EQ(nagios_text("no | file\n"), "RECKON UNKNOWN - no / file?\n");
}

TEST(MonitorText, EscapesLabelsForPrometheus) {
  Verdict verdict = monitored({FindingKind::like});
  verdict.name = "a\"b\\c\nd";
  const std::string text = prometheus_text(verdict);
  EXPECT_THAT(text, HasSubstr("reckon_check_passed{profile=\"a\\\"b\\\\c\\nd\"} 0\n"));
  EXPECT_THAT(text, HasSubstr(",kind=\"like\",place=\"m0\",what=\"port\"} 0.5\n"));
  EXPECT_THAT(prometheus_text(monitored({})), Not(HasSubstr("finding_share")));
}

} // namespace
} // namespace reckon
