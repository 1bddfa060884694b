// SPDX-License-Identifier: Apache-2.0
#include "../strategies/fixtures.hpp"

#include "export/export.hpp"
#include "strategies/lower.hpp"
#include "strategies/plan_network.hpp"
#include "strategies/play.hpp"
#include "support/refusals.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <optional>
#include <queue>
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
  // Two parts of 40,000 bytes, each summed once, by the rank that owns it, on the part's processor.
  // The two before are the lane's, the second of them for one layer's passes.
  for (std::size_t r = 0; r < 2; ++r) {
    std::multiset<std::pair<std::uint64_t, std::uint32_t>> times;
    for (const GoalOp& op : goal.ranks[r]) {
      if (op.kind == "calc") {
        times.insert({op.amount, op.processor});
      }
    }
    EXPECT_EQ(times,
              (std::multiset<std::pair<std::uint64_t, std::uint32_t>>{
                  {40'000 * (r + 1), 2 + static_cast<std::uint32_t>(r)}, {3000, 1}, {1500, 1}}));
  }
}

TEST(Goal, ThePlanIsSaidToHaveTheNetworksLogGopsParameters) {
  const auto line = [](const ExportNetwork& network) {
    Schedule schedule;
    schedule.ranks.resize(2);
    for (std::uint32_t r = 0; r < 2; ++r) {
      schedule.ranks[r].lanes.resize(1);
      schedule.ranks[r].lanes[0].append_write(0, 1 - r, 0, {}, {}, 8, {});
    }
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

/// LogGOPSim's rules with o = O = 0 and eager sends: a message holds its sender's and its
/// receiver's port, and at the receiver the processor that has the number of the sender's; what is
/// done frees what needs it, from when their processors are free on, whatever time it is. Returns
/// when the last processor is free, in seconds.
class LogGopSim {
public:
  LogGopSim(const Goal& goal, double seconds_per_byte)
      : m_goal(goal), m_second_per_byte(seconds_per_byte), m_processor(goal.ranks.size()),
        m_out(goal.ranks.size()), m_in(goal.ranks.size()), m_missing(goal.ranks.size()),
        m_needed_by(goal.ranks.size()), m_posted(goal.ranks.size()), m_came(goal.ranks.size()) {
    for (std::size_t r = 0; r < goal.ranks.size(); ++r) {
      m_processor[r].resize(256);
      m_needed_by[r].resize(goal.ranks[r].size());
      for (std::size_t i = 0; i < goal.ranks[r].size(); ++i) {
        m_missing[r].push_back(goal.ranks[r][i].before.size());
        for (const std::size_t before : goal.ranks[r][i].before) {
          m_needed_by[r][before].push_back(i);
        }
        if (m_missing[r].back() == 0) {
          add({0, 0, r, i, false});
        }
      }
    }
  }

  double run() {
    while (!m_events.empty()) {
      const Event event = m_events.top();
      m_events.pop();
      step(event);
    }
    double end = 0;
    for (const std::vector<double>& processors : m_processor) {
      end = std::max(end, *std::max_element(processors.begin(), processors.end()));
    }
    return end;
  }

private:
  struct Event {
    double time = 0;
    std::size_t number = 0, rank = 0, op = 0; ///< the sender's, of a message
    bool message = false;
    bool operator<(const Event& other) const { // the first is the greatest
      return std::pair(time, number) > std::pair(other.time, other.number);
    }
  };

  void add(Event event) {
    event.number = m_number++;
    m_events.push(event);
  }

  void step(Event event) {
    const GoalOp& op = m_goal.ranks[event.rank][event.op];
    const bool sends = op.kind == "send";
    const std::size_t here = event.message ? op.peer : event.rank;
    double& processor = m_processor[here][op.processor];
    double& port = event.message ? m_in[here] : m_out[here];
    const double seconds = m_second_per_byte * static_cast<double>(op.amount);
    if (op.kind != "recv") {
      const double free = std::max(processor, sends ? port : 0);
      if (free > event.time) {
        event.time = free;
        m_events.push(event);
        return;
      }
    }
    if (event.message) {
      processor = port = event.time + seconds;
      const auto at = m_posted[here].find({event.rank, op.tag});
      if (at == m_posted[here].end()) {
        m_came[here].insert({event.rank, op.tag});
      } else {
        done(here, at->second);
      }
    } else if (sends) {
      port = event.time + seconds;
      add({event.time, 0, event.rank, event.op, true});
      done(here, event.op);
    } else if (op.kind == "calc") {
      processor = event.time + 1e-9 * static_cast<double>(op.amount);
      done(here, event.op);
    } else if (m_came[here].contains({op.peer, op.tag})) {
      done(here, event.op);
    } else {
      m_posted[here][{op.peer, op.tag}] = event.op;
    }
  }

  void done(std::size_t rank, std::size_t op) {
    for (const std::size_t next : m_needed_by[rank][op]) {
      if (--m_missing[rank][next] == 0) {
        const GoalOp& freed = m_goal.ranks[rank][next];
        const double processor = m_processor[rank][freed.processor];
        add({freed.kind == "send" ? std::max(processor, m_out[rank]) : processor, 0, rank, next,
             false});
      }
    }
  }

  using Message = std::pair<std::size_t, std::uint32_t>; ///< sender, tag
  const Goal& m_goal;
  double m_second_per_byte;
  std::vector<std::vector<double>> m_processor;
  std::vector<double> m_out, m_in;
  std::vector<std::vector<std::size_t>> m_missing;
  std::vector<std::vector<std::vector<std::size_t>>> m_needed_by;
  std::vector<std::map<Message, std::size_t>> m_posted;
  std::vector<std::set<Message>> m_came;
  std::priority_queue<Event> m_events;
  std::size_t m_number = 0;
};

TEST(Goal, LogGopSimTakesAsLongAsThePrediction) {
  constexpr double k_port = 1e9;
  struct Case {
    std::string strategy;
    std::uint64_t workers, servers;
    int lanes;
    double sums; ///< bytes per second of a lane's sums
    std::uint64_t elements = 3'000'000;
  };
  // Sums that a port is faster than, slower than, and that take no time; at last short gradients,
  // where the time that one sum takes counts, one of them of as many parts as ranks.
  for (const Case& c :
       {Case{"ring", 4, 0, 2, 2e9}, Case{"ring", 4, 0, 1, 0.3e9}, Case{"ring", 4, 0, 1, 1e15},
        Case{"ps_colocated", 4, 0, 2, 2e9}, Case{"ps_colocated", 4, 0, 1, 0.3e9},
        Case{"byteps_split", 4, 2, 3, 2e9}, Case{"ps_noncolocated", 4, 4, 2, 2e9},
        Case{"ps_noncolocated", 8, 8, 1, 0.7e9, 50'000}, Case{"ring", 4, 0, 1, 0.3e9, 16'384}}) {
    SCOPED_TRACE(testing::Message()
                 << c.strategy << ", " << c.lanes << " lanes, sums of " << c.sums);
    PlanOptions options{.strategy = c.strategy, .part_bytes = 16'384};
    const Profile profile = cluster(k_port, k_port);
    const Plan plan =
        plan_for(profile, workload({{"a", c.elements}}), c.workers, c.servers, options, c.lanes);
    const Schedule schedule = lower(plan);
    const PlanNetwork links = network_of(plan, profile);
    const auto sums = [&](std::size_t, const Op& op) {
      return static_cast<double>(op.bytes) / c.sums;
    };
    const double predicted = play(schedule, links.network, sums).total_seconds;
    const Goal goal(goal_text(schedule, "test", GoalTimes{sums, {links.network, {}, 0}}));
    EXPECT_NEAR(LogGopSim(goal, 1 / k_port).run() / predicted, 1, 0.03);
  }
}

TEST(Goal, MoreLanesThanTheFormatHasProcessorsAreRefused) {
  Schedule schedule;
  schedule.ranks.resize(1);
  schedule.ranks[0].lanes.resize(128);
  EXPECT_REFUSED(input, "--lanes", goal_text(schedule, "test", std::nullopt));
  schedule.ranks[0].lanes.resize(127);
  EXPECT_NO_THROW(static_cast<void>(goal_text(schedule, "test", std::nullopt)));
}

} // namespace
} // namespace reckon::test
