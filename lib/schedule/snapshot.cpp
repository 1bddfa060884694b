// SPDX-License-Identifier: Apache-2.0
#include "schedule/snapshot.hpp"

#include "core/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace reckon {
namespace {

/// What one rank keeps, to be asked for by place.
class Kept {
public:
  explicit Kept(std::vector<KeptRun> runs) : m_runs(std::move(runs)) {
    for (std::uint32_t i = 0; i < m_runs.size(); ++i) {
      m_by_place.emplace(m_runs[i].at, i);
    }
  }
  [[nodiscard]] const std::vector<KeptRun>& runs() const { return m_runs; }
  /// What lies in [at, at + bytes); nothing unless all of it is of one stretch.
  [[nodiscard]] std::optional<KeptRun> find(Slice at, std::uint64_t bytes) const {
    auto it = m_by_place.upper_bound(at);
    if (it == m_by_place.begin()) {
      return std::nullopt;
    }
    const KeptRun& run = m_runs[std::prev(it)->second];
    if (run.at.buffer != at.buffer || at.offset + bytes > run.at.offset + run.bytes) {
      return std::nullopt;
    }
    return KeptRun{run.array, run.gradient_offset + (at.offset - run.at.offset), bytes, at};
  }

private:
  std::vector<KeptRun> m_runs;
  std::map<Slice, std::uint32_t> m_by_place;
};

Kept parameters_of(const RankProgram& program) {
  std::vector<KeptRun> runs;
  for (const ParameterRun& run : program.parameters) {
    if (run.bytes > 0 && !run.latest) {
      runs.push_back({0, run.gradient_offset, run.bytes, run.at});
    }
  }
  return Kept(std::move(runs));
}

/// A step of one rank, and where in the gradient it is.
struct Step {
  std::uint32_t rank = 0, lane = 0, op = 0;
  std::uint64_t bytes = 0;
};

/// All steps by place in the gradient; those of several ranks in one place are of the same bytes.
std::map<std::uint64_t, std::vector<Step>> steps_of(const Schedule& schedule) {
  std::map<std::uint64_t, std::vector<Step>> steps;
  for (std::uint32_t r = 0; r < schedule.ranks.size(); ++r) {
    const RankProgram& rank = schedule.ranks[r];
    const Kept parameters = parameters_of(rank);
    for (std::uint32_t l = 0; l < rank.lanes.size(); ++l) {
      for (std::uint32_t o = 0; o < rank.lanes[l].ops().size(); ++o) {
        const Op& op = rank.lanes[l].ops()[o];
        if (op.kind != OpKind::update || op.bytes == 0) {
          continue;
        }
        const auto stepped = parameters.find(op.destination, op.bytes);
        if (!stepped) {
          fail(
              ErrorKind::internal,
              fmt::format("with_snapshot(rank {} lane {} op {}): it steps no parameters", r, l, o));
        }
        steps[stepped->gradient_offset].push_back({r, l, o, op.bytes});
      }
    }
  }
  return steps;
}

/// An update's parameters (0) and states.
Slice stepped(const LaneProgram& lane, const Op& op, std::uint32_t array) {
  return array == 0 ? op.destination : lane.sources(op)[array];
}

class Saving {
public:
  explicit Saving(const Schedule& schedule) : m_schedule(schedule), m_result(schedule) {
    m_saver.resize(schedule.ranks.size());
    for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
      m_saver[r].resize(schedule.ranks[r].lanes.size());
    }
  }

  Schedule make() {
    share_out();
    for (std::uint32_t r = 0; r < m_schedule.ranks.size(); ++r) {
      place(r);
      for (std::uint32_t l = 0; l < m_schedule.ranks[r].lanes.size(); ++l) {
        m_result.ranks[r].lanes[l] = with_copies(r, l);
      }
    }
    return std::move(m_result);
  }

private:
  /// Who saves what: the rank that has least to save so far, then the lane that has.
  void share_out() {
    std::vector<std::uint64_t> rank_bytes(m_schedule.ranks.size());
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> lane_bytes;
    for (const auto& [offset, steps] : steps_of(m_schedule)) {
      const Step& step =
          *std::min_element(steps.begin(), steps.end(), [&](const Step& a, const Step& b) {
            return std::pair(rank_bytes[a.rank], lane_bytes[{a.rank, a.lane}]) <
                   std::pair(rank_bytes[b.rank], lane_bytes[{b.rank, b.lane}]);
          });
      m_saver[step.rank][step.lane].emplace(step.op, offset);
      rank_bytes[step.rank] += step.bytes;
      lane_bytes[{step.rank, step.lane}] += step.bytes;
    }
  }

  /// Adds the buffer: array after array, each in the gradient's order.
  void place(std::uint32_t r) {
    RankProgram& rank = m_result.ranks[r];
    rank.kept = kept_runs(rank);
    rank.saved.clear();
    const auto arrays = static_cast<std::uint32_t>(1 + state_arrays(m_schedule.optimizer));
    for (std::uint32_t l = 0; l < rank.lanes.size(); ++l) {
      for (const auto& [index, offset] : m_saver[r][l]) {
        const LaneProgram& lane = m_schedule.ranks[r].lanes[l];
        const Op& op = lane.ops()[index];
        for (std::uint32_t array = 0; array < arrays; ++array) {
          rank.saved.push_back({{array, offset, op.bytes, stepped(lane, op, array)}, {}});
        }
      }
    }
    std::sort(rank.saved.begin(), rank.saved.end());
    const auto buffer = static_cast<std::uint32_t>(rank.buffer_bytes.size());
    std::uint64_t end = 0;
    for (SavedRun& run : rank.saved) {
      run.copy = {buffer, end};
      m_copies[r][run.kept.at] = run.copy;
      end += run.kept.bytes;
    }
    rank.buffer_bytes.push_back(end);
  }

  LaneProgram with_copies(std::uint32_t r, std::uint32_t l) {
    const LaneProgram& in = m_schedule.ranks[r].lanes[l];
    const std::map<std::uint32_t, std::uint64_t>& savers = m_saver[r][l];
    LaneProgram out;
    std::vector<std::uint32_t> now(in.ops().size());
    std::vector<std::uint32_t> depends_on;
    for (std::uint32_t i = 0; i < in.ops().size(); ++i) {
      const Op& op = in.ops()[i];
      depends_on.clear();
      for (const std::uint32_t d : in.dependencies(i)) {
        depends_on.push_back(now[d]);
      }
      if (savers.count(i) != 0) {
        for (std::uint32_t array = 0; array <= state_arrays(op.optimizer); ++array) {
          Op copy;
          copy.kind = OpKind::copy;
          copy.part = op.part;
          copy.source = stepped(in, op, array);
          copy.destination = m_copies[r].at(copy.source);
          copy.bytes = op.bytes;
          depends_on.push_back(out.append(copy, {}));
        }
      }
      now[i] = out.append_again(in, op, depends_on);
    }
    return out;
  }

  const Schedule& m_schedule;
  Schedule m_result;
  /// [rank][lane]: the steps before which to save, with their places in the gradient.
  std::vector<std::vector<std::map<std::uint32_t, std::uint64_t>>> m_saver;
  std::map<std::uint32_t, std::map<Slice, Slice>> m_copies; ///< [rank][what is saved]
};

/// Bytes of an array that were saved, in order of place, with the rank that does.
struct Stretch {
  std::uint64_t begin = 0, end = 0;
  std::uint32_t rank = 0;
  auto operator<=>(const Stretch&) const = default;
};

class Faults {
public:
  explicit Faults(const Schedule& schedule) : m_schedule(schedule) {
    for (const RankProgram& rank : schedule.ranks) {
      m_kept.emplace_back(rank.kept);
    }
  }

  std::vector<std::string> find() {
    if (m_schedule.outcome == Outcome::restored) {
      check_writes();
    } else if (std::any_of(m_schedule.ranks.begin(), m_schedule.ranks.end(),
                           [](const RankProgram& r) { return !r.saved.empty(); })) {
      check_copies();
      check_peers_copies();
      check_cover();
    }
    return std::move(m_faults);
  }

private:
  template <class... Args>
  void fault(fmt::format_string<Args...> format, Args&&... args) {
    m_faults.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  /// Each copy is made once, from the right place, and is alone in its bytes.
  void check_copies() {
    for (std::uint32_t r = 0; r < m_schedule.ranks.size(); ++r) {
      const RankProgram& rank = m_schedule.ranks[r];
      if (rank.kept != kept_runs(rank)) {
        fault("rank {}: its list of what it keeps is not what its ops step", r);
      }
      std::set<std::uint32_t> kept_buffers{k_gradient_buffer};
      for (const KeptRun& run : rank.kept) {
        kept_buffers.insert(run.at.buffer);
      }
      std::map<Slice, std::pair<const SavedRun*, int>> copies; // with how often each is made
      for (const SavedRun& run : rank.saved) {
        const auto kept = m_kept[r].find(run.kept.at, run.kept.bytes);
        if (!kept || kept->array != run.kept.array ||
            kept->gradient_offset != run.kept.gradient_offset) {
          fault("rank {}: what it saves of array {} from gradient byte {} is not kept there", r,
                run.kept.array, run.kept.gradient_offset);
        }
        if (!rank.kept.empty() && kept_buffers.contains(run.copy.buffer)) {
          fault("rank {}: saves into buffer {}, which has another use", r, run.copy.buffer);
        }
        copies.emplace(run.copy, std::pair(&run, 0));
      }
      std::optional<Slice> end;
      for (const auto& [at, run] : copies) {
        if (end && end->buffer == at.buffer && end->offset > at.offset) {
          fault("rank {}: two copies overlap at byte {} of buffer {}", r, at.offset, at.buffer);
        }
        end = Slice{at.buffer, at.offset + run.first->kept.bytes};
      }
      if (copies.size() != rank.saved.size()) {
        fault("rank {}: two copies begin in the same place", r);
      }
      count_copies(r, copies);
      for (const auto& [at, run] : copies) {
        if (run.second != 1) {
          fault("rank {}: array {} from gradient byte {} is saved {} times", r,
                run.first->kept.array, run.first->kept.gradient_offset, run.second);
        }
      }
    }
  }

  void count_copies(std::uint32_t r, std::map<Slice, std::pair<const SavedRun*, int>>& copies) {
    const RankProgram& rank = m_schedule.ranks[r];
    const std::set<std::uint32_t> buffers = buffers_of_copies(r);
    const auto is_copy = [&](Slice at) { return buffers.contains(at.buffer); };
    for (std::uint32_t l = 0; l < rank.lanes.size(); ++l) {
      for (std::uint32_t o = 0; o < rank.lanes[l].ops().size(); ++o) {
        const Op& op = rank.lanes[l].ops()[o];
        const std::span<const Slice> sources = rank.lanes[l].sources(op);
        const bool reads = op.source_count > 0
                               ? std::any_of(sources.begin(), sources.end(), is_copy)
                               : op.bytes > 0 && is_copy(op.source);
        if (reads) {
          fault("rank {} lane {} op {}: reads what is saved", r, l, o);
        }
        if (op.kind == OpKind::write || op.bytes == 0 || !is_copy(op.destination)) {
          continue;
        }
        const auto it = copies.find(op.destination);
        if (op.kind != OpKind::copy || it == copies.end() ||
            it->second.first->kept.bytes != op.bytes || it->second.first->kept.at != op.source) {
          fault("rank {} lane {} op {}: writes something else to where is saved", r, l, o);
        } else {
          ++it->second.second;
        }
      }
    }
  }

  [[nodiscard]] std::set<std::uint32_t> buffers_of_copies(std::uint32_t r) const {
    std::set<std::uint32_t> buffers;
    for (const SavedRun& run : m_schedule.ranks[r].saved) {
      buffers.insert(run.copy.buffer);
    }
    return buffers;
  }

  /// No rank writes to where another saves.
  void check_peers_copies() {
    std::vector<std::set<std::uint32_t>> copies;
    for (std::uint32_t r = 0; r < m_schedule.ranks.size(); ++r) {
      copies.push_back(buffers_of_copies(r));
    }
    for (std::uint32_t from = 0; from < m_schedule.ranks.size(); ++from) {
      for (const LaneProgram& lane : m_schedule.ranks[from].lanes) {
        for (const Op& op : lane.ops()) {
          if (op.kind == OpKind::write && op.bytes > 0 && op.peer < copies.size() &&
              copies[op.peer].contains(op.destination.buffer)) {
            fault("rank {}: rank {} writes to where it saves", op.peer, from);
          }
        }
      }
    }
  }

  /// Every byte of every array is saved by one rank.
  void check_cover() {
    std::map<std::uint32_t, std::vector<Stretch>> by_array;
    for (std::uint32_t array = 0; array <= state_arrays(m_schedule.optimizer); ++array) {
      by_array[array] = {};
    }
    for (std::uint32_t r = 0; r < m_schedule.ranks.size(); ++r) {
      for (const SavedRun& run : m_schedule.ranks[r].saved) {
        by_array[run.kept.array].push_back(
            {run.kept.gradient_offset, run.kept.gradient_offset + run.kept.bytes, r});
      }
    }
    for (auto& [array, stretches] : by_array) {
      std::sort(stretches.begin(), stretches.end());
      for (std::size_t i = 0; i + 1 < stretches.size(); ++i) {
        if (stretches[i].end > stretches[i + 1].begin) {
          fault("array {}: gradient byte {} is saved by rank {} and rank {}", array,
                stretches[i + 1].begin, stretches[i].rank, stretches[i + 1].rank);
        }
      }
      for (const DTypeRun& run : m_schedule.runs) {
        std::uint64_t next = run.offset_bytes;
        auto s = std::ranges::upper_bound(stretches, next, {}, &Stretch::begin);
        s = s == stretches.begin() ? s : std::prev(s); // they do not overlap
        for (; s != stretches.end() && s->begin <= next; ++s) {
          next = std::max(next, s->end);
        }
        if (next < run.offset_bytes + run.bytes) {
          fault("array {}: gradient byte {} is not saved", array, next);
        }
      }
    }
  }

  void check_writes() {
    for (std::uint32_t r = 0; r < m_schedule.ranks.size(); ++r) {
      for (const LaneProgram& lane : m_schedule.ranks[r].lanes) {
        for (const Op& op : lane.ops()) {
          if (op.kind == OpKind::await) {
            continue;
          }
          const auto from = m_kept[r].find(op.source, op.bytes);
          const auto to = op.kind == OpKind::write  ? m_kept[op.peer].find(op.destination, op.bytes)
                          : op.kind == OpKind::copy ? m_kept[r].find(op.destination, op.bytes)
                                                    : std::nullopt;
          if (!from || !to || from->array != to->array ||
              from->gradient_offset != to->gradient_offset) {
            fault("rank {}: part {} does not go from where it is kept to where it is kept", r,
                  op.part);
          }
        }
      }
    }
  }

  const Schedule& m_schedule;
  std::vector<Kept> m_kept;
  std::vector<std::string> m_faults;
};

} // namespace

std::vector<KeptRun> kept_runs(const RankProgram& program) {
  const Kept parameters = parameters_of(program);
  std::vector<KeptRun> kept = parameters.runs();
  for (const LaneProgram& lane : program.lanes) {
    for (const Op& op : lane.ops()) {
      if (op.kind != OpKind::update || op.bytes == 0) {
        continue;
      }
      const auto of = parameters.find(op.destination, op.bytes);
      for (std::uint32_t array = 1; of && array < op.source_count; ++array) {
        kept.push_back({array, of->gradient_offset, op.bytes, stepped(lane, op, array)});
      }
    }
  }
  std::sort(kept.begin(), kept.end());
  return kept;
}

Schedule with_snapshot(const Schedule& schedule) {
  if (schedule.outcome != Outcome::parameters) {
    fail(ErrorKind::internal, "with_snapshot: nothing is kept from one iteration to the next");
  }
  return Saving(schedule).make();
}

namespace {

/// Lanes that bring what lies at SavedRun::kept of each rank of `result` to where `kept` (by rank)
/// has the same.
void bring(Schedule& result, const std::vector<std::vector<KeptRun>>& kept) {
  for (RankProgram& rank : result.ranks) {
    std::fill(rank.lanes.begin(), rank.lanes.end(), LaneProgram());
  }
  std::uint32_t number = 0;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> tags; // of (receiver, lane)
  for (std::uint32_t from = 0; from < result.ranks.size(); ++from) {
    for (const SavedRun& run : result.ranks[from].saved) {
      const std::uint64_t begin = run.kept.gradient_offset, end = begin + run.kept.bytes;
      for (std::uint32_t to = 0; to < result.ranks.size(); ++to) {
        // The first that could reach into [begin, end): stretches of one array do not overlap.
        auto it = std::partition_point(kept[to].begin(), kept[to].end(), [&](const KeptRun& k) {
          return std::pair(k.array, k.gradient_offset + k.bytes) <=
                 std::pair(run.kept.array, begin);
        });
        for (; it != kept[to].end() && it->array == run.kept.array && it->gradient_offset < end;
             ++it) {
          const std::uint64_t b = std::max(begin, it->gradient_offset);
          const std::uint64_t e = std::min(end, it->gradient_offset + it->bytes);
          const Slice source{run.kept.at.buffer, run.kept.at.offset + (b - begin)};
          const Slice destination{it->at.buffer, it->at.offset + (b - it->gradient_offset)};
          if (to == from && source == destination) {
            continue;
          }
          const auto lane = static_cast<std::uint32_t>(
              number % std::min(result.ranks[from].lanes.size(), result.ranks[to].lanes.size()));
          if (to == from) {
            Op copy;
            copy.kind = OpKind::copy;
            copy.part = number;
            copy.source = source;
            copy.destination = destination;
            copy.bytes = e - b;
            result.ranks[from].lanes[lane].append(copy, {});
            continue;
          }
          const std::uint32_t tag = tags[{to, lane}]++;
          result.ranks[from].lanes[lane].append_write(number, to, tag, source, destination, e - b,
                                                      {});
          result.ranks[to].lanes[lane].append_await(number, from, tag);
        }
      }
      ++number;
    }
  }
}

} // namespace

Schedule restoring(const Schedule& saving) {
  Schedule result = saving;
  result.outcome = Outcome::restored;
  std::vector<std::vector<KeptRun>> kept;
  for (const RankProgram& rank : saving.ranks) {
    kept.push_back(rank.kept);
  }
  bring(result, kept);
  return result;
}

Schedule carrying(const Schedule& saving, const Schedule& next) {
  Schedule result = next;
  result.outcome = Outcome::restored;
  std::vector<std::vector<KeptRun>> kept;
  for (std::size_t r = 0; r < next.ranks.size(); ++r) {
    RankProgram& rank = result.ranks[r];
    kept.push_back(kept_runs(rank));
    rank.kept = kept.back();
    const auto buffer = static_cast<std::uint32_t>(rank.buffer_bytes.size());
    std::uint64_t end = 0;
    for (const SavedRun& old : saving.ranks.at(r).saved) {
      KeptRun here = old.kept;
      here.at = {buffer, end};
      rank.saved.push_back({here, here.at});
      rank.kept.push_back(here);
      end += here.bytes;
    }
    rank.buffer_bytes.push_back(end);
  }
  bring(result, kept);
  return result;
}

std::vector<std::string> snapshot_faults(const Schedule& schedule) {
  return Faults(schedule).find();
}

} // namespace reckon
