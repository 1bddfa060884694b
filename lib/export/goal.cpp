// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "export/export.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <unordered_map>

namespace reckon {
namespace {

constexpr std::size_t k_most_processors = 256; // a GOAL file's processors are one byte

/// A write as its receiver knows it.
struct Arrival {
  std::uint32_t tag = 0;
  std::uint64_t bytes = 0;
};

/// By receiver and lane: our tag -> the write. Ours are unique in a lane, GOAL's must be unique
/// between two ranks: writes from one rank to another are numbered.
class Arrivals {
public:
  explicit Arrivals(const Schedule& schedule) : m_of(schedule.ranks.size()) {
    const std::size_t ranks = schedule.ranks.size();
    std::unordered_map<std::uint64_t, std::uint32_t> next; // by sender * ranks + receiver
    for (std::size_t to = 0; to < ranks; ++to) {
      m_of[to].resize(schedule.ranks[to].lanes.size());
    }
    for (std::size_t from = 0; from < ranks; ++from) {
      for (std::size_t l = 0; l < schedule.ranks[from].lanes.size(); ++l) {
        for (const Op& op : schedule.ranks[from].lanes[l].ops()) {
          if (op.kind == OpKind::write) {
            m_of[op.peer].at(l).emplace(op.tag, Arrival{next[from * ranks + op.peer]++, op.bytes});
          }
        }
      }
    }
  }
  [[nodiscard]] const Arrival& of(std::size_t to, std::size_t lane, std::uint32_t tag) const {
    return m_of[to][lane].at(tag);
  }

private:
  std::vector<std::vector<std::unordered_map<std::uint32_t, Arrival>>> m_of;
};

class Writer {
public:
  Writer(const Schedule& schedule, const LocalSeconds& seconds)
      : m_arrivals(schedule), m_seconds(seconds) {}

  void rank(std::size_t rank, const RankProgram& program) {
    check(rank, program);
    put("\nrank {} {{\n", rank);
    std::size_t first = 1; // label of the lane's first op
    for (std::size_t l = 0; l < program.lanes.size(); ++l) {
      const LaneProgram& lane = program.lanes[l];
      for (std::size_t i = 0; i < lane.ops().size(); ++i) {
        put("l{}: ", first + i);
        op(rank, l, program.lanes.size(), lane.ops()[i]);
        for (const std::uint32_t before : lane.dependencies(i)) {
          put("l{} requires l{}\n", first + i, first + before);
        }
      }
      first += lane.ops().size();
    }
    put("}}\n");
  }

  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(m_text), format, std::forward<Args>(args)...);
  }
  [[nodiscard]] std::string text() const { return fmt::to_string(m_text); }

private:
  static void check(std::size_t rank, const RankProgram& program) {
    const bool passes =
        std::any_of(program.lanes.begin(), program.lanes.end(), [](const LaneProgram& lane) {
          return std::any_of(lane.ops().begin(), lane.ops().end(),
                             [](const Op& op) { return op.kind == OpKind::delay; });
        });
    if (program.lanes.size() * (passes ? 2 : 1) > k_most_processors) {
      fail(
          ErrorKind::input,
          fmt::format("rank {} has {} lanes{}, and a GOAL file's ranks have at most {} processors; "
                      "plan with fewer --lanes",
                      rank, program.lanes.size(), passes ? " and as many for the passes" : "",
                      k_most_processors));
    }
  }

  void op(std::size_t rank, std::size_t lane, std::size_t lanes, const Op& op) {
    switch (op.kind) {
    case OpKind::write:
      put("send {}b to {} tag {} cpu {}\n", op.bytes, op.peer,
          m_arrivals.of(op.peer, lane, op.tag).tag, lane);
      break;
    case OpKind::await: {
      const Arrival& arrival = m_arrivals.of(rank, lane, op.tag);
      put("recv {}b from {} tag {} cpu {}\n", arrival.bytes, op.peer, arrival.tag, lane);
      break;
    }
    case OpKind::delay: // keeps no lane: another processor's
      put("calc {} cpu {}\n", op.duration_ns, lanes + lane);
      break;
    default:
      put("calc {} cpu {}\n", m_seconds ? std::llround(m_seconds(rank, op) * 1e9) : 0, lane);
    }
  }

  Arrivals m_arrivals;
  const LocalSeconds& m_seconds;
  fmt::memory_buffer m_text;
};

} // namespace

std::string goal_text(const Schedule& schedule, const std::string& title,
                      const LocalSeconds& seconds) {
  Writer writer(schedule, seconds);
  writer.put("// {}\n// calc: nanoseconds{}\nnum_ranks {}\n", title,
             seconds ? "" : "; those of sums and copies are not known here and 0",
             schedule.ranks.size());
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    writer.rank(rank, schedule.ranks[rank]);
  }
  return writer.text();
}

} // namespace reckon
