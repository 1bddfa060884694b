// SPDX-License-Identifier: Apache-2.0
#include "present/document_text.hpp"
#include "present/option_text.hpp"
#include "support/example_documents.hpp"
#include "support/messages.hpp"

#include <gmock/gmock.h>

namespace reckon {
namespace {

using namespace testing;

TEST(OptionText, HasTheUnitThatTheNameSays) {
  EXPECT_EQ(option_text("part_bytes", "1048576"), "1 MiB");
  EXPECT_EQ(option_text("proxy_bytes", "1.048576e+07"), "10 MiB");
  EXPECT_EQ(option_text("bandwidth_slack", "0.02"), "2.0 %");
  EXPECT_EQ(option_text("port_bandwidth", "12500000000 B/s"), "12.5 GB/s");
  EXPECT_EQ(option_text("port_bandwidth", "12500000000 B/s +-10%"), "12.5 GB/s +-10%");
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
              AllOf(test::Says("n = 8"), HasSubstr("T_lat(S) = T_bw(S)"), HasSubstr("64 KiB"),
                    test::Says("among 4"), test::Says("1 tensor"), test::Says("time goes"),
                    HasSubstr("75 %")));
}

TEST(Explain, SaysWhichOfSeveralCrossingsAndWhichMWereTaken) {
  Plan p = proxy_plan();
  p.routing[0].crossings_bytes = {1024, 2048};
  p.options["proxy_bytes"] = "150";
  EXPECT_THAT(explain(p, Style{}), AllOf(test::Says("crossings"), test::Says("asked")));
}

TEST(RenderPlan, HasNoRoutingTableWhereNothingGoesThroughTheProxies) {
  Plan p = proxy_plan();
  EXPECT_THAT(render(p, Style{}), HasSubstr("rank 2"));
  p.tensors[0].by_workers = true;
  EXPECT_THAT(render(p, Style{}), AllOf(test::Says("2 tensors"), Not(HasSubstr("rank 2"))));
}

TEST(RenderPlan, SaysOneThingWhereThereIsNoRange) {
  Plan p = proxy_plan();
  EXPECT_THAT(render(p, Style{}), test::Says("range"));
  p.prediction.hi_seconds = 3;
  EXPECT_THAT(render(p, Style{}), test::Says("2.000"));
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

/// Two GPUs of two machines each, the sums in each first.
Plan tree_plan() {
  Plan p;
  p.strategy = "hierarchical_ring";
  p.prediction.mid_seconds = p.prediction.lo_seconds = p.prediction.hi_seconds = 2;
  for (std::uint64_t i = 0; i < 4; ++i) {
    PlanRank rank;
    rank.machine = "m0";
    rank.machine_number = i / 2;
    rank.endpoint = i % 2 == 0 ? "m0/gpu0" : "m0/gpu1";
    rank.endpoint_kind = "gpu";
    rank.worker = true;
    p.ranks.push_back(rank);
  }
  p.trees = {{"hierarchical ring", {0, 0, 0, 2}, {0, 0, 0, 2}, 0.125},
             {"hierarchical ring", {1, 1, 1, 1}, {1, 1, 1, 1}, 0.875}};
  Prediction busiest;
  busiest.mid_seconds = busiest.lo_seconds = busiest.hi_seconds = 1;
  busiest.bound_by = "m0.0 port nic0 out";
  p.candidates = {{p.strategy, busiest, ""}, {"ring", busiest, ""}};
  p.candidates[1].prediction->mid_seconds = p.candidates[1].prediction->hi_seconds = 1.5;
  p.runner_up = "ring";
  p.margin = 0.5;
  return p;
}

TEST(RenderPlan, SaysOfTreesThatCandidatesAreComparedByTheirBusiestLinkAndWhichThatIs) {
  Plan p = tree_plan();
  EXPECT_THAT(render(p, Style{}),
              AllOf(test::Says("candidates"), test::Says("m0.0 port"), test::Says("margin 50")));
  EXPECT_THAT(render(p, Style{}), Not(HasSubstr("\nlimit"))); // the head says it
  p.candidates[1].prediction->mid_seconds = 0.097;
  EXPECT_THAT(render(p, Style{}), HasSubstr("10.3 x faster"));
  p.candidates[1].prediction->mid_seconds = 1.5;
  p.margin_text = "same time as mix";
  EXPECT_THAT(render(p, Style{}), test::Says("margin 50"));
  p.margin = 0; // the runner-up is the one that the text names
  EXPECT_THAT(render(p, Style{}), AllOf(test::Says("same time"), Not(HasSubstr("runner-up"))));
}

TEST(RenderPlan, HasSharesOfTreesToThreeDigitsAndPlacesInRanges) {
  EXPECT_THAT(render(tree_plan(), Style{}),
              AllOf(test::Says("m0.0/gpu0"), test::Says("m0.0/gpu1")));
}

TEST(RenderPlan, SaysWhichMachinesWorkWhichOnlySumAndWhichAreUnused) {
  Plan p = tree_plan();
  EXPECT_THAT(render(p, Style{}), test::Says("(m0.0-1)"));
  p.quantities.push_back({std::string(k_unused_machines), 3, "neither work nor sum: m0.2-4", {}});
  EXPECT_THAT(render(p, Style{}), test::Says("(m0.0-1)"));
}

TEST(RenderPlan, SaysBesideThePredictionWhatCountsAsFree) {
  Plan p = tree_plan();
  p.assumed = {"the step of adam takes no time", "the exchange takes no time"};
  const std::string shown = render(p, Style{});
  EXPECT_LT(shown.find("predicted"), shown.find("the step of adam takes no time"));
  EXPECT_LT(shown.find("the exchange takes no time"), shown.find("candidates"));
  EXPECT_THAT(explain(p, Style{}), test::Says("assumed"));
}

TEST(RenderPlan, SaysOfCandidatesOfAPlanWithPassesThatTheirTimesAreWithoutThem) {
  Plan p = tree_plan();
  EXPECT_THAT(render(p, Style{}), test::Says("candidates"));
  p.passes = Passes{{4}, {1.0}, {1.0}};
  EXPECT_THAT(render(p, Style{}), test::Says("without"));
}

TEST(RenderPlan, SaysWhichServersThatWereAskedForSumNothing) {
  Plan p = tree_plan();
  p.options["servers"] = "2";
  EXPECT_THAT(render(p, Style{}), test::Says("2 servers"));
  PlanRank& server = p.ranks.emplace_back();
  server.machine = "cpu";
  server.machine_number = 0;
  server.server = true;
  for (SumTree& tree : p.trees) {
    tree.up.push_back(-1);
    tree.down.push_back(-1);
  }
  EXPECT_THAT(render(p, Style{}), test::Says("(cpu.0)"));
  p.options["servers"] = "1";
  EXPECT_THAT(render(p, Style{}), Not(HasSubstr("servers sum")));
}

TEST(RenderPlan, SaysWhichServersHaveNothingToDo) {
  Plan p = proxy_plan();
  p.ranks[0].worker = true;
  for (PlanRank& rank : p.ranks) {
    rank.egress_bytes = rank.ingress_bytes = 100;
  }
  EXPECT_THAT(render(p, Style{}), Not(HasSubstr("nothing to do")));
  p.ranks[2].egress_bytes = p.ranks[2].ingress_bytes = 0;
  EXPECT_THAT(render(p, Style{}), test::Says("nothing"));
}

TEST(RenderPlan, CountsTheLanesOfEachServer) {
  Plan p = proxy_plan(); // a part in lane 0 of rank 1, and one of rank 2's
  p.parts.server = {1, 2};
  p.parts.lane = {0, 0};
  EXPECT_THAT(render(p, Style{}), test::Says("1 lane"));
  p.parts = {{0, 100, 200}, {100, 100, 100}, {1, 1, 2}, {0, 1, 0}};
  EXPECT_THAT(render(p, Style{}), test::Says("2 lanes"));
}

TEST(RenderPlan, SaysThatRanksWithPortsAreMachines) {
  Plan p = proxy_plan();
  EXPECT_THAT(render(p, Style{}), Not(HasSubstr("machine of its own")));
  for (PlanRank& rank : p.ranks) {
    rank.port_bytes_per_second = 1e9;
  }
  EXPECT_THAT(render(p, Style{}), test::Says("ranks"));
}

} // namespace
} // namespace reckon
