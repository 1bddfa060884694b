// SPDX-License-Identifier: Apache-2.0
#include "documents/repeats.hpp"

#include "core/error.hpp"
#include "core/json.hpp"
#include "documents/json.hpp"
#include "support/example_documents.hpp"
#include "unit/documents/changed.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <string>

namespace reckon {
namespace {

using documents::RepeatWriter;
using documents::source_of;
using Numbers = std::vector<std::int64_t>;

std::string text_of(const Numbers& numbers) {
  return RepeatWriter().elements(numbers).dump();
}

/// Two ranks, twelve parts of four bytes each, of the first rank and the second in turn, each part
/// with a tree whose root is its server.
Plan plan_of_turns() {
  Plan plan = test::example_plan();
  plan.ranks.resize(2);
  plan.ranks[0].assigned_bytes = plan.ranks[1].assigned_bytes = 24;
  plan.ranks[0].lanes = plan.ranks[1].lanes = 1;
  plan.ranks[0].worker = plan.ranks[1].worker = true;
  plan.ranks[0].lane_places.clear();
  plan.ranks[1].lane_places.clear();
  plan.gradient_bytes = 48;
  plan.runs = {{0, 48, DType::fp32}};
  plan.parts = {};
  for (std::uint64_t i = 0; i < 12; ++i) {
    plan.parts.offset_bytes.push_back(4 * i);
    plan.parts.bytes.push_back(4);
    plan.parts.server.push_back(i % 2);
    plan.parts.lane.push_back(0);
    plan.parts.tree.push_back(i % 2);
  }
  plan.trees = {{"ring", {0, 0}, {0, 0}, 0.5}, {"ring", {1, 1}, {1, 1}, 0.5}};
  plan.ring_order.clear();
  plan.machine_trees.clear();
  plan.routing.clear();
  plan.tensors.clear();
  plan.one_queue = false;
  plan.torus.reset();
  plan.passes.reset();
  plan.root = 0;
  return plan;
}

TEST(Repeats, StandForSixNumbersOrMore) {
  EXPECT_EQ(text_of({}), "[]");
  EXPECT_EQ(text_of({7, 7, 7, 7, 7, 7}), "[7,7,7,7,7,7]");
  EXPECT_EQ(text_of({7, 7, 7, 7, 7, 7, 7}), "[7,[6,1,0]]");
  Numbers all(100);
  std::iota(all.begin(), all.end(), -1);
  EXPECT_EQ(text_of(all), "[-1,[99,1,1]]");
}

TEST(Repeats, SayTheTurnsOfARingAndWhatIsMovedOnce) {
  // Three rounds over four ranks: after the first every number is that of four places before.
  EXPECT_EQ(text_of({0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3}), "[0,1,2,3,[8,4,0]]");
  // Rank r of machine m is 8 m + r; machine by machine, the same order moved by 8.
  EXPECT_EQ(text_of({3, 0, 2, 11, 8, 10, 19, 16, 18}), "[3,0,2,[6,3,8]]");
}

TEST(Repeats, GoBackIntoTheListsBefore) {
  RepeatWriter writer;
  const Numbers chain{0, 0, 1, 2, 3, 4, 5, 6};
  EXPECT_EQ(writer.elements(chain).dump(), "[0,0,[6,1,1]]");
  EXPECT_EQ(writer.elements(chain).dump(), "[[8,8,0]]"); // the mirror is one repeat
  // From 2 on the chain moved by two ranks: number 18 of all is number 8 and 2 more.
  EXPECT_EQ(writer.elements({0, 0, 2, 2, 3, 4, 5, 6}).dump(), "[0,0,[6,10,2]]");
}

TEST(Repeats, AreOnOneLineOfACanonicalText) {
  EXPECT_EQ(canonical(Json{{"a", {0, {6, 1, 0}}}}), "{\n  \"a\": [0, [6, 1, 0]]\n}\n");
}

TEST(Repeats, SourceIsTheElementThatANumberComesFrom) {
  const Json list = Json::parse("[5, [6, 1, 0], 9]");
  const JsonView view(list, "f");
  EXPECT_EQ(source_of(view, 0).pointer(), "/0");
  EXPECT_EQ(source_of(view, 1).pointer(), "/1");
  EXPECT_EQ(source_of(view, 6).pointer(), "/1");
  EXPECT_EQ(source_of(view, 7).pointer(), "/2");
}

TEST(Repeats, APlanWithAndWithoutThemIsTheSame) {
  const Plan plan = plan_of_turns();
  const Json compact = to_json(plan);
  const Json& parts = compact.at("parts");
  EXPECT_EQ(parts.at("offset_bytes").dump(), "[0,[11,1,4]]");
  EXPECT_EQ(parts.at("bytes").dump(), "[4,[11,1,0]]");
  EXPECT_EQ(parts.at("server").dump(), "[0,1,[10,2,0]]");
  EXPECT_EQ(parts.at("tree").dump(), "[0,1,[10,2,0]]");
  EXPECT_EQ(plan_from_json(compact, "f"), plan);
  Json older = compact; // as plans were written before there were repeats
  older["parts"]["offset_bytes"] = plan.parts.offset_bytes;
  older["parts"]["bytes"] = plan.parts.bytes;
  older["parts"]["server"] = plan.parts.server;
  older["parts"]["lane"] = plan.parts.lane;
  older["parts"]["tree"] = plan.parts.tree;
  EXPECT_NE(older, compact);
  EXPECT_EQ(plan_from_json(older, "f"), plan);
  // Not the repeats that a writer takes: what is written is the same all the same.
  Json other = compact;
  other["parts"]["server"] = Json::parse("[0, 1, [2, 2, 0], [4, 4, 0], [4, 6, 0]]");
  other["trees"][1]["up"] = Json::parse("[[2, 4, 1]]");
  EXPECT_EQ(to_json(plan_from_json(other, "f")), compact);
}

TEST(Repeats, MistakesAreNamed) {
  const Json compact = to_json(plan_of_turns());
  const auto repeat = [](const char* text) { return Json::parse(text); };
  test::expect_messages(
      compact,
      {
          {{test::set("/parts/server/2", repeat("[10, 2]"))},
           "/parts/server/2: has 2 members; a repeat is [count, back, step]: so many numbers, each "
           "by so much more than the one so many places before it"},
          {{test::set("/parts/server/2/0", 0)}, "/parts/server/2/0: must be at least 1, is 0"},
          {{test::set("/parts/server/2/1", 0)}, "/parts/server/2/1: must be at least 1, is 0"},
          {{test::set("/parts/server/2/1", 3)},
           "/parts/server/2/1: goes back 3 places, but 2 numbers stand before; a repeat is of "
           "numbers before it"},
          {{test::set("/parts/server/2/2", 0.5)},
           "/parts/server/2/2: must be a whole number from -2^53 to 2^53, is 0.5"},
          {{test::set("/parts/server/2/2", -1)},
           "/parts/server/2/2: makes number 0 of this repeat -1; must be at least 0"},
          {{test::set("/parts/server/2/0", 1ULL << 40U)},
           "/parts/server/2/0: is 1099511627776, which makes more than 16777216 numbers"},
          // 0 1, then 2 3 4 ...: the first that is no rank comes from the repeat
          {{test::set("/parts/server/2/2", 2)},
           "/parts/server/2: is rank 2, but there are 2 ranks"},
          {{test::set("/parts/tree/2", repeat("[9, 2, 0]"))},
           "/parts/tree: has 11 entries, bytes has 12"},
          // the lists before are 0 0, 0 0
          {{test::set("/trees/1/up", repeat("[[2, 5, 0]]"))},
           "/trees/1/up/0/1: goes back 5 places, but 4 numbers stand before; a repeat is of "
           "numbers "
           "before it"},
          {{test::set("/trees/1/up", repeat("[[2, 4, 2]]"))},
           "/trees/1/up/0: is rank 2, but there are 2 ranks"},
          {{test::set("/trees/0/up", repeat("[[2, 1, 0]]"))},
           "/trees/0/up/0/1: goes back 1 places, but 0 numbers stand before; a repeat is of "
           "numbers "
           "before it"},
      });
}

} // namespace
} // namespace reckon
