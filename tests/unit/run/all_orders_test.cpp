// SPDX-License-Identifier: Apache-2.0
// The lanes' protocol (slots, windows, tags), searched through: the executor's own code on small
// plans, in every order in which lanes can look, writes can arrive and senders can be told. A write
// under way may have spoilt its destination already, and reads its source as late as it may.
#include "reference.hpp"
#include "strategies/lower.hpp"
#include "support/every_path.hpp"
#include "virtual_job.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <deque>
#include <memory>
#include <ostream>
#include <set>

namespace reckon {
namespace {

using test::Reference;

constexpr std::byte k_spoilt{0xB5};

struct UnderWay {
  int from = 0, to = 0, lane = 0;
  Slice source, destination;
  std::uint64_t bytes = 0, id = 0;
  std::uint32_t tag = 0;
  bool sent = false, arrived = false;
  std::vector<std::byte> payload{}; ///< once it was read
};

class World;

class ExploredLane final : public MoverLane, public Engine {
public:
  ExploredLane(World& world, int rank, int lane) : m_world(world), m_rank(rank), m_lane(lane) {}
  bool write(int peer, Slice source, Slice destination, std::uint64_t bytes, std::uint32_t tag,
             std::uint64_t id) noexcept override;
  std::size_t poll(std::span<Completion> out) noexcept override;
  void wait(std::chrono::nanoseconds /*limit*/) noexcept override {}
  std::string error() const override { return "refused"; }
  Engine& engine() noexcept override { return *this; }
  Started start(const LocalOp& op, std::uint64_t id) noexcept override {
    happened(Event::computed, id);
    return cpu_engine().start(op, id);
  }

  std::deque<Completion> queue;
  std::set<std::uint64_t> history; ///< of the iteration: all else is a function of it

private:
  enum class Event : std::uint8_t { computed, posted, sent, arrived };
  void happened(Event event, std::uint64_t number) noexcept {
    history.insert(number << 2U | static_cast<std::uint64_t>(event));
  }

  World& m_world;
  int m_rank, m_lane;
};

/// A choice that the world has: lane number `index` of all looks, or write number `index` under way
/// moves on.
struct Choice {
  enum Kind : std::uint8_t { advance, sent, arrive } kind = advance;
  std::size_t index = 0;
  friend std::ostream& operator<<(std::ostream& out, const Choice& c) {
    return out << "asr"[c.kind] << c.index;
  }
};

/// What may come between what. The coarser, the longer the plans that can be searched.
struct Grain {
  /// A lane does one op at a time, at any time; all that it can at any time; or all at once.
  enum Looks : std::uint8_t { for_an_op, at_any_time, at_once } looks = for_an_op;
  /// When a sender is told: at any time; when the write arrives; when it is posted.
  enum Told : std::uint8_t { ever, on_arrival, when_posted } told = ever;
  std::size_t most_in_flight = 64; ///< writes of a lane; more are refused
};

class World {
public:
  World(const Schedule& schedule, const Grain& grain) : m_schedule(schedule), m_grain(grain) {
    for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
      const RankProgram& rank = schedule.ranks[r];
      auto& memory = m_memory.emplace_back();
      for (const std::uint64_t bytes : rank.buffer_bytes) {
        memory.emplace_back(bytes);
      }
      auto& spans = m_spans.emplace_back();
      for (std::vector<std::byte>& buffer : memory) {
        spans.emplace_back(buffer);
      }
    }
    for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
      for (const PeerBuffer& peer : schedule.ranks[r].peer_buffers) {
        m_spans[r].emplace_back(m_memory[peer.rank][peer.buffer]);
      }
      for (std::size_t l = 0; l < schedule.ranks[r].lanes.size(); ++l) {
        m_lane_of.emplace_back(r, l);
        lanes.emplace_back(*this, static_cast<int>(r), static_cast<int>(l));
        executors.emplace_back(schedule.ranks[r].lanes[l], lanes.back(), m_spans[r]);
      }
    }
  }

  void begin(std::uint64_t step, const std::vector<std::vector<std::byte>>& gradients) {
    m_step = step;
    for (std::size_t r = 0; r < gradients.size(); ++r) {
      std::copy(gradients[r].begin(), gradients[r].end(), gradient(r).begin());
    }
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      lanes[i].history.clear();
      executors[i].start(step);
    }
    settle();
  }

  [[nodiscard]] std::vector<std::byte>& gradient(std::size_t rank) {
    return m_memory[rank][m_schedule.ranks[rank].gradient_buffer];
  }
  [[nodiscard]] std::span<std::byte> at(int rank, Slice slice, std::uint64_t bytes) {
    return std::span(m_memory[static_cast<std::size_t>(rank)][slice.buffer])
        .subspan(slice.offset, bytes);
  }
  [[nodiscard]] std::size_t lane_index(int rank, int lane) const {
    return static_cast<std::size_t>(
        std::ranges::find(
            m_lane_of, std::pair(static_cast<std::size_t>(rank), static_cast<std::size_t>(lane))) -
        m_lane_of.begin());
  }

  [[nodiscard]] std::vector<Choice> choices() const {
    std::vector<Choice> all;
    for (std::size_t i = 0; i < executors.size() && m_grain.looks != Grain::at_once; ++i) {
      if (!executors[i].done()) {
        all.push_back({Choice::advance, i});
      }
    }
    for (std::size_t w = 0; w < writes.size(); ++w) {
      if (!writes[w].sent && m_grain.told != Grain::on_arrival) {
        all.push_back({Choice::sent, w});
      }
      if (!writes[w].arrived) {
        all.push_back({Choice::arrive, w});
      }
    }
    return all;
  }
  /// False: that changed nothing.
  bool take(const Choice& choice) {
    bool moved = true;
    if (choice.kind == Choice::advance) {
      moved = look(choice.index);
    } else {
      move_on(writes[choice.index], choice.kind);
      std::erase_if(writes, [](const UnderWay& w) { return w.sent && w.arrived; });
    }
    settle();
    return moved;
  }
  [[nodiscard]] bool may_post(int rank, int lane) const {
    return static_cast<std::size_t>(std::ranges::count_if(writes, [&](const UnderWay& w) {
             return w.from == rank && w.lane == lane && !w.sent;
           })) < m_grain.most_in_flight;
  }
  [[nodiscard]] bool done() const {
    return writes.empty() && std::ranges::all_of(executors, &LaneExecutor::done);
  }

  /// Equal for worlds that go on alike.
  [[nodiscard]] std::uint64_t state() const {
    std::string text = std::to_string(m_step);
    for (const ExploredLane& lane : lanes) {
      std::set<std::string> waiting; // the executor takes them all at once
      for (const Completion& c : lane.queue) {
        waiting.insert(fmt::format("{} {} {};", static_cast<int>(c.kind), c.id, c.tag));
      }
      text += fmt::format("|{};{}", fmt::join(lane.history, ","), fmt::join(waiting, ""));
    }
    std::set<std::string> under_way; // their order is nobody's business
    for (const UnderWay& w : writes) {
      under_way.insert(fmt::format("{} {} {} {} {} {} {}", w.from, w.to, w.lane, w.tag, w.sent,
                                   w.arrived, as_text(w.payload)));
    }
    text += fmt::format("/{}", fmt::join(under_way, "/"));
    for (const auto& rank : m_memory) {
      for (const auto& buffer : rank) {
        text += as_text(buffer);
      }
    }
    return std::hash<std::string>()(text);
  }

  std::deque<ExploredLane> lanes;
  std::deque<LaneExecutor> executors;
  std::vector<UnderWay> writes;

private:
  bool look(std::size_t lane) {
    LaneExecutor& executor = executors[lane];
    bool moved = false;
    while (!executor.failed() && executor.advance()) {
      moved = true;
      if (m_grain.looks == Grain::for_an_op) {
        break;
      }
    }
    return moved;
  }
  /// What happens at once.
  void settle() {
    for (bool moved = true; moved;) {
      moved = false;
      for (UnderWay& write : writes) {
        if (m_grain.told == Grain::when_posted && !write.sent) {
          move_on(write, Choice::sent);
          moved = true;
        }
      }
      for (std::size_t i = 0; i < executors.size() && m_grain.looks == Grain::at_once; ++i) {
        moved = (!executors[i].done() && look(i)) || moved;
      }
    }
  }
  void move_on(UnderWay& write, Choice::Kind kind) {
    if (write.bytes != 0 && write.payload.empty()) {
      const auto source = at(write.from, write.source, write.bytes);
      write.payload.assign(source.begin(), source.end());
    }
    if (kind == Choice::sent || (m_grain.told == Grain::on_arrival && !write.sent)) {
      write.sent = true;
      lanes[lane_index(write.from, write.lane)].queue.push_back(
          {Completion::Kind::sent, 0, write.id});
    }
    if (kind == Choice::arrive) {
      write.arrived = true;
      if (write.bytes != 0) {
        std::ranges::copy(write.payload, at(write.to, write.destination, write.bytes).begin());
      }
      lanes[lane_index(write.to, write.lane)].queue.push_back(
          {Completion::Kind::arrived, write.tag, 0});
    }
  }
  static std::string_view as_text(const std::vector<std::byte>& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  const Schedule& m_schedule;
  Grain m_grain;
  std::uint64_t m_step = 0;
  std::vector<std::vector<std::vector<std::byte>>> m_memory;
  std::vector<std::vector<std::span<std::byte>>> m_spans;
  std::vector<std::pair<std::size_t, std::size_t>> m_lane_of;
};

bool ExploredLane::write(int peer, Slice source, Slice destination, std::uint64_t bytes,
                         std::uint32_t tag, std::uint64_t id) noexcept {
  if (!m_world.may_post(m_rank, m_lane)) {
    return false;
  }
  happened(Event::posted, id);
  if (bytes != 0) {
    std::ranges::fill(m_world.at(peer, destination, bytes), k_spoilt);
  }
  m_world.writes.push_back({m_rank, peer, m_lane, source, destination, bytes, id, tag});
  return true;
}

std::size_t ExploredLane::poll(std::span<Completion> out) noexcept {
  const std::size_t count = std::min(out.size(), queue.size());
  for (std::size_t i = 0; i < count; ++i) {
    out[i] = queue.front();
    queue.pop_front();
    const bool sent = out[i].kind == Completion::Kind::sent;
    happened(sent ? Event::sent : Event::arrived, sent ? out[i].id : out[i].tag);
  }
  return count;
}

/// Two iterations' gradients, by iteration and rank, and what becomes of them.
struct Iterations {
  /// `schedule`: one whose sums are right.
  explicit Iterations(const Schedule& schedule) {
    Reference reference(schedule);
    for (std::uint32_t step = 0; step < 2; ++step) {
      auto& before = gradients.emplace_back();
      auto& after = sums.emplace_back();
      for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
        auto& memory = reference.memory(r)[schedule.ranks[r].gradient_buffer];
        for (std::size_t at = 0; at + sizeof(float) <= memory.size(); at += sizeof(float)) {
          const auto value = static_cast<float>(1 + at + 100 * r + 1000 * step);
          std::memcpy(&memory[at], &value, sizeof value);
        }
        before.push_back(memory);
      }
      reference.play();
      for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
        after.push_back(reference.memory(r)[schedule.ranks[r].gradient_buffer]);
      }
    }
  }
  std::vector<std::vector<std::vector<std::byte>>> gradients, sums;
};

/// A world that goes through them.
class TwoIterations {
public:
  TwoIterations(const Schedule& schedule, const Iterations& iterations, const Grain& grain)
      : m_schedule(schedule), m_iterations(iterations), m_world(schedule, grain) {
    begin();
  }

  [[nodiscard]] std::vector<Choice> choices() const { return m_world.choices(); }
  bool take(const Choice& choice) {
    if (!m_world.take(choice)) {
      return false;
    }
    if (m_world.done()) {
      compare();
      if (m_iteration == 0) {
        ++m_iteration;
        begin();
      }
    }
    return true;
  }
  [[nodiscard]] std::uint64_t state() const { return m_world.state(); }
  [[nodiscard]] bool done() const { return m_world.done(); }
  [[nodiscard]] std::string fault() const {
    for (const LaneExecutor& executor : m_world.executors) {
      if (executor.failed()) {
        return executor.error();
      }
    }
    return m_fault;
  }

private:
  void begin() { m_world.begin(m_iteration + 1, m_iterations.gradients[m_iteration]); }

  void compare() {
    for (std::size_t r = 0; r < m_schedule.ranks.size(); ++r) {
      if (m_schedule.worker[r] && m_world.gradient(r) != m_iterations.sums[m_iteration][r]) {
        m_fault = fmt::format("rank {} has wrong sums after iteration {}", r, m_iteration);
      }
    }
  }

  const Schedule& m_schedule;
  const Iterations& m_iterations;
  World m_world;
  std::size_t m_iteration = 0;
  std::string m_fault;
};

/// `meant`: the schedule whose sums are right.
test::PathsSeen search(const Schedule& schedule, const Schedule& meant, const Grain& grain) {
  const Iterations iterations(meant);
  return test::EveryPath<TwoIterations>(
             [&] { return std::make_unique<TwoIterations>(schedule, iterations, grain); })
      .run();
}

Schedule schedule_of(const test::Shape& shape, std::uint64_t parts, std::uint64_t window) {
  PlanOptions options;
  options.part_bytes = 64;
  options.window_parts = window;
  return lower(test::plan_of(shape, options, {{"a", 16 * parts, DType::fp32}}));
}

struct Plans {
  test::Shape shape;
  std::uint64_t parts = 0, window = 0;
  Grain grain{};
};

TEST(AllOrders, OfSmallPlansEndWithRightSums) {
  std::size_t states = 0;
  for (const auto& [shape, parts, window, grain] : std::initializer_list<Plans>{
           {{"ring", 2}, 2, 1},
           {{"ring", 2}, 4, 1, {Grain::for_an_op, Grain::ever, 1}},
           {{"ring", 2}, 4, 2, {Grain::at_once, Grain::on_arrival}},
           {{"ring", 2}, 4, 2, {Grain::at_once, Grain::when_posted}},
           {{"ring", 3}, 6, 1, {Grain::at_once, Grain::on_arrival}},
           {{"ring", 3}, 6, 1, {Grain::at_once, Grain::when_posted}},
           {{"ps_noncolocated", 2, 1}, 2, 1, {Grain::for_an_op, Grain::ever, 1}},
           {{"ps_noncolocated", 2, 1}, 4, 1, {Grain::at_any_time, Grain::on_arrival}},
           {{"ps_noncolocated", 2, 1}, 4, 1, {Grain::at_any_time, Grain::when_posted}},
           {{"ps_noncolocated", 2, 1}, 4, 2, {Grain::at_once, Grain::on_arrival}},
           {{"ps_noncolocated", 2, 1}, 4, 2, {Grain::at_once, Grain::when_posted}},
           {{"ps_colocated", 2}, 4, 1, {Grain::at_once, Grain::on_arrival}},
           {{"byteps_split", 2, 1}, 4, 1, {Grain::at_once, Grain::on_arrival}},
           {{"byteps_split", 2, 1}, 4, 1, {Grain::at_once, Grain::when_posted}}}) {
    SCOPED_TRACE(fmt::format("{} n {} k {}, {} parts, window {}, grain {} {} {}", shape.strategy,
                             shape.workers, shape.servers, parts, window,
                             static_cast<int>(grain.looks), static_cast<int>(grain.told),
                             grain.most_in_flight));
    const Schedule schedule = schedule_of(shape, parts, window);
    ASSERT_EQ(test::fault_of(schedule), "");
    const test::PathsSeen found = search(schedule, schedule, grain);
    EXPECT_EQ(found.fault, "");
    EXPECT_GT(found.ends, 0U);
    states += found.states;
  }
  std::printf("%zu states\n", states);
}

/// What a search finds when `change` was made to op `number` of a kind at a rank.
std::string found_after(const test::Shape& shape, std::uint32_t rank, OpKind kind,
                        std::size_t number, void (*change)(Op&, test::Depends&)) {
  const Schedule meant = schedule_of(shape, 3, 1);
  Schedule schedule = meant;
  std::size_t seen = 0;
  test::change_ops(schedule.ranks[rank].lanes[0],
                   [&](Op& op, test::Depends& depends_on, test::Sources&) {
                     if (op.kind == kind && seen++ == number) {
                       change(op, depends_on);
                     }
                   });
  EXPECT_NE(test::fault_of(schedule), "");
  return search(schedule, meant, {Grain::at_once, Grain::on_arrival}).fault;
}

TEST(AllOrders, FindWhatComesTooEarly) {
  const auto found_without = [](std::uint32_t rank, OpKind kind, std::size_t number) {
    return found_after({"ps_noncolocated", 2, 1}, rank, kind, number,
                       [](Op&, test::Depends& depends_on) { depends_on.clear(); });
  };
  const std::uint32_t server = 2;
  // The slot of the part before may still be needed.
  EXPECT_THAT(found_without(0, OpKind::write, 1), testing::HasSubstr("wrong sums"));
  // Not all gradients have come.
  EXPECT_THAT(found_without(server, OpKind::reduce, 0), testing::HasSubstr("wrong sums"));
  // The sum is not there yet.
  EXPECT_THAT(found_without(server, OpKind::write, 0), testing::HasSubstr("wrong sums"));
}

TEST(AllOrders, FindATagThatNobodyAwaitsAndAWaitThatNothingEnds) {
  EXPECT_THAT(
      found_after({"ring", 2}, 0, OpKind::write, 0, [](Op& op, test::Depends&) { op.tag = 99; }),
      testing::HasSubstr("tag 99"));
  EXPECT_THAT(
      found_after({"ring", 2}, 0, OpKind::await, 0, [](Op& op, test::Depends&) { op.tag = 99; }),
      testing::HasSubstr("nobody waits"));
}

} // namespace
} // namespace reckon
