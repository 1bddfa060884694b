// SPDX-License-Identifier: Apache-2.0
#include "documents/plan.hpp"

#include "core/json.hpp"
#include "support/example_documents.hpp"
#include "unit/documents/changed.hpp"

#include <gtest/gtest.h>

namespace reckon {
namespace {

using test::expect_messages;
using test::remove;
using test::set;

// The example: ranks 0 worker (2 lanes), 1 worker and server (2 lanes), 2 server (4 lanes). Runs:
// 4040 bytes of fp32 at 0, 54 of bf16 at 4096. Parts as [offset, bytes, server, lane]: [4096, 54,
// 1, 1], [0, 2048, 2, 3], [2048, 1992, 1, 0].

TEST(Plan, MistakesInLinksAndOptionsAreNamed) {
  const std::string digest_rule = "must be \"sha256:\" and 64 hexadecimal digits in lower case";
  expect_messages(
      to_json(test::example_plan()),
      {
          {{remove("/profile")}, "the key \"profile\" is missing; add it"},
          {{set("/profile/digest", "sha256:12")},
           "/profile/digest: is \"sha256:12\"; " + digest_rule},
          {{set("/workload/digest", "md5:" + std::string(67, '0'))},
           "/workload/digest: is \"md5:" + std::string(56, '0') + "...\"; " + digest_rule},
          {{set("/roles/digest", "sha256:" + std::string(64, 'A'))},
           "/roles/digest: is \"sha256:" + std::string(53, 'A') + "...\"; " + digest_rule},
          // Cut between characters: 59 bytes and an umlaut of two.
          {{set("/stores", std::string(59, 'x') + "\u00fc")},
           "/stores: is \"" + std::string(59, 'x') + "...\"; must be one of cached, streaming"},
          {{set("/profile/date", "today")}, "/profile/date: unknown key; did you mean \"name\"?"},
          {{set("/options/workers", 4)}, "/options/workers: must be a string, is 4"},
          {{set("/strategy", "")},
           "/strategy: must be a name: 1 to 256 characters, no control characters"},
      });
}

TEST(Plan, MistakesInRanksAreNamed) {
  expect_messages(
      to_json(test::example_plan()),
      {
          {{set("/ranks", Json::array())}, "/ranks: is empty; at least one rank is needed"},
          {{set("/ranks/0/worker", false), set("/ranks/1/worker", false)},
           "/ranks: there is no worker; at least one rank must have \"worker\": true"},
          {{set("/ranks/0/lanes", 0)},
           "/ranks/0/lanes: must be a whole number from 1 to 4096, is 0"},
          {{set("/ranks/0/share_bytes", -1)}, "/ranks/0/share_bytes: must not be negative, is -1"},
          {{set("/ranks/2/egress_bytes", 0.5)},
           "/ranks/2/egress_bytes: must be a whole number from 0 to 2^53, is 0.5"},
          {{remove("/ranks/2/egress_bytes")},
           "/ranks/2: the key \"egress_bytes\" is missing; add it"},
          {{set("/ranks/0/assigned_bytes", 7)},
           "/parts: the parts of rank 0 come to 0 bytes, its assigned_bytes are 7"},
      });
}

TEST(Plan, MistakesInRunsAreNamed) {
  expect_messages(
      to_json(test::example_plan()),
      {
          {{set("/gradient_bytes", 0)}, "/gradient_bytes: must be at least 1, is 0"},
          {{set("/gradient_bytes", 4149)},
           "/runs/1: ends at byte 4150, beyond gradient_bytes 4149"},
          {{set("/runs/1/offset_bytes", 4038)},
           "/runs/1/offset_bytes: is 4038, but the run before ends at 4040; runs ascend and do not "
           "overlap"},
          {{set("/runs/0/bytes", 4038)},
           "/runs/0: offset_bytes and bytes must be multiples of 4, the size of fp32"},
          {{set("/runs/1/offset_bytes", 4095)},
           "/runs/1: offset_bytes and bytes must be multiples of 2, the size of bf16"},
          {{set("/runs/0/bytes", 0)}, "/runs/0/bytes: must be at least 1, is 0"},
          {{set("/runs", Json::array())}, "/runs: is empty; at least one run is needed"},
      });
}

TEST(Plan, MistakesInMachineTreesAreNamed) {
  expect_messages(
      to_json(test::example_plan()),
      {
          {{remove("/trees"), remove("/torus"), set("/machine_trees", Json::parse("[[1, 1]]"))},
           "/parts/tree/1: is machine tree 1, but there are 1"},
          {{set("/machine_trees/0", Json::parse("[0, 0]"))},
           "/parts/server/0: is rank 1, which is not the head of machine tree 0"},
          {{set("/machine_trees/1", Json::parse("[0, 0, 0]"))},
           "/machine_trees/1: must name, for each of the 2 workers of a machine, one of them"},
          {{set("/machine_trees/1", Json::parse("[1, 0]"))},
           "/machine_trees/1: leads from worker 0 to no head"},
          {{set("/machine_trees/1", Json::parse("[0, 1]"))},
           "/machine_trees/1: leads from worker 1 to another head than from worker 0"},
          {{set("/ranks/2/worker", true), remove("/ring_order")},
           "/machine_trees/0: is for machines with equally many workers, and these have not"},
          {{set("/groups", 2)}, "/groups: must be at most 1, the number of machines that work"},
      });
}

TEST(Plan, MistakesInPartsAreNamed) {
  expect_messages(
      to_json(test::example_plan()),
      {
          {{remove("/parts/lane/2")},
           "/parts: the columns differ in length: offset_bytes 3, bytes 3, server 3, lane 2"},
          {{set("/parts/server/1", 3)}, "/parts/server/1: is rank 3, but there are 3 ranks"},
          {{set("/parts/lane/1", 4)}, "/parts/lane/1: is lane 4, but rank 2 has 4"},
          {{set("/parts/bytes/0", 0)}, "/parts/bytes/0: must be at least 1, is 0"},
          {{set("/parts/bytes/0", -54)},
           "/parts/bytes/0: must be a whole number from 0 to 2^53, is -54"},
          {{set("/parts/bytes/0", 1ULL << 54U)},
           "/parts/bytes/0: must be a whole number from 0 to 2^53, is 18014398509481984"},
          {{set("/parts/offset_bytes/0", 4098)},
           "/parts/bytes/0: part 0, 54 bytes at byte 4098, ends beyond gradient_bytes 4150"},
          {{set("/parts/offset_bytes/0", 1ULL << 53U)},
           "/parts/bytes/0: part 0, 54 bytes at byte 9007199254740992, ends beyond gradient_bytes "
           "4150"},
          // part 2 moved 4 bytes down: it begins inside part 1
          {{set("/parts/offset_bytes/2", 2044)},
           "/parts/offset_bytes/2: part 2 begins at byte 2044, but 2048 is the first byte that no "
           "other part "
           "covers"},
          {{set("/parts/offset_bytes/2", 2052)},
           "/parts/offset_bytes/2: no part covers the bytes from 2048 to 2052"},
          // the first run ends at 4040
          {{set("/parts/bytes/2", 1996), set("/ranks/1/assigned_bytes", 2050)},
           "/parts/bytes/2: part 2 ends at byte 4044, beyond the end 4040 of its run"},
          {{set("/parts/bytes/2", 1988), set("/ranks/1/assigned_bytes", 2042)},
           "/parts/offset_bytes/0: no part covers the bytes from 4036 to 4096"},
          {{set("/parts/bytes/2", 1990), set("/ranks/1/assigned_bytes", 2044)},
           "/parts/bytes/2: part 2 has 1990 bytes, no multiple of 4, the size of fp32"},
          {{set("/parts/bytes/0", 50), set("/ranks/1/assigned_bytes", 2042)},
           "/parts: no part covers the bytes from 4146 to 4150"},
          {{set("/parts", Json{{"offset_bytes", Json::array()},
                               {"bytes", Json::array()},
                               {"server", Json::array()},
                               {"lane", Json::array()},
                               {"tree", Json::array()}}),
            set("/ranks/1/assigned_bytes", 0), set("/ranks/2/assigned_bytes", 0)},
           "/parts: no part covers the bytes from 0 to 4040"},
          {{set("/parts/offset_bytes/3", 4150), set("/parts/bytes/3", 2), set("/parts/server/3", 1),
            set("/parts/lane/3", 0), set("/parts/tree/3", 0), set("/ranks/1/assigned_bytes", 2048),
            set("/gradient_bytes", 4152)},
           "/parts/offset_bytes/3: part 3 lies outside of /runs"},
          {{remove("/parts/tree")}, "/parts: the key \"tree\" is missing; add it"},
          {{set("/parts/tree/0", 2)}, "/parts/tree/0: is tree 2, but there are 2"},
          {{remove("/trees"), set("/parts/tree/0", 2)}, "/parts/tree/0: is way 2, but there are 2"},
          {{set("/parts/tree/0", 1)},
           "/parts/server/0: is rank 1, which is not the root of tree 1"},
          {{remove("/trees"), remove("/torus"), remove("/machine_trees")},
           "/parts/tree: names trees, but the plan has none; remove it or add \"trees\""},
          {{set("/trees/0/up/0", 3)}, "/trees/0/up/0: is rank 3, but there are 3 ranks"},
          {{remove("/trees/1/down/2")}, "/trees/1/down: has 2 entries for 3 ranks"},
          {{set("/window_parts", 0)}, "/window_parts: must be at least 1, is 0"},
          {{set("/part_bytes", 0)}, "/part_bytes: must be at least 1, is 0"},
      });
}

TEST(Plan, MistakesInPredictionsAreNamed) {
  expect_messages(
      to_json(test::example_plan()),
      {
          {{set("/prediction/lo_seconds", 0.8)},
           "/prediction: lo_seconds 0.8 <= mid_seconds 0.75 <= hi_seconds 1 must hold"},
          {{set("/prediction/hi_seconds", 0.7)},
           "/prediction: lo_seconds 0.625 <= mid_seconds 0.75 <= hi_seconds 0.7 must hold"},
          {{set("/prediction/bound_seconds", 0.76)},
           "/prediction/mid_seconds: is 0.75, below bound_seconds 0.76, which nothing can beat"},
          {{set("/prediction/terms/0/seconds", 0.6)},
           "/prediction/terms: sum to 0.85, not to mid_seconds 0.75"},
          {{set("/prediction/terms/0/seconds", 0.1)},
           "/prediction/terms: sum to 0.35, not to mid_seconds 0.75"},
          {{set("/prediction/terms/1/name", "transport")},
           "/prediction/terms/1/name: the term \"transport\" occurs twice, first at "
           "/prediction/terms/0/name; "
           "rename or remove one"},
          {{set("/prediction/bound_seconds", -1)},
           "/prediction/bound_seconds: must not be negative, is -1"},
          {{set("/candidates/1/prediction/lo_seconds", 9)},
           "/candidates/1/prediction: lo_seconds 9 <= mid_seconds 1.5 <= hi_seconds 2 must hold"},
          {{set("/candidates/2/prediction", to_json(test::example_plan())["prediction"])},
           "/candidates/2: must have either a \"prediction\" or a \"reason\" why the strategy does "
           "not apply"},
          {{remove("/candidates/2/reason")},
           "/candidates/2: must have either a \"prediction\" or a \"reason\" why the strategy does "
           "not apply"},
          {{set("/candidates/1/strategy", "byteps_split")},
           "/candidates/1/strategy: the strategy \"byteps_split\" occurs twice, first at "
           "/candidates/0/strategy; "
           "rename or remove one"},
          {{set("/quantities/0/value", "4")}, "/quantities/0/value: must be a number, is \"4\""},
          {{set("/quantities/0/inputs/n", false)},
           "/quantities/0/inputs/n: must be a number, is false"},
      });
}

TEST(Report, MistakesAreNamed) {
  expect_messages(
      to_json(test::example_report()),
      {
          {{set("/kind", "dream")}, "/kind: is \"dream\"; must be one of run, simulation"},
          {{set("/iteration_seconds", Json::array())},
           "/iteration_seconds: is empty; at least one iteration is needed"},
          {{set("/iteration_seconds/1", 0)}, "/iteration_seconds/1: must be greater than 0, is 0"},
          {{set("/min_seconds", 0.81)},
           "min_seconds 0.81 <= p50_seconds 0.8 <= p99_seconds 0.85 must hold"},
          {{set("/p99_seconds", 0.7)},
           "min_seconds 0.75 <= p50_seconds 0.8 <= p99_seconds 0.7 must hold"},
          {{set("/goodput_over_bound", -0.1)},
           "/goodput_over_bound: must not be negative, is -0.1"},
          {{set("/tolerance", -0.1)}, "/tolerance: must not be negative, is -0.1"},
          {{set("/stages/1/name", "total")},
           "/stages/1/name: the stage \"total\" occurs twice, first at /stages/0/name; rename or "
           "remove one"},
          {{set("/stages/0/measured_seconds", -1)},
           "/stages/0/measured_seconds: must not be negative, is -1"},
          {{set("/ranks", Json::array())}, "/ranks: is empty; at least one rank is needed"},
          {{set("/ranks/0/cpu_seconds", -1)}, "/ranks/0/cpu_seconds: must not be negative, is -1"},
          {{set("/verification/ok", true)},
           "/verification/ok: is true, but there are wrong elements or an error"},
          {{set("/verification/wrong_elements", 0), remove("/verification/first_error")},
           "/verification/ok: is false, but there is no wrong element and no first_error; say why"},
      });
}

TEST(Plan, WhatSpeaksOfAbsentMembersIsNotRead) {
  Json json = to_json(test::example_plan());
  json.erase("routing");
  json.erase("tensors");
  json["queues"] = "fcfs";
  for (Json& rank : json["ranks"]) {
    rank.erase("endpoint");
    rank["endpoint_kind"] = "gpu";
  }
  const Plan plan = plan_from_json(json, "plan");
  EXPECT_FALSE(plan.one_queue);
  EXPECT_EQ(plan.ranks.front().endpoint_kind, "");
}

} // namespace
} // namespace reckon
