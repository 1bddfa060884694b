// SPDX-License-Identifier: Apache-2.0
#include "simulate/scenario.hpp"

#include "fixtures.hpp"
#include "support/refusals.hpp"

#include <fmt/format.h>

#include <utility>

namespace reckon {
namespace {

using namespace test;

TEST(Scenario, TakesLinksByNameAndPortsByRank) {
  const SimNetwork network = ports(3, 1e9);
  const Scenario s = scenario_of({{"link=rank 1 in:50%", "rank=2:0.25x"},
                                  {"rank=0:2", "1=3x"},
                                  {"0->2:1GB/s@5ms", "2->1:8Gb/s"},
                                  true},
                                 network);
  EXPECT_EQ(s.slow_stations,
            (std::vector<std::pair<std::uint32_t, double>>{{3, 0.5}, {4, 0.25}, {5, 0.25}}));
  EXPECT_EQ(s.stragglers, (std::vector<Straggler>{{0, 2}, {1, 3}}));
  ASSERT_EQ(s.backgrounds.size(), 2U);
  EXPECT_EQ(s.backgrounds[0].from, 0U);
  EXPECT_EQ(s.backgrounds[0].to, 2U);
  EXPECT_EQ(s.backgrounds[0].bytes_per_s, 1e9);
  EXPECT_EQ(s.backgrounds[0].start_s, 0.005);
  EXPECT_EQ(s.backgrounds[1].bytes_per_s, 1e9);
  EXPECT_TRUE(s.no_buffers);
  EXPECT_EQ(s.texts.size(), 7U);
  EXPECT_TRUE(scenario_of({}, network).texts.empty());
}

TEST(Scenario, SeveralPortsAreLinksOfTheirNamesAndARankIsAllOfThem) {
  // Rank 2 has ports of stations 10 to 13, the others one each.
  const SimNetwork network = several_ports({{1e9}, {1e9}, {1e9, 1e9}});
  const Scenario s = scenario_of({{"rank=2:0.25"}, {}, {"0->1:1GB/s", "2->0:1GB/s@5ms"}}, network);
  EXPECT_EQ(s.slow_stations, (std::vector<std::pair<std::uint32_t, double>>{
                                 {10, 0.25}, {11, 0.25}, {12, 0.25}, {13, 0.25}}));
  EXPECT_EQ(scenario_of({{"link=rank 2 eth1 in:0.5"}}, network).slow_stations,
            (std::vector<std::pair<std::uint32_t, double>>{{13, 0.5}}));
  EXPECT_EQ(s.texts[0], "the ports of rank 2 at 0.25 of their rates");
  // Two lanes have one way between ranks with a port each, and two from rank 2: half on each.
  ASSERT_EQ(s.backgrounds.size(), 3U);
  EXPECT_EQ(s.backgrounds[0].bytes_per_s, 1e9);
  for (const std::uint32_t lane : {0U, 1U}) {
    EXPECT_EQ(s.backgrounds[1 + lane].lane, lane);
    EXPECT_EQ(s.backgrounds[1 + lane].bytes_per_s, 0.5e9);
    EXPECT_EQ(s.backgrounds[1 + lane].text, 2U);
  }
  EXPECT_EQ(s.texts[2], "traffic from rank 2 to 0 of up to 1 GB/s over 2 ways after 5 ms");
  EXPECT_EQ(s.texts.size(), 3U);
}

TEST(Scenario, LinksOfOneNameAreAllMeant) {
  SimNetwork network = several_ports({{1e9}, {1e9, 1e9}});
  network.names[9] = network.names[7]; // both ports' way in
  const Scenario s = scenario_of({{fmt::format("link={}:0.5", network.names[7])}, {}, {}}, network);
  EXPECT_EQ(s.slow_stations, (std::vector<std::pair<std::uint32_t, double>>{{7, 0.5}, {9, 0.5}}));
  EXPECT_EQ(s.texts,
            (std::vector<std::string>{"the 2 links rank 1 eth0 in at 0.5 of their rates"}));
}

TEST(Scenario, WhatIsNotThereIsAUsageErrorThatShowsWhatIs) {
  const SimNetwork network = ports(3, 1e9);
  struct Case {
    ScenarioOptions options;
    const char* words;
  };
  for (const Case& c : {Case{{{"link=rank 1 inn:0.5"}}, "did you mean 'rank 1 in'?"},
                        {{{"link=x:0.5"}}, "there are rank 0 out, rank 0 in"},
                        {{{"rank 1 in:0.5"}}, "no link and no rank"},
                        {{{"rank=3:0.5"}}, "the plan has ranks 0 to 2"},
                        {{{"rank=1"}}, "there is no ':'"},
                        {{{"rank=1:0"}}, "--slow rank=1:0: '0' must be a factor"},
                        {{{"rank=1:nan"}}, "'nan'"},
                        {{{"rank=1:5 apples"}}, "such as 0.5, 2x or 50%"},
                        {{{"rank=1:2x"}}, "2x is faster, not slower"},
                        {{{"rank=1:0.5", "link=rank 1 out:0.5"}}, "rank 1 out is slower already"},
                        {{{}, {"3"}}, "write RANK=FACTORx"},
                        {{{}, {"rank=5:2"}}, "a rank from 0 to 2"},
                        {{{}, {"1=x"}}, "--straggler 1=x: 'x'"},
                        {{{}, {"1=0.5x"}}, "a factor from 1 to"},
                        {{{}, {"1=2x", "rank=1:3"}}, "rank 1 is one already"},
                        {{{}, {}, {"0->5:1GB/s"}}, "the plan has ranks 0 to 2"},
                        {{{}, {}, {"0:1GB/s"}}, "there is no '->'"},
                        {{{}, {}, {"0->1:1GB"}}, "--background 0->1:1GB: "},
                        {{{}, {}, {"1->1:1GB/s"}}, "no link between ranks 1 and 1"}}) {
    EXPECT_REFUSED(usage, c.words, scenario_of(c.options, network));
  }
}

TEST(Scenario, TheMemoryOfAllRanksIsNoRanksPort) {
  SimNetwork memory;
  memory.stations.station_bytes_per_s = {1e9};
  memory.stations.paths.assign(2, std::vector<std::vector<std::uint32_t>>(2, {0}));
  memory.names = {"memory"};
  EXPECT_EQ(scenario_of({{"link=memory:0.5"}}, memory).slow_stations.size(), 1U);
  EXPECT_REFUSED(usage, "memory", scenario_of({{"rank=1:0.5"}}, memory));
}

TEST(Scenario, ALinkThatNoLanePassesIsNone) {
  // Where several ports carry together what each does alone, nothing is behind them.
  const SimNetwork apart = several_ports({{1e9}, {1e9, 1e9}});
  EXPECT_REFUSED(usage, "rank 0", scenario_of({{"link=rank 1 out:0.5"}}, apart));
  const SimNetwork bound = several_ports({{1e9}, {1e9, 1e9}}, {1e9, 1.5e9});
  EXPECT_EQ(scenario_of({{"link=rank 1 out:0.5"}}, bound).slow_stations.front().first, 2U);
}

} // namespace
} // namespace reckon
