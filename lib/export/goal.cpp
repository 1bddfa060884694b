// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "export/export.hpp"
#include "export/loggops.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

namespace reckon {
namespace {

constexpr std::size_t k_most_processors = 255; // LogGOPSim counts them in one byte

/// Which of a rank's processors an op is on. LogGOPSim holds one while a message comes in, that on
/// which its sender sent it, and hands no time from one processor to another: what an op leaves to
/// do begins when its own processor is free. So what is done with a part has one, on which the
/// part's time passes from op to op and rank to rank, and other parts do not wait for it. The
/// passes of a lane's layers have one of their own. So have its sums where they may be what it
/// waits for, for then they take turns.
class Processors {
public:
  /// Throws Error{input} when the rank has more lanes than processors are enough for.
  Processors(std::size_t rank, const RankProgram& program, bool sums_take_turns)
      : m_lanes(program.lanes.size()), m_sums_take_turns(sums_take_turns) {
    m_first_of_parts = 2 * m_lanes;
    if (m_first_of_parts >= k_most_processors) {
      fail(ErrorKind::input,
           fmt::format(
               "rank {} has {} lanes of two processors each beside those of the parts, and a "
               "GOAL file's ranks have at most {}; plan with fewer --lanes",
               rank, m_lanes, k_most_processors));
    }
  }
  [[nodiscard]] std::size_t of(const Op& op, std::size_t lane) const {
    if (op.kind == OpKind::delay) {
      return m_lanes + lane;
    }
    if (m_sums_take_turns && op.kind != OpKind::write && op.kind != OpKind::await) {
      return lane;
    }
    return m_first_of_parts + op.part % (k_most_processors - m_first_of_parts);
  }

private:
  std::size_t m_lanes, m_first_of_parts = 0;
  bool m_sums_take_turns;
};

/// Whether some lane has more parts than there are ranks, so that sums of several can meet at one.
bool parts_can_meet(const Schedule& schedule) {
  std::vector<std::set<std::uint32_t>> parts;
  for (const RankProgram& rank : schedule.ranks) {
    parts.resize(std::max(parts.size(), rank.lanes.size()));
    for (std::size_t l = 0; l < rank.lanes.size(); ++l) {
      for (const Op& op : rank.lanes[l].ops()) {
        if (op.kind != OpKind::delay) {
          parts[l].insert(op.part);
        }
      }
    }
  }
  return std::any_of(parts.begin(), parts.end(), [&](const std::set<std::uint32_t>& of_lane) {
    return of_lane.size() > schedule.ranks.size();
  });
}

/// Whether the sums of a rank's lanes may be what these wait for, by how long its port is busy with
/// what the rank sends or receives. Without a rate they may.
bool sums_take_turns(const Schedule& schedule, const LocalSeconds& local,
                     const std::optional<LogGops>& loggops) {
  constexpr double k_enough = 0.9; // of the port's time: more, and they meet again and again
  if (!parts_can_meet(schedule)) {
    return false;
  }
  if (!loggops) {
    return true;
  }
  std::vector<std::uint64_t> sent(schedule.ranks.size()), received(schedule.ranks.size());
  std::vector<double> lane_s(schedule.ranks.size());
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    const std::vector<LaneProgram>& lanes = schedule.ranks[rank].lanes;
    for (const LaneProgram& lane : lanes) {
      for (const Op& op : lane.ops()) {
        if (op.kind == OpKind::write) {
          sent[rank] += op.bytes;
          received[op.peer] += op.bytes;
        } else if (op.kind != OpKind::await && op.kind != OpKind::delay) {
          lane_s[rank] += local(rank, op) / static_cast<double>(lanes.size());
        }
      }
    }
  }
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    const double port_s =
        loggops->seconds_per_byte * static_cast<double>(std::max(sent[rank], received[rank]));
    if (lane_s[rank] > k_enough * port_s) {
      return true;
    }
  }
  return false;
}

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

class GoalWriter {
public:
  GoalWriter(const Schedule& schedule, LocalSeconds seconds, bool sums_take_turns)
      : m_arrivals(schedule), m_seconds(std::move(seconds)), m_sums_take_turns(sums_take_turns) {}

  void rank(std::size_t rank, const RankProgram& program) {
    const Processors processors(rank, program, m_sums_take_turns);
    put("\nrank {} {{\n", rank);
    std::size_t first = 1; // label of the lane's first op
    for (std::size_t l = 0; l < program.lanes.size(); ++l) {
      const LaneProgram& lane = program.lanes[l];
      for (std::size_t i = 0; i < lane.ops().size(); ++i) {
        put("l{}: ", first + i);
        op(rank, l, lane.ops()[i]);
        put(" cpu {}\n", processors.of(lane.ops()[i], l));
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
  void op(std::size_t rank, std::size_t lane, const Op& op) {
    switch (op.kind) {
    case OpKind::write:
      put("send {}b to {} tag {}", op.bytes, op.peer, m_arrivals.of(op.peer, lane, op.tag).tag);
      break;
    case OpKind::await: {
      const Arrival& arrival = m_arrivals.of(rank, lane, op.tag);
      put("recv {}b from {} tag {}", arrival.bytes, op.peer, arrival.tag);
      break;
    }
    case OpKind::delay:
      put("calc {}", op.duration_ns);
      break;
    default:
      put("calc {}", m_seconds ? std::llround(m_seconds(rank, op) * 1e9) : 0);
    }
  }

  Arrivals m_arrivals;
  LocalSeconds m_seconds;
  bool m_sums_take_turns;
  fmt::memory_buffer m_text;
};

} // namespace

std::string goal_text(const Schedule& schedule, const std::string& title,
                      const std::optional<GoalTimes>& times) {
  std::string why_not;
  std::optional<LogGops> loggops;
  if (times) {
    loggops = loggops_of(times->network, schedule, why_not);
  }
  GoalWriter writer(schedule, times ? times->local : LocalSeconds(),
                    times && sums_take_turns(schedule, times->local, loggops));
  writer.put("// {}\n// calc: nanoseconds{}\n", title,
             times ? "" : "; those of sums and copies are not known here and 0");
  if (times) {
    writer.put("// {}\n", loggops
                              ? loggops->line()
                              : "no LogGOPS parameters, one rate and latency for all: " + why_not);
  }
  writer.put("num_ranks {}\n", schedule.ranks.size());
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    writer.rank(rank, schedule.ranks[rank]);
  }
  return writer.text();
}

} // namespace reckon
