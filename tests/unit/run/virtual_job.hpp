// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../strategies/fixtures.hpp"
#include "movers/fake.hpp"
#include "run/executor.hpp"
#include "run/rank_memory.hpp"
#include "run/verifier.hpp"
#include "schedule/checker.hpp"
#include "strategies/strategy.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace reckon::test {

/// Who takes part in a plan, and how.
struct Shape {
  /// Whether each part has one rank that all workers send to.
  [[nodiscard]] bool has_servers() const {
    return strategy != "ring" && strategy != k_rack_hierarchical && strategy != k_two_level_split;
  }
  std::string strategy;
  std::uint64_t workers = 2, servers = 0;
  int lanes = 1;
};

/// A plan of a gradient behind ports of 1 GB/s; for a strategy over racks, in two.
inline Plan plan_of(const Shape& shape, PlanOptions options, std::vector<Tensor> tensors) {
  const Workload gradient = workload(std::move(tensors));
  if (shape.strategy == k_rack_hierarchical) {
    return plan_in_racks(gradient, shape.workers, shape.servers, 2, options, shape.lanes);
  }
  options.strategy = shape.strategy;
  return plan_for(cluster(1e9, 1e9), gradient, shape.workers, shape.servers, options, shape.lanes);
}

/// Calls f(shape) for every strategy with all these numbers.
template <class F>
void for_each_shape(std::initializer_list<std::uint64_t> workers,
                    std::initializer_list<std::uint64_t> servers, std::initializer_list<int> lanes,
                    F f) {
  std::vector<std::string> strategies = strategy_names();
  strategies.emplace_back(k_rack_hierarchical);
  for (const std::string& strategy : strategies) {
    for (const std::uint64_t n : workers) {
      for (const std::uint64_t k : servers) {
        for (const int l : lanes) {
          if ((strategy != "ps_noncolocated" || k > 0) &&
              (strategy != k_rack_hierarchical || n > 1)) {
            SCOPED_TRACE(fmt::format("{} n {} k {} lanes {}", strategy, n, k, l));
            f(Shape{strategy, n, k, l});
          }
        }
      }
    }
  }
}

inline constexpr Optimizer k_optimizers[] = {Optimizer::sgd, Optimizer::momentum,
                                             Optimizer::rmsprop, Optimizer::adam};

/// 11000 + 77 + 1 parameters of 4 bytes, in parts of 8 KiB: [0, 44000) in 6, 308 and 4 in one each.
inline constexpr std::uint64_t k_parameter_bytes = 11078 * 4;

/// A plan that makes steps of those.
inline Plan stepping_plan(const Shape& shape, Optimizer optimizer, UpdatePlace place) {
  PlanOptions options;
  options.part_bytes = 8192;
  options.window_parts = 2;
  options.optimizer = optimizer;
  options.update_at = place;
  return plan_of(shape, options,
                 {{"a", 11000, DType::fp32}, {"b", 77, DType::fp32}, {"c", 1, DType::fp32}});
}

/// What the checker says first of a schedule; empty: it is right.
inline std::string fault_of(const Schedule& schedule) {
  const CheckResult result = check(schedule);
  return result.ok() ? "" : result.faults.front();
}

/// Changes each op of one lane by change(op, depends_on, sources).
template <class F>
void change_ops(LaneProgram& lane, F change) {
  LaneProgram out;
  for (std::uint32_t i = 0; i < lane.ops().size(); ++i) {
    Op op = lane.ops()[i];
    std::vector<std::uint32_t> depends_on(lane.dependencies(i).begin(), lane.dependencies(i).end());
    std::vector<Slice> sources(lane.sources(op).begin(), lane.sources(op).end());
    change(op, depends_on, sources);
    if (op.source_count > 0) {
      out.append_over(op, sources, depends_on);
    } else {
      out.append(op, depends_on);
    }
  }
  lane = out;
}
using Depends = std::vector<std::uint32_t>;
using Sources = std::vector<Slice>;

/// All ranks of a schedule in this thread, over a network with a virtual clock: bytes / 1 GB/s a
/// write.
class Job {
public:
  explicit Job(
      const Schedule& schedule, std::size_t max_in_flight = 64,
      FakeNetwork::Cost cost =
          [](int, int, std::uint64_t bytes) { return Seconds(static_cast<double>(bytes) / 1e9); })
      : m_schedule(schedule),
        m_network(static_cast<int>(schedule.ranks.size()), std::move(cost), max_in_flight) {
    set_up([this](int rank) { return m_network.make_mover(rank); });
  }
  /// Over other movers, whose time passes while lanes look at what has come.
  Job(const Schedule& schedule, const std::function<std::unique_ptr<Mover>(int rank)>& make)
      : m_schedule(schedule), m_network(1, [](int, int, std::uint64_t) { return Seconds(0); }),
        m_patience(100'000) {
    set_up(make);
  }
  FakeNetwork& network() { return m_network; }

  /// One iteration. Returns wrong elements over all ranks (of sums or of parameters, as the
  /// schedule promises), or -1 when it could not end. Number the iterations 0, 1, 2, ...
  int iterate(std::uint32_t iteration) {
    for (std::size_t r = 0; r < m_memory.size(); ++r) {
      poison_unkept(buffers(r), m_schedule.ranks[r]);
      m_verifiers[r]->fill(buffers(r), iteration);
      m_memory[r].push();
    }
    if (m_prepare) {
      m_prepare(*this);
    }
    for (const auto& e : m_executors) {
      e->start(iteration + 1);
    }
    if (!run_to_end()) {
      return -1;
    }
    for (const RankMemory& memory : m_memory) {
      memory.pull(memory.buffers().size());
    }
    if (m_damage) {
      m_damage(*this);
    }
    const std::uint64_t before = m_found.wrong_elements;
    for (std::size_t r = 0; r < m_memory.size(); ++r) {
      m_found.add(m_verifiers[r]->check(buffers(r), iteration));
    }
    m_error += m_found.first_error;
    return static_cast<int>(m_found.wrong_elements - before);
  }
  /// Iterations 0, 1, ..., in each of which everything must come out right.
  void expect_right(std::uint32_t iterations) {
    for (std::uint32_t i = 0; i < iterations; ++i) {
      ASSERT_EQ(iterate(i), 0) << m_error;
    }
  }
  [[nodiscard]] const std::string& error() const { return m_error; }
  /// By all checks so far.
  [[nodiscard]] const RankVerification& found() const { return m_found; }
  [[nodiscard]] const Verifier& verifier(std::size_t rank) const { return *m_verifiers[rank]; }
  /// Called before each iteration, when all buffers have been filled.
  void set_prepare(std::function<void(Job&)> prepare) { m_prepare = std::move(prepare); }
  /// Called after each iteration, before it is checked.
  void set_damage(std::function<void(Job&)> damage) { m_damage = std::move(damage); }
  /// From now on a rank looks at what has come only now and then: after it has, not before
  /// gap(rank, how often it has looked) has passed. No rank at all of those with a gap of 0.
  void set_gaps(std::function<Seconds(int rank, std::uint64_t looked)> gap) {
    m_gap = std::move(gap);
    m_next_look.assign(m_schedule.ranks.size(), Seconds(0));
    m_looked.assign(m_schedule.ranks.size(), 0);
  }
  /// In the next iteration that rank does nothing until the others can do no more. Of those, the
  /// ranks of the lanes that had done all of theirs by then are remembered.
  void hold(int rank) { m_held = rank; }
  [[nodiscard]] const std::vector<int>& done_without_held() const { return m_done_without_held; }
  [[nodiscard]] std::span<std::byte> buffer(std::size_t rank, std::size_t number) const {
    return buffers(rank)[number];
  }
  [[nodiscard]] Views buffers(std::size_t rank) const { return m_memory[rank].views(); }

private:
  void set_up(const std::function<std::unique_ptr<Mover>(int rank)>& make) {
    std::vector<std::string> addresses;
    for (std::size_t r = 0; r < m_schedule.ranks.size(); ++r) {
      m_movers.push_back(make(static_cast<int>(r)));
      m_memory.emplace_back(*m_movers.back(), m_schedule.ranks[r]);
      m_movers.back()->open(static_cast<int>(m_schedule.ranks[r].lanes.size()));
      addresses.push_back(m_movers.back()->address());
      m_verifiers.push_back(make_verifier(m_schedule, r));
      m_verifiers.back()->begin(buffers(r));
    }
    for (std::size_t r = 0; r < m_memory.size(); ++r) {
      m_movers[r]->connect(static_cast<int>(r), addresses);
      // All ranks are in one process: a peer's memory is there for all.
      auto& reached =
          m_reached.emplace_back(m_memory[r].buffers().begin(), m_memory[r].buffers().end());
      for (const PeerBuffer& peer : m_schedule.ranks[r].peer_buffers) {
        reached.push_back(m_memory[peer.rank].buffers()[peer.buffer]);
      }
      for (std::size_t l = 0; l < m_schedule.ranks[r].lanes.size(); ++l) {
        m_rank_of.push_back(static_cast<int>(r));
        m_executors.push_back(std::make_unique<LaneExecutor>(
            m_schedule.ranks[r].lanes[l], m_movers[r]->lane(static_cast<int>(l)), reached));
      }
    }
  }
  /// False: a lane failed, or nothing can go on; then error() says what is open.
  bool run_to_end() {
    for (;;) {
      bool progress = false, done = true;
      for (std::size_t i = 0; i < m_executors.size(); ++i) {
        LaneExecutor& e = *m_executors[i];
        if (m_held == m_rank_of[i]) {
          done = false;
          continue;
        }
        if (!sleeps(m_rank_of[i])) {
          while (!e.failed() && e.advance()) {
            progress = true;
          }
        }
        if (e.failed()) {
          m_error = e.error();
          return false;
        }
        done = done && e.done();
      }
      if (done) {
        return true;
      }
      if (progress || m_network.step() || wake_first() || let_go() || m_patience-- > 0) {
        continue;
      }
      for (const auto& e : m_executors) {
        m_error += e->done() ? "" : e->first_open_op() + "; ";
      }
      return false;
    }
  }
  bool sleeps(int r) {
    const auto index = static_cast<std::size_t>(r);
    if (!m_gap) {
      return false;
    }
    const Seconds now = m_network.clock().now();
    if (now < m_next_look[index]) {
      return true;
    }
    const Seconds gap = m_gap(r, m_looked[index]++);
    m_next_look[index] = gap > Seconds(0) ? now + gap : Seconds(0);
    return false;
  }
  /// Nothing is on its way: time would pass until the first rank looks again.
  bool wake_first() {
    std::size_t first = m_schedule.ranks.size();
    for (std::size_t i = 0; i < m_executors.size() && m_gap; ++i) {
      const auto r = static_cast<std::size_t>(m_rank_of[i]);
      if (!m_executors[i]->done() && m_next_look[r] > m_network.clock().now() &&
          (first == m_schedule.ranks.size() || m_next_look[r] < m_next_look[first])) {
        first = r;
      }
    }
    if (first < m_schedule.ranks.size()) {
      m_next_look[first] = Seconds(0);
    }
    return first < m_schedule.ranks.size();
  }
  /// The others can do no more without the rank that is held.
  bool let_go() {
    if (!m_held) {
      return false;
    }
    m_done_without_held.clear();
    for (std::size_t i = 0; i < m_executors.size(); ++i) {
      if (m_executors[i]->done()) {
        m_done_without_held.push_back(m_rank_of[i]);
      }
    }
    m_held.reset();
    return true;
  }

  const Schedule& m_schedule;
  FakeNetwork m_network;
  std::vector<std::unique_ptr<Verifier>> m_verifiers;
  RankVerification m_found;
  std::function<void(Job&)> m_prepare, m_damage;
  std::function<Seconds(int, std::uint64_t)> m_gap;
  std::vector<Seconds> m_next_look;
  std::vector<std::uint64_t> m_looked;
  std::optional<int> m_held;
  int m_patience = 0;                              ///< looks of all lanes that may find nothing
  std::vector<int> m_rank_of, m_done_without_held; ///< by executor
  std::vector<std::unique_ptr<Mover>> m_movers;
  std::deque<RankMemory> m_memory;
  std::deque<std::vector<std::span<std::byte>>> m_reached; ///< a rank's buffers and its peers'
  std::vector<std::unique_ptr<LaneExecutor>> m_executors;
  std::string m_error;
};

} // namespace reckon::test
