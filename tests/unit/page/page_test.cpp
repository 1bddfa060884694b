// SPDX-License-Identifier: Apache-2.0
#include "page/page.hpp"

#include "support/machine_documents.hpp"
#include "support/messages.hpp"

#include <gmock/gmock.h>

#include <algorithm>

namespace reckon {
namespace {

using namespace testing;

TEST(PageOf, ALoopHasTheVerdictFirst) {
  const std::string page = page_of({{"p.json", test::machine_profile()},
                                    {"plan.json", test::machine_plan()},
                                    {"r.json", test::machine_report()}});
  EXPECT_LT(page.find("class=\"verdict"), page.find("<h2>Predicted and measured"));
  EXPECT_LT(page.find("<h2>Predicted and measured"), page.find("<h2>What is odd"));
  // The documents are made up: this plan has more ranks than its profile has machines.
  EXPECT_THAT(page, test::Says("played"));
}

TEST(PageOf, SaysWhichDocumentsDoNotBelongTogether) {
  Profile other = test::machine_profile();
  other.name = "other";
  Plan plan = test::machine_plan();
  plan.window_parts += 1;
  const std::string page =
      page_of({{"p.json", other}, {"plan.json", plan}, {"r.json", test::machine_report()}});
  EXPECT_THAT(page, test::Says("report"));
  EXPECT_THAT(page, test::Says("another"));
  EXPECT_THAT(page, HasSubstr("not with p.json"));
}

TEST(PageOf, ExplainsAPartOfACeilingAboveAHundredPercent) {
  Profile profile = test::machine_profile();
  const std::string why = "More than 100 % is possible";
  EXPECT_THAT(page_of({{"p.json", profile}}), Not(HasSubstr(why)));
  const auto cell =
      std::ranges::find_if(profile.cells, [](const Cell& c) { return c.has_value() && c.ceiling; });
  ASSERT_NE(cell, profile.cells.end());
  cell->ceiling->value = cell->p50 / 1.2;
  EXPECT_THAT(page_of({{"p.json", profile}}), HasSubstr(why));
}

TEST(PageOf, WrongSumsAreNeverGood) {
  Report report = test::machine_report();
  report.simulation.reset();
  report.verification = {};
  report.verification.first_error = "rank 3, part 17";
  const std::string page = page_of({{"r.json", report}});
  EXPECT_THAT(page, HasSubstr("<div class=\"verdict bad\">"));
  EXPECT_THAT(page, test::Says("3, part"));
}

TEST(PageOf, TheOrderOfDifferentKindsDoesNotMatterOfOneKindItDoes) {
  const NamedDocument profile{"p.json", test::machine_profile()};
  Profile slower = test::machine_profile();
  slower.name = "another";
  const NamedDocument after{"q.json", slower};
  EXPECT_THAT(page_of({profile, after}), HasSubstr("p.json and q.json"));
  EXPECT_THAT(page_of({after, profile}), HasSubstr("q.json and p.json"));
}

} // namespace
} // namespace reckon
