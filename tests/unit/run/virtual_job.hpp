// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "movers/fake.hpp"
#include "run/executor.hpp"
#include "run/fixed_values.hpp"
#include "run/latest.hpp"
#include "run/replica.hpp"
#include "run/values.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace reckon::test {

/// All ranks of a schedule in this thread, over a network with a virtual clock: bytes / 1 GB/s + 10
/// us a write.
class Job {
public:
  explicit Job(
      const Schedule& schedule, std::size_t max_in_flight = 64,
      FakeNetwork::Cost cost =
          [](int, int, std::uint64_t bytes) { return Seconds(static_cast<double>(bytes) / 1e9); })
      : m_schedule(schedule),
        m_network(static_cast<int>(schedule.ranks.size()), std::move(cost), max_in_flight),
        m_values(static_cast<std::uint32_t>(
            std::count(schedule.worker.begin(), schedule.worker.end(), true))) {
    std::vector<std::string> addresses;
    const auto ranks = static_cast<int>(schedule.ranks.size());
    m_buffers.resize(schedule.ranks.size());
    for (int r = 0; r < ranks; ++r) {
      m_movers.push_back(m_network.make_mover(r));
      for (const std::uint64_t bytes : rank(r).buffer_bytes) {
        m_buffers[static_cast<std::size_t>(r)].push_back(m_movers.back()->allocate(bytes));
      }
      m_movers.back()->open(static_cast<int>(rank(r).lanes.size()));
      addresses.push_back(m_movers.back()->address());
    }
    const auto workers = static_cast<std::uint32_t>(
        std::count(schedule.worker.begin(), schedule.worker.end(), true));
    if (schedule.outcome == Outcome::latest) {
      m_latest.emplace(workers, schedule.steps);
    } else if (schedule.outcome == Outcome::fixed_sums) {
      m_fixed.emplace(workers, schedule.fixed);
    }
    if (schedule.outcome == Outcome::parameters) {
      for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
        m_replicas.emplace_back(schedule, r, m_values);
        m_replicas.back().fill(m_buffers[r]);
      }
    }
    for (int r = 0; r < ranks; ++r) {
      m_movers[static_cast<std::size_t>(r)]->connect(r, addresses);
      for (std::size_t l = 0; l < rank(r).lanes.size(); ++l) {
        m_rank_of.push_back(r);
        m_executors.push_back(std::make_unique<LaneExecutor>(
            rank(r).lanes[l], m_movers[static_cast<std::size_t>(r)]->lane(static_cast<int>(l)),
            m_buffers[static_cast<std::size_t>(r)]));
      }
    }
  }
  FakeNetwork& network() { return m_network; }

  /// One iteration. Returns wrong elements over all workers (of sums or of parameters, as the
  /// schedule promises), or -1 when it could not end. Number the iterations 0, 1, 2, ...
  int iterate(std::uint32_t iteration) {
    const TestValues& values = m_values;
    std::uint32_t index = 0;
    for (std::size_t r = 0; r < m_buffers.size(); ++r) {
      for (std::uint32_t b = 1; b < m_buffers[r].size(); ++b) {
        if (!m_schedule.ranks[r].keeps(b)) {
          poison(m_buffers[r][b]);
        }
      }
      if (m_latest) {
        m_latest->fill_parameters(m_schedule, m_schedule.ranks[r], m_buffers[r]);
      }
      if (!m_schedule.worker[r]) {
        continue;
      }
      if (m_latest) {
        m_latest->fill_gradient(m_buffers[r][k_gradient_buffer], m_schedule.runs, index++);
      } else if (m_fixed) {
        m_fixed->fill(m_buffers[r][k_gradient_buffer], m_schedule.runs, index++, iteration);
      } else {
        values.fill(m_buffers[r][k_gradient_buffer], m_schedule.runs, index++, iteration);
      }
    }
    if (m_prepare) {
      m_prepare(*this);
    }
    for (const auto& e : m_executors) {
      e->start(iteration + 1);
    }
    for (;;) {
      bool progress = false, done = true;
      for (std::size_t i = 0; i < m_executors.size(); ++i) {
        const auto& e = m_executors[i];
        if (m_held && m_rank_of[i] == *m_held) {
          done = false;
          continue;
        }
        if (sleeps(m_rank_of[i])) {
          done = done && e->done();
          continue;
        }
        while (!e->failed() && e->advance()) {
          progress = true;
        }
        if (e->failed()) {
          m_error = e->error();
          return -1;
        }
        done = done && e->done();
      }
      if (done) {
        break;
      }
      if (!progress && !m_network.step()) {
        if (wake_first()) {
          continue;
        }
        if (m_held) { // the others can do no more without it
          m_done_without_held.clear();
          for (std::size_t i = 0; i < m_executors.size(); ++i) {
            if (m_executors[i]->done()) {
              m_done_without_held.push_back(m_rank_of[i]);
            }
          }
          m_held.reset();
          continue;
        }
        for (const auto& e : m_executors) {
          m_error += e->done() ? "" : e->first_open_op() + "; ";
        }
        return -1;
      }
    }
    std::uint64_t wrong = 0;
    index = 0;
    for (std::size_t r = 0; r < m_buffers.size(); ++r) {
      const std::optional<std::uint32_t> mine =
          m_schedule.worker[r] ? std::optional(index++) : std::nullopt;
      if (!m_replicas.empty() || m_latest || (m_fixed && mine)) {
        const TestValues::Result result =
            m_latest  ? m_latest->check(m_schedule, m_schedule.ranks[r], m_buffers[r], mine)
            : m_fixed ? m_fixed->check(m_buffers[r][k_gradient_buffer], m_schedule.runs, iteration)
                      : m_replicas[r].check(m_buffers[r], iteration);
        wrong += result.wrong_elements;
        m_error += result.first_error;
        m_checked_bytes += result.checked_bytes;
        m_max_error = std::max(m_max_error, result.max_error);
      } else if (m_schedule.worker[r]) {
        wrong += values.check(m_buffers[r][k_gradient_buffer], m_schedule.runs, iteration)
                     .wrong_elements;
      }
    }
    return static_cast<int>(wrong);
  }
  [[nodiscard]] const std::string& error() const { return m_error; }
  /// Greatest distance of a fixed-point sum from the exact one so far.
  [[nodiscard]] double max_error() const { return m_max_error; }
  /// Called before each iteration, when all buffers have been filled.
  void set_prepare(std::function<void(Job&)> prepare) { m_prepare = std::move(prepare); }
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
  /// Parameters compared so far.
  [[nodiscard]] std::uint64_t checked_bytes() const { return m_checked_bytes; }
  [[nodiscard]] std::span<std::byte> buffer(std::size_t rank, std::size_t number) const {
    return m_buffers[rank][number];
  }

private:
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
  [[nodiscard]] const RankProgram& rank(int r) const {
    return m_schedule.ranks[static_cast<std::size_t>(r)];
  }
  const Schedule& m_schedule;
  FakeNetwork m_network;
  TestValues m_values;
  std::vector<ParameterReplica> m_replicas;
  std::optional<LatestValues> m_latest;
  std::optional<FixedValues> m_fixed;
  std::function<void(Job&)> m_prepare;
  double m_max_error = 0;
  std::function<Seconds(int, std::uint64_t)> m_gap;
  std::vector<Seconds> m_next_look;
  std::vector<std::uint64_t> m_looked;
  std::optional<int> m_held;
  std::vector<int> m_rank_of, m_done_without_held; ///< by executor
  std::uint64_t m_checked_bytes = 0;
  std::vector<std::unique_ptr<Mover>> m_movers;
  std::vector<std::vector<std::span<std::byte>>> m_buffers;
  std::vector<std::unique_ptr<LaneExecutor>> m_executors;
  std::string m_error;
};

} // namespace reckon::test
