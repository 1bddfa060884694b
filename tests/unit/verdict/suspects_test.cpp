// SPDX-License-Identifier: Apache-2.0
#include "verdict/suspects.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <string>
#include <tuple>
#include <vector>

namespace reckon {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

/// "d", "a-d" for a path, with "!" where it is certain.
std::vector<std::string> named(const PairVerdict& verdict) {
  std::vector<std::string> out;
  for (const Suspect& s : verdict.suspects) {
    out.push_back(s.a + (s.b.empty() ? "" : "-" + s.b) + (s.certain ? "!" : ""));
  }
  return out;
}

TEST(Suspects, OfThreePairsTheSlowOneIsAPath) {
  // a and b reach 24 together, and a and c.
  const PairVerdict verdict =
      judge_pairs({{"a", "b", 24.1}, {"a", "c", 24}, {"b", "c", 11.9}}, 0.1);
  EXPECT_THAT(named(verdict), ElementsAre("b-c!"));
  EXPECT_DOUBLE_EQ(verdict.expected, 24.05);
  EXPECT_THAT(verdict.next, IsEmpty());
}

TEST(Suspects, APlaceNeedsTwoWitnesses) {
  const std::vector<PairRate> one{{"a", "b", 24}, {"a", "c", 24}, {"a", "d", 12}};
  EXPECT_THAT(named(judge_pairs(one, 0.1)), ElementsAre("d", "a-d"));
  EXPECT_THAT(judge_pairs(one, 0.1).next, ElementsAre(Pair("b", "d")));
  std::vector<PairRate> two = one;
  two.push_back({"d", "c", 12});
  EXPECT_THAT(named(judge_pairs(two, 0.1)), ElementsAre("d!"));
  two.back().rate = 24;
  EXPECT_THAT(named(judge_pairs(two, 0.1)), ElementsAre("a-d!"));
}

TEST(Suspects, APathThatIsSlowerThanItsBadEndIsNoWitness) {
  // d reaches 18 with a, so with b, which reaches 24, it is the path that makes 6.
  const PairVerdict verdict = judge_pairs(
      {{"a", "b", 24}, {"b", "c", 24}, {"a", "c", 24}, {"a", "d", 18}, {"b", "d", 6}}, 0.1);
  EXPECT_THAT(named(verdict), ElementsAre("b-d!", "d", "a-d"));
  EXPECT_THAT(verdict.next, ElementsAre(Pair("c", "d")));
}

TEST(Suspects, ThePartnersAreGoodOnesOfTheSameRail) {
  // m3/n0 was measured with m0/n0 only; m1/n0 is good, and m2/n0 only known to be slow with m0/n0.
  const PairVerdict verdict = judge_pairs({{"m0/n0", "m1/n0", 24},
                                           {"m0/n0", "m2/n0", 12},
                                           {"m0/n0", "m3/n0", 12},
                                           {"m0/n1", "m1/n1", 24}},
                                          0.1);
  EXPECT_THAT(verdict.next, ElementsAre(Pair("m1/n0", "m2/n0"), Pair("m1/n0", "m3/n0")));
  EXPECT_EQ(rounds_of(verdict.next).size(), 2U) << "both use m1";
}

TEST(Suspects, AMachineWhoseNicsAreAllBadIsNamedInsteadOfThem) {
  std::vector<PairRate> pairs;
  for (const char* nic : {"n0", "n1"}) {
    for (const auto& [a, b, rate] : {std::tuple("m0", "m1", 24), std::tuple("m0", "m2", 24),
                                     std::tuple("m0", "m3", 6), std::tuple("m1", "m3", 7)}) {
      pairs.push_back({fmt::format("{}/{}", a, nic), fmt::format("{}/{}", b, nic), double(rate)});
    }
  }
  EXPECT_THAT(named(judge_pairs(pairs, 0.1)), ElementsAre("m3!"));
  pairs.pop_back(); // of n1 one witness is left
  EXPECT_THAT(named(judge_pairs(pairs, 0.1)), ElementsAre("m3/n0!", "m3/n1", "m0/n1-m3/n1"));
}

TEST(Suspects, MachinesOfTwoKindsAreNoFault) {
  std::vector<PairRate> pairs;
  const std::vector<std::string> machines{"a", "b", "c", "d"};
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t j = i + 1; j < 4; ++j) {
      pairs.push_back({machines[i], machines[j], j < 2 ? 24.0 : 12.0}); // c and d have half ports
    }
  }
  const PairVerdict verdict = judge_pairs(pairs, 0.1);
  EXPECT_TRUE(verdict.differ);
  EXPECT_THAT(verdict.suspects, IsEmpty());
}

TEST(Suspects, TheSlowestOfRepeatedPairsCountsAndNoneIsNoFault) {
  EXPECT_THAT(
      named(judge_pairs({{"a", "b", 24}, {"a", "c", 24}, {"b", "c", 24}, {"c", "b", 9}}, 0.1)),
      ElementsAre("b-c!"));
  EXPECT_THAT(judge_pairs({}, 0.1).suspects, IsEmpty());
  EXPECT_THAT(judge_pairs({{"a", "b", 5}}, 0.1).suspects, IsEmpty());
}

} // namespace
} // namespace reckon
