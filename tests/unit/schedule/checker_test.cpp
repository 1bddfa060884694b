// SPDX-License-Identifier: Apache-2.0
#include "schedule/checker.hpp"

#include "schedule/snapshot.hpp"
#include "support/cases.hpp"
#include "support/messages.hpp"

#include <gmock/gmock.h>

#include <array>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace reckon {
namespace {

using testing::HasSubstr;

constexpr std::uint32_t k_inbox = 1;

/// Two workers with a gradient of 64 bytes and one lane each, in which nothing is done yet.
Schedule two_workers(const std::vector<std::uint64_t>& buffer_bytes) {
  Schedule s;
  s.runs = {{0, 64, DType::fp32}};
  s.worker = {true, true};
  s.ranks.resize(2);
  for (RankProgram& r : s.ranks) {
    r.buffer_bytes = buffer_bytes;
    r.lanes.resize(1);
  }
  return s;
}

/// Two workers, one 64-byte part that rank 1 sums in place: the smallest correct exchange.
///   rank 0: write gradient -> rank 1's inbox (tag 0); await the sum (tag 7)
///   rank 1: await tag 0; gradient = gradient + inbox; write gradient -> rank 0's gradient (tag 7)
struct Exchange {
  Op push{.kind = OpKind::write, .peer = 1, .tag = 0, .destination = {k_inbox, 0}, .bytes = 64};
  Op arrival{.kind = OpKind::await, .peer = 0, .tag = 0};
  Op reduce{.bytes = 64};
  Op back{.kind = OpKind::write, .peer = 0, .tag = 7, .bytes = 64};
  Op result{.kind = OpKind::await, .peer = 1, .tag = 7};
  std::vector<Slice> operands{{k_gradient_buffer, 0}, {k_inbox, 0}};
  bool back_waits_for_sum = true;
  bool sum_waits_for_arrival = true;
  std::uint64_t inbox_bytes = 64;

  [[nodiscard]] Schedule build() const {
    Schedule s = two_workers({64, inbox_bytes});
    s.ranks[0].lanes[0].append(push, {});
    s.ranks[0].lanes[0].append(result, {});
    LaneProgram& server = s.ranks[1].lanes[0];
    const std::array<std::uint32_t, 1> arrived{server.append(arrival, {})};
    const std::array<std::uint32_t, 1> summed{
        server.append_reduce(reduce, operands,
                             sum_waits_for_arrival ? std::span<const std::uint32_t>(arrived)
                                                   : std::span<const std::uint32_t>())};
    server.append(back, back_waits_for_sum ? std::span<const std::uint32_t>(summed)
                                           : std::span<const std::uint32_t>());
    return s;
  }
};

std::string first_fault(const Schedule& s) {
  const CheckResult result = check(s);
  return result.ok() ? "" : result.faults.front();
}

TEST(Checker, AcceptsTheSmallestExchange) {
  const CheckResult result = check(Exchange().build());
  EXPECT_THAT(result.faults, testing::IsEmpty());
  EXPECT_EQ(result.ops, 5U);
}

TEST(Checker, CountsTrafficOncePerWrite) {
  const Traffic t = traffic_of(Exchange().build());
  EXPECT_THAT(t.egress_bytes, testing::ElementsAre(64, 64));
  EXPECT_THAT(t.ingress_bytes, testing::ElementsAre(64, 64));
}

/// Two workers that share memory, one 64-byte part: rank 0 says that its gradient is there (tag 0),
/// rank 1 sums both where they lie and says so (tag 7).
struct SharedSum {
  bool waits_for_gradient = true, says_after_sum = true;
  std::vector<Slice> operands{{1, 0}, {k_gradient_buffer, 0}};
  std::vector<PeerBuffer> peer_buffers{{0, k_gradient_buffer}};
  std::uint64_t bytes = 64;

  [[nodiscard]] Schedule build() const {
    Schedule s = two_workers({64});
    s.ranks[1].peer_buffers = peer_buffers;
    s.ranks[0].lanes[0].append_write(0, 1, 0, {}, {}, 0, {});
    s.ranks[0].lanes[0].append_await(0, 1, 7);
    LaneProgram& server = s.ranks[1].lanes[0];
    std::vector<std::uint32_t> after{server.append_await(0, 0, 0)};
    if (!waits_for_gradient) {
      after.clear();
    }
    const std::vector<std::uint32_t> sum{
        server.append_over({.kind = OpKind::sum_in_place, .bytes = bytes}, operands, after)};
    server.append_write(0, 0, 7, {}, {}, 0, says_after_sum ? sum : std::vector<std::uint32_t>());
    return s;
  }
};

TEST(Checker, AcceptsASumWhereTheGradientsLieAndCountsItsTraffic) {
  const Schedule schedule = SharedSum().build();
  EXPECT_THAT(check(schedule).faults, testing::IsEmpty());
  const Traffic t = traffic_of(schedule);
  EXPECT_THAT(t.egress_bytes, testing::ElementsAre(64, 64));
  EXPECT_THAT(t.ingress_bytes, testing::ElementsAre(64, 64));
}

TEST(Checker, FindsWhatIsWrongWithASumInPlace) {
  struct Case {
    const char* what;
    void (*damage)(SharedSum&);
    const char* fault;
  };
  const Case cases[] = {
      {"one gradient only", [](SharedSum& s) { s.operands.pop_back(); },
       "worker 1 0 times instead of every worker once"},
      {"its own twice", [](SharedSum& s) { s.operands[0] = s.operands[1]; }, "two operands"},
      {"a peer that it has not", [](SharedSum& s) { s.operands[0].buffer = 2; }, "lies outside"},
      {"its own as a peer's",
       [](SharedSum& s) {
         s.peer_buffers = {{1, 0}};
       },
       "is no other rank's"},
      {"no such buffer",
       [](SharedSum& s) {
         s.peer_buffers = {{0, 1}};
       },
       "is no other rank's"},
      {"beyond the end", [](SharedSum& s) { s.operands[0].offset = 4; }, "lies outside"},
      {"before the gradient is there", [](SharedSum& s) { s.waits_for_gradient = false; },
       "does not wait for the word of rank 0"},
      {"still at work when it says that it is done", [](SharedSum& s) { s.says_after_sum = false; },
       "rank 0, in whose memory it sums, is not told"},
      {"half an element", [](SharedSum& s) { s.bytes = 62; }, "not whole elements"},
      {"half of it", [](SharedSum& s) { s.bytes = 32; }, "gradient bytes [32, 64) end with"},
      {"nothing", [](SharedSum& s) { s.operands.clear(); }, "sums nothing"}};
  for (const Case& c : cases) {
    SharedSum sum;
    c.damage(sum);
    EXPECT_THAT(first_fault(sum.build()), HasSubstr(c.fault)) << c.what;
  }
}

TEST(Checker, FindsARaceForAPeersMemory) {
  // Another op of the peer reads its gradient while it is summed.
  Schedule schedule = SharedSum().build();
  schedule.ranks[0].buffer_bytes.push_back(64);
  schedule.ranks[0].lanes[0].append({.kind = OpKind::copy, .destination = {1, 0}, .bytes = 64}, {});
  EXPECT_THAT(first_fault(schedule), HasSubstr("races with"));
}

TEST(Checker, FindsWhatIsWrongWithAnExchange) {
  struct Case {
    const char* what;
    void (*damage)(Exchange&);
    const char* fault;
  };
  for (const Case& c :
       {Case{"a tag that nobody awaits", [](Exchange& e) { e.push.tag = 1; },
             "rank 1 never awaits its tag 1"},
        {"a slice outside its buffer", [](Exchange& e) { e.inbox_bytes = 63; },
         "lies outside buffer 1 of rank 1"},
        {"a slice whose offset and bytes would wrap",
         [](Exchange& e) {
           e.push.source = {k_gradient_buffer, UINT64_MAX - 8};
         },
         "lies outside buffer 0"},
        {"a write to oneself", [](Exchange& e) { e.push.peer = 0; }, "is not another rank"},
        {"a missing operand",
         [](Exchange& e) {
           e.operands = {{k_inbox, 0}};
         },
         "worker 1 0 times"},
        {"an operand counted twice",
         [](Exchange& e) {
           e.operands.push_back({k_inbox, 0});
         },
         "worker 0 2 times"},
        {"a sum of half an element", [](Exchange& e) { e.reduce.bytes = 62; },
         "not whole elements"},
        {"half a part left out",
         [](Exchange& e) { e.push.bytes = e.reduce.bytes = e.back.bytes = 32; },
         "gradient bytes [32, 64) end with"},
        {"a sum that does not wait", [](Exchange& e) { e.sum_waits_for_arrival = false; }, ""},
        {"a result sent before it is summed", [](Exchange& e) { e.back_waits_for_sum = false; },
         ""}}) {
    SCOPED_TRACE(c.what);
    Exchange e;
    c.damage(e);
    const CheckResult result = check(e.build());
    ASSERT_FALSE(result.ok());
    EXPECT_THAT(result.faults.front(), HasSubstr(c.fault));
  }
}

TEST(Checker, FindsATagThatNobodyWrites) {
  Schedule s = Exchange().build();
  s.ranks[0].lanes[0].append({.kind = OpKind::await, .peer = 1, .tag = 99}, {});
  EXPECT_THAT(first_fault(s), test::Says("nobody"));
}

TEST(Checker, FindsATagUsedTwice) {
  const Exchange e;
  Schedule s = e.build();
  s.ranks[0].lanes[0].append(e.push, {});
  EXPECT_THAT(first_fault(s), test::Says("twice"));
}

TEST(Checker, FindsAnAwaitFromTheWrongRank) {
  Schedule s = Exchange().build();
  s.ranks.push_back(s.ranks[0]); // rank 2 writes with rank 0's tags
  s.worker.push_back(false);
  EXPECT_FALSE(check(s).ok());
}

TEST(Checker, FindsADeadlockAcrossRanks) {
  // Each rank awaits the other before it writes.
  Schedule s;
  s.worker = {false, false};
  s.ranks.resize(2);
  for (std::uint32_t r = 0; r < 2; ++r) {
    s.ranks[r].buffer_bytes = {8};
    s.ranks[r].lanes.resize(1);
    Op wait{.kind = OpKind::await, .peer = 1 - r};
    const std::array<std::uint32_t, 1> waited{s.ranks[r].lanes[0].append(wait, {})};
    Op write{.peer = 1 - r, .bytes = 8};
    s.ranks[r].lanes[0].append(write, waited);
  }
  EXPECT_THAT(first_fault(s), test::Says("part 0"));
}

TEST(Checker, FindsASlotWrittenAgainTooEarly) {
  // Rank 0 writes twice into the same slot; rank 1 sums after each arrival, but nothing makes the
  // second write wait.
  Schedule s;
  s.worker = {false, false};
  s.ranks.resize(2);
  s.ranks[0].buffer_bytes = {16};
  s.ranks[1].buffer_bytes = {16, 8};
  s.ranks[0].lanes.resize(1);
  s.ranks[1].lanes.resize(1);
  for (std::uint32_t i = 0; i < 2; ++i) {
    Op write{.peer = 1, .tag = i, .source = {0, 8 * i}, .destination = {k_inbox, 0}, .bytes = 8};
    s.ranks[0].lanes[0].append(write, {});
    Op wait{.kind = OpKind::await, .tag = i};
    const std::array<std::uint32_t, 1> waited{s.ranks[1].lanes[0].append(wait, {})};
    const Op copy{
        .kind = OpKind::copy, .source = {k_inbox, 0}, .destination = {0, 8 * i}, .bytes = 8};
    s.ranks[1].lanes[0].append(copy, waited);
  }
  EXPECT_THAT(first_fault(s), HasSubstr("races with"));
}

/// Two workers whose changes the second adds to the latest parameters: what comes from rank 0 in
/// lane 0, its own in `own_lane`. Each has its own change, and rank 1 what else there is.
Schedule changes_of_latest(std::uint32_t own_lane) {
  enum : std::uint32_t { gradient, inbox, latest, local };
  Schedule s = two_workers({64, 64, 64, 64});
  s.outcome = Outcome::latest;
  for (RankProgram& rank : s.ranks) {
    rank.lanes.resize(2);
    rank.parameters = {{{local, 0}, 0, 64}};
  }
  s.ranks[1].parameters.push_back({{latest, 0}, 0, 64, true});
  const auto step = [](LaneProgram& lane, Slice change, Slice parameters,
                       std::span<const std::uint32_t> after) {
    return lane.append_over({.kind = OpKind::update, .destination = parameters, .bytes = 64},
                            std::span(&change, 1), after);
  };
  LaneProgram& first = s.ranks[0].lanes[0];
  first.append_write(0, 1, 0, {gradient, 0}, {inbox, 0}, 64, {});
  step(first, {gradient, 0}, {local, 0}, {});
  const std::vector<std::uint32_t> arrived{s.ranks[1].lanes[0].append_await(0, 0, 0)};
  step(s.ranks[1].lanes[0], {inbox, 0}, {latest, 0}, arrived);
  LaneProgram& own = s.ranks[1].lanes[own_lane];
  const std::vector<std::uint32_t> changed{step(own, {gradient, 0}, {latest, 0}, {})};
  own.append({.kind = OpKind::copy, .source = {latest, 0}, .destination = {local, 0}, .bytes = 64},
             changed);
  return s;
}

TEST(Checker, ChangesOfTheLatestComeInAnyOrderOfOneLaneAndRaceInTwo) {
  EXPECT_EQ(first_fault(changes_of_latest(0)), "");
  EXPECT_THAT(first_fault(changes_of_latest(1)), HasSubstr("races with"));
}

/// Two workers that step parameters of their own with the sum of their gradients; rank 1 saves what
/// it had.
Schedule saved_step(bool after_step) {
  enum : std::uint32_t { gradient, inbox, parameters, saved };
  Schedule s = Exchange().build();
  s.outcome = Outcome::parameters;
  for (RankProgram& rank : s.ranks) {
    rank.buffer_bytes = {64, 64, 64, 64};
    rank.parameters = {{{parameters, 0}, 0, 64}};
    LaneProgram& lane = rank.lanes[0];
    const bool saves = &rank == &s.ranks[1];
    // The sum is there with rank 0's last op and rank 1's second.
    std::vector<std::uint32_t> before{1};
    const Op copy{
        .kind = OpKind::copy, .source = {parameters, 0}, .destination = {saved, 0}, .bytes = 64};
    if (saves && !after_step) {
      before.push_back(lane.append(copy, {}));
    }
    const Slice sum{gradient, 0};
    const std::vector<std::uint32_t> stepped{
        lane.append_over({.kind = OpKind::update, .destination = {parameters, 0}, .bytes = 64},
                         std::span(&sum, 1), before)};
    if (saves && after_step) {
      lane.append(copy, stepped);
    }
    rank.kept = kept_runs(rank);
  }
  s.ranks[1].saved = {{s.ranks[1].kept.at(0), {saved, 0}}};
  return s;
}

TEST(Checker, FindsWhatIsSavedAfterItsStep) {
  EXPECT_EQ(first_fault(saved_step(false)), "");
  EXPECT_THAT(first_fault(saved_step(true)), HasSubstr("saved after its step"));
}

/// A random schedule without workers, so that only its order matters, grown op by op beside the
/// whole closure of what is over before what: the races it has are known from that.
class RandomSchedule {
public:
  RandomSchedule(std::uint32_t seed, std::size_t ops, std::size_t races_wanted) : m_random(seed) {
    const std::size_t ranks = 2 + pick(2), lanes = 1 + pick(2);
    m_schedule.worker.assign(ranks, false);
    m_schedule.ranks.resize(ranks);
    for (RankProgram& rank : m_schedule.ranks) {
      rank.buffer_bytes = {k_bytes, k_bytes};
      rank.lanes.resize(lanes);
    }
    for (std::size_t tries = 0; m_ops.size() < ops && tries < 40 * ops; ++tries) {
      grow(races_wanted);
    }
  }
  [[nodiscard]] const Schedule& schedule() const { return m_schedule; }
  [[nodiscard]] std::size_t ops() const { return m_ops.size(); }
  /// Pairs of ops that race.
  [[nodiscard]] const std::set<std::pair<std::size_t, std::size_t>>& races() const {
    return m_races;
  }

private:
  static constexpr std::uint64_t k_bytes = 96;
  struct Touch {
    std::size_t rank = 0;
    Slice at;
    std::uint64_t bytes = 0;
    bool changes = false;
  };
  struct Done {
    std::size_t rank = 0, lane = 0;
    std::uint32_t index = 0;
    std::vector<bool> before; ///< ops that are over when this is
    std::vector<Touch> touches;
  };

  std::size_t pick(std::size_t n) { return m_random() % n; }
  Slice slice() { return {static_cast<std::uint32_t>(pick(2)), 4 * pick(k_bytes / 4 - 8)}; }

  /// Up to three of the last ops of a lane.
  std::vector<std::size_t> some_of(std::size_t rank, std::size_t lane) {
    std::vector<std::size_t> some;
    const std::size_t most = 1 + pick(3);
    for (std::size_t i = m_ops.size(); i-- > 0 && some.size() < most;) {
      if (m_ops[i].rank == rank && m_ops[i].lane == lane && pick(3) != 0) {
        some.push_back(i);
      }
    }
    return some;
  }
  /// As LaneProgram numbers them.
  [[nodiscard]] std::vector<std::uint32_t> indices(std::span<const std::size_t> ops) const {
    std::vector<std::uint32_t> of;
    for (const std::size_t i : ops) {
      of.push_back(m_ops[i].index);
    }
    return of;
  }
  /// What is over before an op with these dependencies of its lane starts.
  [[nodiscard]] std::vector<bool> before(std::span<const std::size_t> depends_on) const {
    std::vector<bool> over(m_ops.size() + 2);
    for (const std::size_t d : depends_on) {
      for (std::size_t i = 0; i < m_ops[d].before.size(); ++i) {
        over[i] = over[i] || m_ops[d].before[i];
      }
      over[d] = true;
    }
    return over;
  }
  [[nodiscard]] std::vector<std::size_t> races_of(const std::vector<Touch>& touches,
                                                  const std::vector<bool>& over) const {
    std::vector<std::size_t> races;
    for (std::size_t i = 0; i < m_ops.size(); ++i) {
      bool conflict = false;
      for (const Touch& a : touches) {
        for (const Touch& b : m_ops[i].touches) {
          conflict = conflict ||
                     (a.rank == b.rank && a.at.buffer == b.at.buffer && (a.changes || b.changes) &&
                      a.at.offset < b.at.offset + b.bytes && b.at.offset < a.at.offset + a.bytes);
        }
      }
      if (conflict && !over[i]) {
        races.push_back(i);
      }
    }
    return races;
  }

  /// One more op, or a write and its await; not when it makes a race and all wanted are there.
  void grow(std::size_t races_wanted) {
    const std::size_t rank = pick(m_schedule.ranks.size());
    const std::size_t lane = pick(m_schedule.ranks[rank].lanes.size());
    const std::vector<std::size_t> depends_on = some_of(rank, lane);
    const std::vector<bool> over = before(depends_on);
    Op op{.source = slice(), .destination = slice(), .bytes = 4 * (1 + pick(8))};
    const std::size_t kind = pick(3);
    std::vector<Touch> touches, arrival;
    std::vector<Slice> sources;
    const std::size_t peer = (rank + 1 + pick(m_schedule.ranks.size() - 1)) % //
                             m_schedule.ranks.size();
    if (kind == 0) {
      op.kind = OpKind::write;
      op.peer = static_cast<std::uint32_t>(peer);
      op.tag = static_cast<std::uint32_t>(m_ops.size());
      touches = {{rank, op.source, op.bytes, false}};
      arrival = {{peer, op.destination, op.bytes, true}};
    } else if (kind == 1) {
      op.kind = OpKind::copy;
      touches = {{rank, op.source, op.bytes, false}, {rank, op.destination, op.bytes, true}};
    } else {
      op.kind = OpKind::reduce;
      sources = {op.source, slice(), op.destination};
      touches = {{rank, op.destination, op.bytes, true}};
      for (const Slice& s : sources) {
        touches.push_back({rank, s, op.bytes, false});
      }
    }
    op.part = static_cast<std::uint32_t>(pick(4));
    const std::vector<std::size_t> own = races_of(touches, over), there = races_of(arrival, over);
    if (own.size() + there.size() > races_wanted - std::min(races_wanted, m_races.size())) {
      return;
    }
    LaneProgram& program = m_schedule.ranks[rank].lanes[lane];
    const std::size_t me = m_ops.size();
    for (const std::size_t i : own) {
      m_races.emplace(i, me);
    }
    const std::vector<std::uint32_t> dependencies = indices(depends_on);
    m_ops.push_back({rank, lane,
                     kind == 2 ? program.append_reduce(op, sources, dependencies)
                               : program.append(op, dependencies),
                     over, touches});
    if (kind == 0) {
      for (const std::size_t i : there) {
        m_races.emplace(i, me + 1);
      }
      // What the await waits for here does not keep the write from arriving before.
      const std::vector<std::size_t> waits_for = some_of(peer, lane);
      std::vector<bool> arrived = before(waits_for);
      for (std::size_t i = 0; i < over.size(); ++i) {
        arrived[i] = arrived[i] || over[i];
      }
      arrived[me] = true;
      const Op await{.kind = OpKind::await,
                     .peer = static_cast<std::uint32_t>(rank),
                     .tag = op.tag,
                     .part = op.part};
      m_ops.push_back({peer, lane,
                       m_schedule.ranks[peer].lanes[lane].append(await, indices(waits_for)),
                       arrived, arrival});
    }
  }

  std::mt19937 m_random;
  Schedule m_schedule;
  std::vector<Done> m_ops;
  std::set<std::pair<std::size_t, std::size_t>> m_races;
};

// The first of every 51 have more ops than the proof follows ways from at a time.
TEST(CheckerProperty, FindsRacesWhereTheClosureHasThemAndNowhereElse) {
  constexpr int k_cases = support::cases(306);
  int racing = 0;
  for (std::uint32_t seed = 1; seed <= k_cases; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const bool large = seed % 51 == 1;
    const RandomSchedule random(seed, large ? 900 : 10 + seed % 50, seed % 3);
    const CheckResult result = check(random.schedule());
    ASSERT_GT(random.ops(), large ? 520U : 9U);
    ASSERT_EQ(result.ok(), random.races().empty()) << testing::PrintToString(result.faults);
    racing += random.races().empty() ? 0 : 1;
    for (const std::string& fault : result.faults) {
      EXPECT_THAT(fault, HasSubstr("races with"));
    }
  }
  EXPECT_GT(racing, k_cases / 2); // both answers are tried often
  EXPECT_LT(racing, k_cases * 17 / 20);
}

} // namespace
} // namespace reckon
