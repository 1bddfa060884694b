// SPDX-License-Identifier: Apache-2.0
#include "../strategies/fixtures.hpp"

#include "export/export.hpp"
#include "strategies/lower.hpp"
#include "support/refusals.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <tuple>

namespace reckon::test {
namespace {

struct GoalOp {
  std::string kind; ///< send, recv, calc
  std::uint64_t amount = 0;
  std::uint32_t peer = 0, tag = 0, processor = 0;
  std::vector<std::size_t> before;
  bool operator==(const GoalOp&) const = default;
};

/// A reader of GOAL texts, by the grammar of LogGOPSim's txt2bin: each line is one of six, and a
/// label must be defined before it is required.
struct Goal {
  std::vector<std::vector<GoalOp>> ranks;

  explicit Goal(const std::string& text) {
    static const std::regex count("num_ranks ([0-9]+)"), begin("rank ([0-9]+) \\{"),
        message("([a-zA-Z][a-zA-Z0-9_]*): (send|recv) ([0-9]+)b (to|from) ([0-9]+) tag ([0-9]+) "
                "cpu ([0-9]+)"),
        calc("([a-zA-Z][a-zA-Z0-9_]*): calc ([0-9]+) cpu ([0-9]+)"),
        edge("([a-zA-Z][a-zA-Z0-9_]*) requires ([a-zA-Z][a-zA-Z0-9_]*)");
    std::istringstream lines(text);
    std::map<std::string, std::size_t> labels;
    std::optional<std::size_t> rank;
    std::smatch m;
    const auto number = [&](std::size_t group) { return std::stoull(m[group].str()); };
    const auto small = [&](std::size_t group) { return static_cast<std::uint32_t>(number(group)); };
    const auto add = [&](GoalOp op) {
      EXPECT_TRUE(labels.emplace(m[1], ranks.at(*rank).size()).second) << m[1];
      ranks[*rank].push_back(std::move(op));
    };
    for (std::string line; std::getline(lines, line);) {
      if (line.empty() || line.starts_with("//")) {
        continue;
      }
      if (std::regex_match(line, m, count)) {
        ranks.resize(number(1));
      } else if (!rank && std::regex_match(line, m, begin)) {
        rank = number(1);
        labels.clear();
      } else if (rank && line == "}") {
        rank.reset();
      } else if (rank && std::regex_match(line, m, message)) {
        EXPECT_EQ(m[4], m[2] == "send" ? "to" : "from") << line;
        add({m[2], number(3), small(5), small(6), small(7), {}});
      } else if (rank && std::regex_match(line, m, calc)) {
        add({"calc", number(2), 0, 0, small(3), {}});
      } else if (rank && std::regex_match(line, m, edge) && labels.contains(m[1]) &&
                 labels.contains(m[2])) {
        ranks[*rank][labels[m[1]]].before.push_back(labels[m[2]]);
      } else {
        ADD_FAILURE() << "no line of the grammar, or a label that is not defined: " << line;
      }
    }
    EXPECT_FALSE(rank.has_value()) << "a bracket is open";
  }
};

/// Runs what was read: a receive is done when the send that matches it is. Returns bytes by (from,
/// to), and expects that every op is done in the end and no message is left.
std::map<std::pair<std::size_t, std::size_t>, std::uint64_t> replay(const Goal& goal) {
  using Key = std::tuple<std::size_t, std::size_t, std::uint32_t>;
  std::map<Key, std::deque<std::uint64_t>> under_way;
  std::map<std::pair<std::size_t, std::size_t>, std::uint64_t> bytes;
  std::vector<std::vector<bool>> done(goal.ranks.size());
  for (std::size_t r = 0; r < goal.ranks.size(); ++r) {
    done[r].resize(goal.ranks[r].size());
  }
  std::size_t left = 0;
  for (bool any = true; any;) {
    any = false;
    left = 0;
    for (std::size_t r = 0; r < goal.ranks.size(); ++r) {
      for (std::size_t i = 0; i < goal.ranks[r].size(); ++i) {
        const GoalOp& op = goal.ranks[r][i];
        const bool ready = !done[r][i] && std::all_of(op.before.begin(), op.before.end(),
                                                      [&](std::size_t b) { return done[r][b]; });
        if (ready && op.kind == "send") {
          auto& queue = under_way[{r, op.peer, op.tag}];
          EXPECT_TRUE(queue.empty()) << "two messages from " << r << " to " << op.peer
                                     << " have tag " << op.tag << " at once";
          queue.push_back(op.amount);
          bytes[{r, op.peer}] += op.amount;
        } else if (ready && op.kind == "recv") {
          auto& queue = under_way[{op.peer, r, op.tag}];
          if (queue.empty()) {
            ++left;
            continue;
          }
          EXPECT_EQ(queue.front(), op.amount);
          queue.pop_front();
        } else if (!ready) {
          left += done[r][i] ? 0U : 1U;
          continue;
        }
        done[r][i] = any = true;
      }
    }
  }
  EXPECT_EQ(left, 0U) << "ops that can never be done";
  for (const auto& [key, queue] : under_way) {
    EXPECT_TRUE(queue.empty()) << "a message that nobody receives";
  }
  return bytes;
}

std::map<std::pair<std::size_t, std::size_t>, std::uint64_t> written(const Schedule& schedule) {
  std::map<std::pair<std::size_t, std::size_t>, std::uint64_t> bytes;
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    for (const LaneProgram& lane : schedule.ranks[r].lanes) {
      for (const Op& op : lane.ops()) {
        if (op.kind == OpKind::write) {
          bytes[{r, op.peer}] += op.bytes;
        }
      }
    }
  }
  return bytes;
}

void expect_same_graph(const Schedule& schedule, const Goal& goal) {
  ASSERT_EQ(goal.ranks.size(), schedule.ranks.size());
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    std::size_t first = 0;
    for (std::size_t l = 0; l < schedule.ranks[r].lanes.size(); ++l) {
      const LaneProgram& lane = schedule.ranks[r].lanes[l];
      for (std::size_t i = 0; i < lane.ops().size(); ++i) {
        ASSERT_LT(first + i, goal.ranks[r].size());
        const Op& op = lane.ops()[i];
        const GoalOp& read = goal.ranks[r][first + i];
        EXPECT_EQ(read.kind, op.kind == OpKind::write   ? "send"
                             : op.kind == OpKind::await ? "recv"
                                                        : "calc");
        if (op.kind == OpKind::write || op.kind == OpKind::await) {
          EXPECT_EQ(read.peer, op.peer);
        }
        const std::size_t lanes = schedule.ranks[r].lanes.size();
        EXPECT_EQ(read.processor, op.kind == OpKind::write || op.kind == OpKind::await ? l
                                  : op.kind == OpKind::delay ? 2 * lanes + l
                                                             : lanes + l);
        std::set<std::size_t> before;
        for (const std::uint32_t d : lane.dependencies(i)) {
          before.insert(first + d);
        }
        EXPECT_EQ(std::set<std::size_t>(read.before.begin(), read.before.end()), before);
      }
      first += lane.ops().size();
    }
    EXPECT_EQ(goal.ranks[r].size(), first);
  }
}

TEST(Goal, APlanReadBackHasTheSameGraphAndMovesTheSameBytesBetweenEachPair) {
  struct Case {
    std::string strategy;
    std::uint64_t workers, servers;
    int lanes;
  };
  for (const Case& c : {Case{"ring", 4, 0, 1}, Case{"ring", 3, 0, 2},
                        Case{"ps_noncolocated", 3, 2, 2}, Case{"byteps_split", 3, 2, 2}}) {
    SCOPED_TRACE(c.strategy);
    PlanOptions options{.strategy = c.strategy, .part_bytes = 4096};
    const Plan plan = plan_for(cluster(1e9, 1e9), workload({{"a", 20'000}}), c.workers, c.servers,
                               options, c.lanes);
    const Schedule schedule = lower(plan);
    const Goal goal(goal_text(schedule, "test", std::nullopt));
    expect_same_graph(schedule, goal);
    EXPECT_EQ(replay(goal), written(schedule));
  }
}

/// Two ranks, each with a port: stations 0 and 1 out, 2 and 3 in.
ExportNetwork two_ports(double bytes_per_s) {
  ExportNetwork network;
  network.network.station_bytes_per_s = std::vector<double>(4, bytes_per_s);
  network.network.paths = {{{}, {0, 3}}, {{1, 2}, {}}};
  return network;
}

TEST(Goal, LocalOpsAndPassesLastAsManyNanosecondsAsTheyAreSaidTo) {
  PlanOptions options{.strategy = "ring",
                      .part_bytes = 40'000,
                      .forward_seconds = 1.5e-6,
                      .backward_seconds = 3e-6};
  const Plan plan = plan_for(cluster(1e9, 1e9), workload({{"a", 20'000}}), 2, 0, options);
  const GoalTimes given{[](std::size_t rank, const Op& op) {
                          return 1e-9 * static_cast<double>(op.bytes * (rank + 1)) +
                                 0.4e-9; // rounded down
                        },
                        two_ports(1e9)};
  const Goal goal(goal_text(lower(plan), "test", given));
  // Two parts of 40,000 bytes, each summed once, by the rank that owns it, on the second processor;
  // one layer's passes, on the third.
  for (std::size_t r = 0; r < 2; ++r) {
    std::multiset<std::pair<std::uint64_t, std::uint32_t>> times;
    for (const GoalOp& op : goal.ranks[r]) {
      if (op.kind == "calc") {
        times.insert({op.amount, op.processor});
      }
    }
    EXPECT_EQ(times, (std::multiset<std::pair<std::uint64_t, std::uint32_t>>{
                         {40'000 * (r + 1), 1}, {3000, 2}, {1500, 2}}));
  }
}

TEST(Goal, ThePlanIsSaidToHaveTheNetworksLogGopsParameters) {
  const auto line = [](const ExportNetwork& network) {
    Schedule schedule;
    schedule.ranks.resize(2);
    const std::string text =
        goal_text(schedule, "test", GoalTimes{[](std::size_t, const Op&) { return 0.0; }, network});
    const std::size_t third = text.find('\n', text.find('\n') + 1) + 1;
    return text.substr(third, text.find('\n', third) - third);
  };
  ExportNetwork network = two_ports(8e9); // a byte takes 0.125 ns
  network.network.latency_s = 5e-6;
  network.write_overhead_s = 1e-6;
  EXPECT_EQ(line(network), "// LogGOPS in ns: L=5000 o=0 g=1000 G=0.125 O=0");

  // A station that both ways pass, and can slow neither, changes nothing; one that both need does.
  ExportNetwork shared = network;
  shared.network.station_bytes_per_s.push_back(16e9);
  shared.network.paths[0][1] = {0, 4, 3};
  shared.network.paths[1][0] = {1, 4, 2};
  EXPECT_EQ(line(shared), line(network));
  shared.network.station_bytes_per_s[4] = 15e9;
  EXPECT_EQ(line(shared),
            "// no LogGOPS parameters, one rate and latency for all: 15 GB/s that 2 ranks share");

  ExportNetwork unequal = network;
  unequal.network.station_bytes_per_s[3] = 4e9;
  EXPECT_EQ(line(unequal),
            "// no LogGOPS parameters, one rate and latency for all: ports of 8 and 4 GB/s");
  ExportNetwork far = network;
  far.network.path_latency_s = {{0, 1e-6}, {2e-6, 0}};
  EXPECT_EQ(line(far),
            "// no LogGOPS parameters, one rate and latency for all: latencies of 1 and 2 us");
  ExportNetwork curve = network;
  curve.network.station_busy.resize(4);
  curve.network.station_busy[2] = BusyCurve({{1000, 1e-6}});
  EXPECT_EQ(line(curve), "// no LogGOPS parameters, one rate and latency for all: a curve of its "
                         "own from rank 1 to 0");
  network.network.paths[0][1].clear();
  EXPECT_EQ(line(network),
            "// no LogGOPS parameters, one rate and latency for all: ranks 0 and 1 share memory");
}

TEST(Goal, MoreLanesThanTheFormatHasProcessorsAreRefused) {
  Schedule schedule;
  schedule.ranks.resize(1);
  schedule.ranks[0].lanes.resize(128);
  EXPECT_REFUSED(input,
                 "rank 0 has 128 lanes of 2 processors each, and a GOAL file's ranks have at most "
                 "255; plan with fewer --lanes",
                 goal_text(schedule, "test", std::nullopt));
  schedule.ranks[0].lanes.resize(127);
  EXPECT_NO_THROW(static_cast<void>(goal_text(schedule, "test", std::nullopt)));
  schedule.ranks[0].lanes[0].append(Op{.kind = OpKind::delay}, {});
  EXPECT_REFUSED(input, "127 lanes of 3 processors each",
                 goal_text(schedule, "test", std::nullopt));
}

} // namespace
} // namespace reckon::test
