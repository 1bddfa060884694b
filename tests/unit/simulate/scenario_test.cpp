// SPDX-License-Identifier: Apache-2.0
#include "simulate/scenario.hpp"

#include "fixtures.hpp"

#include <utility>

namespace reckon {
namespace {

using namespace test;

TEST(Scenario, TakesLinksByNameAndPortsByRank) {
  const SimNetwork network = ports(3, 1e9);
  const Scenario s = scenario_of({"link=rank 1 in:0.5", "rank=2:0.25"}, {"rank=0:2", "1=3x"},
                                 {"0->2:1GB/s@5ms", "2->1:8Gb/s"}, network);
  EXPECT_EQ(s.slow_stations,
            (std::vector<std::pair<std::uint32_t, double>>{{3, 0.5}, {4, 0.25}, {5, 0.25}}));
  EXPECT_EQ(s.stragglers, (std::vector<std::pair<std::uint32_t, double>>{{0, 2}, {1, 3}}));
  ASSERT_EQ(s.backgrounds.size(), 2U);
  EXPECT_EQ(s.backgrounds[0].from, 0U);
  EXPECT_EQ(s.backgrounds[0].to, 2U);
  EXPECT_EQ(s.backgrounds[0].bytes_per_s, 1e9);
  EXPECT_EQ(s.backgrounds[0].start_s, 0.005);
  EXPECT_EQ(s.backgrounds[1].bytes_per_s, 1e9);
  EXPECT_EQ(s.texts.size(), 6U);
}

TEST(Scenario, WhatIsNotThereIsAUsageErrorThatShowsWhatIs) {
  const SimNetwork network = ports(3, 1e9);
  const auto refused = [&](const std::vector<std::string>& slow,
                           const std::vector<std::string>& stragglers,
                           const std::vector<std::string>& backgrounds) -> std::string {
    try {
      static_cast<void>(scenario_of(slow, stragglers, backgrounds, network));
      return "accepted";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::usage);
      return e.what();
    }
  };
  const auto expect = [](const std::string& message, const char* words) {
    EXPECT_NE(message.find(words), std::string::npos) << message;
  };
  expect(refused({"link=rank 1 inn:0.5"}, {}, {}), "did you mean 'rank 1 in'?");
  expect(refused({"link=x:0.5"}, {}, {}), "there are rank 0 out, rank 0 in");
  expect(refused({"rank 1 in:0.5"}, {}, {}), "neither a link nor a rank");
  expect(refused({"rank=3:0.5"}, {}, {}), "the plan has 0 to 2");
  expect(refused({"rank=1"}, {}, {}), "there is no ':'");
  expect(refused({"rank=1:0"}, {}, {}), "'0' is no factor");
  expect(refused({"rank=1:nan"}, {}, {}), "'nan' is no factor");
  expect(refused({}, {"3"}, {}), "it names no rank");
  expect(refused({}, {"rank=5:2"}, {}), "the plan has 0 to 2");
  expect(refused({}, {"1=x"}, {}), "'' is no factor");
  expect(refused({}, {}, {"0->5:1GB/s"}), "the plan has 0 to 2");
  expect(refused({}, {}, {"0:1GB/s"}), "there is no '->'");
  expect(refused({}, {}, {"0->1:1GB"}), "--background");
  expect(refused({}, {}, {"1->1:1GB/s"}), "no link between ranks 1 and 1");
}

} // namespace
} // namespace reckon
