// SPDX-License-Identifier: Apache-2.0
#include "../strategies/fixtures.hpp"
#include "core/json.hpp"

#include "export/export.hpp"
#include "strategies/lower.hpp"
#include "strategies/plan_network.hpp"
#include "support/refusals.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace reckon::test {
namespace {

struct Example {
  Schedule schedule;
  RankTimelines timeline;
  double seconds = 0;
};

Example example() {
  PlanOptions options{.strategy = "byteps_split",
                      .part_bytes = 4096,
                      .forward_seconds = 10e-6,
                      .backward_seconds = 20e-6};
  const Profile profile = cluster(1e9, 1e9);
  const Plan plan = plan_for(profile, workload({{"a", 20'000}, {"b", 5000}}), 3, 2, options, 2);
  const PlanNetwork network = network_of(plan, profile);
  Example e;
  e.schedule = lower(plan);
  e.seconds = play(e.schedule, network.network, network.cost, &e.timeline).total_seconds;
  return e;
}

TEST(Trace, APlayedTimelineHoldsWhatTheScheduleOrders) {
  const Example e = example();
  std::int64_t last = 0;
  for (std::size_t r = 0; r < e.schedule.ranks.size(); ++r) {
    for (std::size_t l = 0; l < e.schedule.ranks[r].lanes.size(); ++l) {
      const LaneProgram& lane = e.schedule.ranks[r].lanes[l];
      const std::vector<OpSpan>& spans = e.timeline[r][l];
      ASSERT_EQ(spans.size(), lane.ops().size());
      for (std::size_t i = 0; i < spans.size(); ++i) {
        EXPECT_GE(spans[i].begin_ns, 0);
        EXPECT_GE(spans[i].end_ns, spans[i].begin_ns);
        last = std::max(last, spans[i].end_ns);
        for (const std::uint32_t before : lane.dependencies(i)) {
          EXPECT_GE(spans[i].begin_ns, spans[before].end_ns);
        }
        if (lane.ops()[i].kind == OpKind::delay) {
          EXPECT_EQ(spans[i].end_ns - spans[i].begin_ns, lane.ops()[i].duration_ns);
        }
      }
    }
  }
  EXPECT_EQ(last, std::llround(e.seconds * 1e9));
}

TEST(Trace, WhatIsWrittenReadsBackToTheNanosecond) {
  const Example e = example();
  RankTimelines measured = e.timeline;
  std::int64_t step = 0;
  for (RankTimeline& rank : measured) {
    for (std::vector<OpSpan>& lane : rank) {
      for (OpSpan& span : lane) { // a clock that began long ago, and other times
        span.begin_ns += 1'234'567'890'123;
        span.end_ns =
            span.begin_ns + (span.end_ns + 1'234'567'890'123 - span.begin_ns) + ++step % 7;
      }
    }
  }
  const std::vector<NamedTimeline> both{{"predicted", e.timeline}, {"measured", measured}};
  const Json json = parse_json(chrome_trace(e.schedule, both), "trace.json");
  for (const NamedTimeline& written : both) {
    RankTimelines read = read_trace(json, "trace.json", e.schedule, written.name).ops;
    ASSERT_EQ(read.size(), written.ops.size());
    for (std::size_t r = 0; r < read.size(); ++r) {
      for (std::size_t l = 0; l < read[r].size(); ++l) {
        for (std::size_t i = 0; i < read[r][l].size(); ++i) {
          // From the first op on; an arrival is a moment.
          const std::int64_t start = written.name == "measured" ? 1'234'567'890'123 : 0;
          EXPECT_EQ(read[r][l][i].begin_ns + start, written.ops[r][l][i].begin_ns);
          if (e.schedule.ranks[r].lanes[l].ops()[i].kind != OpKind::await) {
            EXPECT_EQ(read[r][l][i].end_ns + start, written.ops[r][l][i].end_ns);
          }
        }
      }
    }
  }
}

TEST(Trace, EventsOfARowDoNotOverlapAndEveryRowHasAName) {
  const Example e = example();
  const NamedTimeline timeline{"predicted", e.timeline};
  const Json json = parse_json(chrome_trace(e.schedule, std::span(&timeline, 1)), "trace.json");
  std::map<std::uint64_t, std::string> names;
  std::map<std::uint64_t, std::vector<std::pair<std::int64_t, std::int64_t>>> rows;
  for (const Json& event : json["traceEvents"]) {
    const std::string kind = event["ph"];
    if (kind == "M" && event["name"] == "thread_name") {
      EXPECT_TRUE(names.emplace(event["tid"], event["args"]["name"]).second);
    } else if (kind == "X") {
      const std::int64_t begin = std::llround(event["ts"].get<double>() * 1000);
      rows[event["tid"]].emplace_back(begin,
                                      begin + std::llround(event["dur"].get<double>() * 1000));
    }
  }
  EXPECT_GT(rows.size(), 10U); // writes of several lanes are under way at once
  for (auto& [row, spans] : rows) {
    EXPECT_TRUE(names.contains(row));
    std::sort(spans.begin(), spans.end());
    for (std::size_t i = 1; i < spans.size(); ++i) {
      EXPECT_GE(spans[i].first, spans[i - 1].second) << names[row];
    }
  }
  EXPECT_TRUE(std::any_of(names.begin(), names.end(),
                          [](const auto& n) { return n.second == "rank 4 lane 1, writes"; }));
  EXPECT_TRUE(std::any_of(names.begin(), names.end(),
                          [](const auto& n) { return n.second == "rank 0 lane 0, passes"; }));
}

TEST(Trace, ATraceOfAnotherPlanIsRefused) {
  const Example e = example();
  const NamedTimeline timeline{"predicted", e.timeline};
  Json json = parse_json(chrome_trace(e.schedule, std::span(&timeline, 1)), "trace.json");
  const auto read = [&](const Schedule& schedule, const std::string& name) {
    return read_trace(json, "trace.json", schedule, name);
  };
  EXPECT_REFUSED(input, "process", read(e.schedule, "measured"));
  Schedule other = e.schedule;
  other.ranks.pop_back();
  EXPECT_REFUSED(input, "trace", read(other, "predicted"));
  other = e.schedule;
  other.ranks[0].lanes[0].append_await(0, 1, 999'999);
  EXPECT_REFUSED(input, "lacks 1 ops", read(other, "predicted"));
  // An op twice in the place of another: as many as there are, and one of them unknown.
  Json twice = json;
  Json* first = nullptr;
  for (auto& event : twice["traceEvents"]) {
    if (event["ph"] != "M" && first != nullptr) {
      event = *first;
      break;
    }
    first = event["ph"] != "M" ? &event : nullptr;
  }
  EXPECT_REFUSED(input, "once", read_trace(twice, "trace.json", e.schedule, "predicted"));
  // Times that nanoseconds in 64 bits do not hold.
  for (auto& event : json["traceEvents"]) {
    if (event.contains("ts")) {
      event["ts"] = 1e300;
    }
  }
  EXPECT_REFUSED(input, "1e+300", read(e.schedule, "predicted"));
}

} // namespace
} // namespace reckon::test
