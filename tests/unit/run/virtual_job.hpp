// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "movers/fake.hpp"
#include "run/executor.hpp"
#include "run/replica.hpp"
#include "run/values.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace reckon::test {

/// All ranks of a schedule in this thread, over a network with a virtual clock: bytes / 1 GB/s + 10
/// us a write.
class Job {
public:
  Job(const Schedule& schedule, std::size_t max_in_flight = 64)
      : m_schedule(schedule),
        m_network(
            static_cast<int>(schedule.ranks.size()),
            [](int, int, std::uint64_t bytes) { return Seconds(static_cast<double>(bytes) / 1e9); },
            max_in_flight),
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
    if (schedule.outcome == Outcome::parameters) {
      for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
        m_replicas.emplace_back(schedule, r, m_values);
        m_replicas.back().fill(m_buffers[r]);
      }
    }
    for (int r = 0; r < ranks; ++r) {
      m_movers[static_cast<std::size_t>(r)]->connect(r, addresses);
      for (std::size_t l = 0; l < rank(r).lanes.size(); ++l) {
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
      if (m_schedule.worker[r]) {
        values.fill(m_buffers[r][k_gradient_buffer], m_schedule.runs, index++, iteration);
      }
    }
    for (const auto& e : m_executors) {
      e->start();
    }
    for (;;) {
      bool progress = false, done = true;
      for (const auto& e : m_executors) {
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
        for (const auto& e : m_executors) {
          m_error += e->done() ? "" : e->first_open_op() + "; ";
        }
        return -1;
      }
    }
    std::uint64_t wrong = 0;
    for (std::size_t r = 0; r < m_buffers.size(); ++r) {
      if (!m_replicas.empty()) {
        const TestValues::Result result = m_replicas[r].check(m_buffers[r], iteration);
        wrong += result.wrong_elements;
        m_error += result.first_error;
        m_checked_bytes += result.checked_bytes;
      } else if (m_schedule.worker[r]) {
        wrong += values.check(m_buffers[r][k_gradient_buffer], m_schedule.runs, iteration)
                     .wrong_elements;
      }
    }
    return static_cast<int>(wrong);
  }
  [[nodiscard]] const std::string& error() const { return m_error; }
  /// Parameters compared so far.
  [[nodiscard]] std::uint64_t checked_bytes() const { return m_checked_bytes; }
  [[nodiscard]] std::span<std::byte> buffer(std::size_t rank, std::size_t number) const {
    return m_buffers[rank][number];
  }

private:
  [[nodiscard]] const RankProgram& rank(int r) const {
    return m_schedule.ranks[static_cast<std::size_t>(r)];
  }
  const Schedule& m_schedule;
  FakeNetwork m_network;
  TestValues m_values;
  std::vector<ParameterReplica> m_replicas;
  std::uint64_t m_checked_bytes = 0;
  std::vector<std::unique_ptr<Mover>> m_movers;
  std::vector<std::vector<std::span<std::byte>>> m_buffers;
  std::vector<std::unique_ptr<LaneExecutor>> m_executors;
  std::string m_error;
};

} // namespace reckon::test
