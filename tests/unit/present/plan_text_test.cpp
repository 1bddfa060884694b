// SPDX-License-Identifier: Apache-2.0
#include "present/document_text.hpp"
#include "present/option_text.hpp"
#include "support/example_documents.hpp"

#include <gmock/gmock.h>

namespace reckon {
namespace {

using namespace testing;

TEST(OptionText, HasTheUnitThatTheNameSays) {
  EXPECT_EQ(option_text("part_bytes", "1048576"), "1 MiB");
  EXPECT_EQ(option_text("proxy_bytes", "1.048576e+07"), "10 MiB");
  EXPECT_EQ(option_text("tolerance", "0.02"), "2.0 %");
  EXPECT_EQ(option_text("port_bandwidth", "12500000000 B/s"), "12.5 GB/s");
  EXPECT_EQ(option_text("forward", "0.03 s"), "30.00 ms");
}

TEST(OptionText, LeavesWhatIsNoNumberOfBytesAsItIs) {
  for (const auto& [name, value] :
       {std::pair("proxy_bytes", "all"), std::pair("part_bytes", "auto"), std::pair("workers", "4"),
        std::pair("lanes", "auto")}) {
    EXPECT_EQ(option_text(name, value), value) << name;
  }
}

/// Two tensors of 100 bytes, one client with two proxies.
Plan proxy_plan() {
  Plan p;
  p.strategy = "coarse";
  p.options = {{"proxy_bytes", "auto"}};
  p.ranks.resize(3);
  p.parts = {{0, 100}, {100, 100}, {1, 1}, {0, 0}};
  p.tensors = {{"a", false, 0, 1}, {"b", true, 1, 1}};
  p.routing = {{0, 1, 2, 2048, {2048}, 65536}};
  p.prediction.mid_seconds = p.prediction.lo_seconds = p.prediction.hi_seconds = 2;
  p.prediction.terms = {{"transport", 1.5}, {"fill", 0.5}};
  p.quantities = {{"paper_proxy_bytes", 4096, "equation 32", {{"n", 8192}, {"p", 4}}}};
  return p;
}

TEST(Explain, SaysOfAPlanOverMemoryDevicesWhyItIsSo) {
  EXPECT_THAT(explain(proxy_plan(), Style{}),
              AllOf(HasSubstr("n = 8 KiB, p = 4"), HasSubstr("T_lat(S) = T_bw(S)"),
                    HasSubstr("64 KiB"), HasSubstr("among 4 KiB of (32), none"),
                    HasSubstr("1 tensor with 100 B through the proxies; 1 tensor with 100 B"),
                    HasSubstr("where the time goes"), HasSubstr("75 %")));
}

TEST(Explain, SaysWhichOfSeveralCrossingsAndWhichMWereTaken) {
  Plan p = proxy_plan();
  p.routing[0].crossings_bytes = {1024, 2048};
  p.options["proxy_bytes"] = "150";
  EXPECT_THAT(explain(p, Style{}),
              AllOf(HasSubstr("of the crossings at 1 KiB, 2 KiB"), HasSubstr("asked for: 150 B")));
}

TEST(RenderPlan, HasNoRoutingTableWhereNothingGoesThroughTheProxies) {
  Plan p = proxy_plan();
  EXPECT_THAT(render(p, Style{}), HasSubstr("rank 2"));
  p.tensors[0].by_workers = true;
  EXPECT_THAT(render(p, Style{}),
              AllOf(HasSubstr("no tensor goes through the proxies: all 2 tensors with 200 B"),
                    Not(HasSubstr("rank 2"))));
}

TEST(RenderPlan, SaysOneThingWhereThereIsNoRange) {
  Plan p = proxy_plan();
  EXPECT_THAT(render(p, Style{}), HasSubstr("no range: each rate is one value"));
  p.prediction.hi_seconds = 3;
  EXPECT_THAT(render(p, Style{}), HasSubstr("2.000 s to 3.000 s"));
}

TEST(RenderPlan, HasOneTextForANegativeMargin) {
  Plan p = proxy_plan();
  p.candidates = {{"coarse", p.prediction, ""}};
  p.runner_up = "ring";
  p.margin = -0.23;
  p.margin_text = "ring is predicted 23.0 % faster; this strategy was asked for";
  EXPECT_THAT(render(p, Style{}),
              AllOf(HasSubstr("  " + p.margin_text), Not(HasSubstr("runner-up"))));
}

} // namespace
} // namespace reckon
