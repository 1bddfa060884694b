// SPDX-License-Identifier: Apache-2.0
#include "schedule/checker.hpp"

#include "core/interrupt.hpp"
#include "schedule/content.hpp"
#include "schedule/in_place.hpp"
#include "schedule/pieces.hpp"
#include "schedule/reach.hpp"
#include "schedule/snapshot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <numeric>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

namespace reckon {
namespace {

constexpr std::uint32_t k_none = 0xFFFFFFFFU;
// What else than workers' gradients memory can hold, and be counted; k_none stands for memory
// nobody wrote.
constexpr std::uint32_t k_converted =
    0x40000000U;                                ///< added to a worker: its gradient as it is sent
constexpr std::uint32_t k_change = 0x80000000U; ///< and on: asynchronous steps, numbered
constexpr std::uint32_t k_parameters = 0xF0000000U; ///< as they were before the iteration
constexpr std::uint32_t k_state = 0xF0000001U;      ///< of an optimizer, before the iteration
constexpr std::uint32_t k_step = 0xF0000002U;       ///< an update with every worker's gradient

/// An op of the whole job.
struct Place {
  std::uint32_t rank = 0, lane = 0, op = 0;
};

/// An op that touched some bytes.
struct Access {
  std::uint32_t node = 0;
  bool changes = false;
  bool commutes = false; ///< with others such of its lane, which runs them one at a time
};

using Memory = Pieces<Content>;

class Checker {
public:
  explicit Checker(const Schedule& schedule) : m_schedule(schedule) {}

  CheckResult run() {
    number_ops();
    for (const auto step :
         {&Checker::check_slices, &Checker::match_tags, &Checker::check_in_place, &Checker::order,
          &Checker::check_saved, &Checker::check_sums, &Checker::check_races}) {
      stop_if_interrupted();
      if (m_result.ok()) { // each step relies on what the ones before it have proved
        (this->*step)();
      }
    }
    return std::move(m_result);
  }

private:
  void fault(std::uint32_t node, const std::string& what) {
    if (m_result.faults.size() < k_max_faults) {
      const Place& p = m_places[node];
      m_result.faults.push_back(fmt::format("rank {} lane {} op {} ({}, part {}): {}", p.rank,
                                            p.lane, p.op, name_of(op_at(node).kind),
                                            op_at(node).part, what));
    }
  }
  [[nodiscard]] const LaneProgram& lane_at(std::uint32_t node) const {
    return m_schedule.ranks[m_places[node].rank].lanes[m_places[node].lane];
  }
  [[nodiscard]] const Op& op_at(std::uint32_t node) const {
    return lane_at(node).ops()[m_places[node].op];
  }

  void number_ops() {
    m_first.resize(m_schedule.ranks.size());
    for (std::uint32_t r = 0; r < m_schedule.ranks.size(); ++r) {
      for (std::uint32_t l = 0; l < m_schedule.ranks[r].lanes.size(); ++l) {
        m_first[r].push_back(static_cast<std::uint32_t>(m_places.size()));
        const auto count = static_cast<std::uint32_t>(m_schedule.ranks[r].lanes[l].ops().size());
        for (std::uint32_t o = 0; o < count; ++o) {
          m_places.push_back({r, l, o});
        }
      }
    }
    m_writer_of.assign(m_places.size(), k_none);
    m_result.ops = m_places.size();
  }

  [[nodiscard]] bool outside(std::uint32_t rank, Slice at, std::uint64_t bytes) const {
    const std::vector<std::uint64_t>& buffers = m_schedule.ranks[rank].buffer_bytes;
    return at.buffer >= buffers.size() || at.offset > buffers[at.buffer] ||
           bytes > buffers[at.buffer] - at.offset;
  }

  void check_slice(std::uint32_t node, std::uint32_t rank, Slice slice, std::uint64_t bytes,
                   std::string_view what) {
    if (outside(rank, slice, bytes)) {
      fault(node, fmt::format("{} [{}, {}) lies outside buffer {} of rank {}", what, slice.offset,
                              slice.offset + bytes, slice.buffer, rank));
    }
  }

  void check_slices() {
    for (std::uint32_t r = 0; r < m_schedule.ranks.size(); ++r) {
      const RankProgram& rank = m_schedule.ranks[r];
      for (const PeerBuffer& peer : rank.peer_buffers) {
        if (peer.rank >= m_schedule.ranks.size() || peer.rank == r ||
            peer.buffer >= m_schedule.ranks[peer.rank].buffer_bytes.size()) {
          m_result.faults.push_back(fmt::format("rank {}: buffer {} of rank {} is no other rank's",
                                                r, peer.buffer, peer.rank));
          return;
        }
      }
      if (std::any_of(rank.parameters.begin(), rank.parameters.end(),
                      [&](const ParameterRun& run) { return outside(r, run.at, run.bytes); })) {
        m_result.faults.push_back(
            fmt::format("rank {}: its parameters lie outside of a buffer", r));
        return;
      }
      if (std::any_of(rank.saved.begin(), rank.saved.end(),
                      [&](const SavedRun& run) {
                        return outside(r, run.kept.at, run.kept.bytes) ||
                               outside(r, run.copy, run.kept.bytes);
                      }) ||
          std::any_of(rank.kept.begin(), rank.kept.end(),
                      [&](const KeptRun& run) { return outside(r, run.at, run.bytes); })) {
        m_result.faults.push_back(
            fmt::format("rank {}: what it keeps or saves lies outside of a buffer", r));
        return;
      }
    }
    for (std::uint32_t node = 0; node < m_places.size(); ++node) {
      check_op(node);
    }
  }

  void check_op(std::uint32_t node) {
    const Op& op = op_at(node);
    const std::uint32_t rank = m_places[node].rank;
    for (const std::uint32_t d : lane_at(node).dependencies(m_places[node].op)) {
      if (d >= m_places[node].op) {
        fault(node, fmt::format("depends on op {}, which does not come before it", d));
      }
    }
    const bool writes = op.kind == OpKind::write;
    if ((writes || op.kind == OpKind::await) &&
        (op.peer >= m_schedule.ranks.size() || op.peer == rank)) {
      fault(node, fmt::format("peer {} is not another rank", op.peer));
      return;
    }
    if (op.kind == OpKind::await || op.kind == OpKind::delay) {
      return;
    }
    if (op.kind == OpKind::sum_in_place) {
      check_sum_in_place(node);
      return;
    }
    const bool reduces = op.kind == OpKind::reduce, updates = op.kind == OpKind::update;
    if (!reduces && !updates) {
      check_slice(node, rank, op.source, source_bytes(op), "source");
    }
    check_slice(node, writes ? op.peer : rank, op.destination, destination_bytes(op),
                updates ? "parameters" : "destination");
    for (const Slice& s : lane_at(node).sources(op)) {
      check_slice(node, rank, s, op.bytes, "operand");
    }
    if (writes && m_places[node].lane >= m_schedule.ranks[op.peer].lanes.size()) {
      fault(node, fmt::format("rank {} has no lane {}", op.peer, m_places[node].lane));
    }
    const bool whole = op.bytes % size_of(op.dtype) == 0; // fp32 where an op says nothing
    if (reduces && (op.source_count == 0 || !whole)) {
      fault(node, "sums nothing, or not whole elements");
    } else if (updates && (op.source_count != 1 + state_arrays(op.optimizer) || !whole)) {
      fault(node, "has not the operands of its optimizer, or not whole elements");
    } else if (!reduces && !updates && !writes && op.kind != OpKind::copy && !whole) {
      fault(node, "does not work on whole elements");
    }
  }

  void check_sum_in_place(std::uint32_t node) {
    const Op& op = op_at(node);
    for (const Slice& s : lane_at(node).sources(op)) {
      const Located at = locate(m_schedule, m_places[node].rank, s);
      check_slice(node, at.rank, at.at, op.bytes, "operand");
    }
  }

  void check_in_place() {
    for (const std::string& what : in_place_faults(m_schedule)) {
      end_fault("{}", what);
    }
  }

  void check_saved() {
    for (const std::string& what : snapshot_faults(m_schedule)) {
      end_fault("{}", what);
    }
  }

  void match_tags() {
    using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>; // receiver, lane, tag
    std::map<Key, std::uint32_t> awaits;
    for (std::uint32_t node = 0; node < m_places.size(); ++node) {
      const Op& op = op_at(node);
      if (op.kind == OpKind::await &&
          !awaits.emplace(Key{m_places[node].rank, m_places[node].lane, op.tag}, node).second) {
        fault(node, fmt::format("tag {} is awaited twice", op.tag));
      }
    }
    for (std::uint32_t node = 0; node < m_places.size(); ++node) {
      const Op& op = op_at(node);
      if (op.kind != OpKind::write) {
        continue;
      }
      const auto it = awaits.find(Key{op.peer, m_places[node].lane, op.tag});
      if (it == awaits.end()) {
        fault(node, fmt::format("rank {} never awaits its tag {}", op.peer, op.tag));
      } else if (m_writer_of[it->second] != k_none) {
        fault(node, fmt::format("tag {} at rank {} is used twice", op.tag, op.peer));
      } else if (op_at(it->second).peer != m_places[node].rank) {
        fault(node, fmt::format("rank {} awaits its tag {} from rank {}", op.peer, op.tag,
                                op_at(it->second).peer));
      } else {
        m_writer_of[it->second] = node;
      }
    }
    for (std::uint32_t node = 0; node < m_places.size(); ++node) {
      if (op_at(node).kind == OpKind::await && m_writer_of[node] == k_none) {
        fault(node, fmt::format("nobody writes its tag {}", op_at(node).tag));
      }
    }
  }

  /// Calls f(predecessor) for all that must be over before `node` is done.
  template <class F>
  void predecessors(std::uint32_t node, F f) const {
    const Place& p = m_places[node];
    for (const std::uint32_t d : lane_at(node).dependencies(p.op)) {
      f(m_first[p.rank][p.lane] + d);
    }
    if (m_writer_of[node] != k_none) {
      f(m_writer_of[node]);
    }
  }

  /// A topological order that takes a part's ops together as far as it can: what touches the same
  /// bytes is then near in it, which is what makes the race proof fast.
  void order() {
    std::vector<std::uint32_t> missing(m_places.size());
    std::vector<std::vector<std::uint32_t>> successors(m_places.size());
    using PartNode = std::pair<std::uint32_t, std::uint32_t>;
    std::priority_queue<PartNode, std::vector<PartNode>, std::greater<>> ready;
    for (std::uint32_t node = 0; node < m_places.size(); ++node) {
      predecessors(node, [&](std::uint32_t before) {
        ++missing[node];
        successors[before].push_back(node);
      });
      if (missing[node] == 0) {
        ready.emplace(op_at(node).part, node);
      }
    }
    for (; !ready.empty();) {
      m_order.push_back(ready.top().second);
      ready.pop();
      for (const std::uint32_t s : successors[m_order.back()]) {
        if (--missing[s] == 0) {
          ready.emplace(op_at(s).part, s);
        }
      }
    }
    if (m_order.size() != m_places.size()) {
      fault_circle(missing);
    }
  }

  /// Names one circle among the ops that never come, by the arrivals in it. `missing`: of each op,
  /// how many that it waits for never end.
  void fault_circle(const std::vector<std::uint32_t>& missing) {
    const auto stuck_before = [&](std::uint32_t node) {
      std::uint32_t found = k_none;
      predecessors(node, [&](std::uint32_t before) {
        found = found == k_none && missing[before] > 0 ? before : found;
      });
      return found;
    };
    // Back along what is waited for; what comes again is in a circle.
    std::vector<bool> seen(missing.size());
    std::uint32_t node = 0;
    while (missing[node] == 0) {
      ++node;
    }
    for (; !seen[node]; node = stuck_before(node)) {
      seen[node] = true;
    }
    std::vector<std::uint32_t> arrivals; // inside a lane ops only wait for earlier ones
    const std::uint32_t start = node;
    do {
      if (op_at(node).kind == OpKind::await) {
        arrivals.push_back(node);
      }
      node = stuck_before(node);
    } while (node != start);
    constexpr std::size_t k_most_named = 8;
    std::string text;
    for (std::size_t i = 0; i < std::min(arrivals.size(), k_most_named); ++i) {
      const Place& p = m_places[arrivals[i]];
      text += fmt::format("{}rank {} for part {} from rank {}", text.empty() ? "" : ", ", p.rank,
                          op_at(arrivals[i]).part, op_at(arrivals[i]).peer);
    }
    fault(arrivals.front(), fmt::format("deadlock: circular wait: {}{}", text,
                                        arrivals.size() > k_most_named ? ", and so on" : ""));
  }

  /// The operands of a reduction added up, cut at every operand's boundaries.
  [[nodiscard]] Memory sum_of(std::uint32_t node) const {
    const Op& op = op_at(node);
    Memory sums(op.bytes, {});
    for (const Slice& source : lane_at(node).sources(op)) {
      const auto [rank, s] = locate(m_schedule, m_places[node].rank, source);
      const std::uint64_t from = s.offset;
      m_memory[rank][s.buffer].visit(
          from, from + op.bytes, [&](std::uint64_t b, std::uint64_t e, const Content& content) {
            sums.change(b - from, e - from, [&](Content& sum) { sum.add(content); });
          });
    }
    return sums;
  }

  /// f(begin, end, content) over a slice of a rank's memory; content may be changed meanwhile.
  template <class F>
  void pieces_of(std::uint32_t rank, Slice at, std::uint64_t bytes, F f) const {
    for_each_piece(m_memory[rank][at.buffer], at.offset, at.offset + bytes, f);
  }

  void fill_memory() {
    m_memory.resize(m_schedule.ranks.size());
    for (std::uint32_t r = 0; r < m_schedule.ranks.size(); ++r) {
      const RankProgram& rank = m_schedule.ranks[r];
      if (m_schedule.worker[r]) {
        m_all.add(r);
      }
      for (std::uint32_t b = 0; b < rank.buffer_bytes.size(); ++b) {
        const bool gradient = b == rank.gradient_buffer && m_schedule.worker[r];
        const bool state = std::find(rank.state_buffers.begin(), rank.state_buffers.end(), b) !=
                           rank.state_buffers.end();
        m_memory[r].emplace_back(rank.buffer_bytes[b],
                                 Content{{gradient ? r : (state ? k_state : k_none), 1}});
      }
      if (m_schedule.outcome == Outcome::restored) {
        for (Memory& memory : m_memory[r]) {
          memory = Memory(memory.bytes(), {{k_none, 1}});
        }
        for (const SavedRun& run : rank.saved) {
          m_memory[r][run.kept.at.buffer].set(run.kept.at.offset,
                                              run.kept.at.offset + run.kept.bytes,
                                              before_iteration(run.kept.array));
        }
        continue;
      }
      if (!sums(m_schedule.collective) && m_schedule.worker[r]) { // only roots have anything
        Memory& gradient = m_memory[r][k_gradient_buffer];
        gradient = Memory(gradient.bytes(), {{k_none, 1}});
        for (const OwnedRun& run : m_schedule.owned) {
          if (run.rank == r) {
            gradient.set(run.offset_bytes, run.offset_bytes + run.bytes, {{r, 1}});
          }
        }
      }
      for (const ParameterRun& run : rank.parameters) {
        if (run.bytes > 0) {
          m_memory[r][run.at.buffer].set(run.at.offset, run.at.offset + run.bytes,
                                         {{k_parameters, 1}});
        }
      }
    }
  }
  /// What memory holds that keeps parameters (array 0) or states.
  static Content before_iteration(std::uint32_t array) {
    return {{array == 0 ? k_parameters : k_state, 1}};
  }

  /// An asynchronous step: with one worker's gradient, counted as the next step of that worker.
  void apply_change(std::uint32_t node) {
    const Op& op = op_at(node);
    const std::uint32_t rank = m_places[node].rank;
    std::uint32_t worker = k_none;
    pieces_of(rank, lane_at(node).sources(op)[0], op.bytes,
              [&](std::uint64_t, std::uint64_t, const Content& content) {
                const std::uint32_t only = content.only().value_or(k_none);
                if (only >= m_schedule.worker.size() || (worker != k_none && worker != only)) {
                  fault(node, "steps with something else than one worker's gradient");
                } else {
                  worker = only;
                }
              });
    const std::uint32_t step = m_changes[{rank, op.part, worker}]++;
    m_memory[rank][op.destination.buffer].change(
        op.destination.offset, op.destination.offset + op.bytes,
        [&](Content& content) { content.add(k_change + worker * m_schedule.steps + step); });
  }

  /// destination = source - destination.
  void apply_subtract(std::uint32_t node) {
    const Op& op = op_at(node);
    const std::uint32_t rank = m_places[node].rank;
    pieces_of(rank, op.destination, op.bytes,
              [&](std::uint64_t b, std::uint64_t e, const Content& old) {
                const Slice from{op.source.buffer, op.source.offset + (b - op.destination.offset)};
                pieces_of(rank, from, e - b,
                          [&](std::uint64_t from_b, std::uint64_t from_e, const Content& content) {
                            Content change = content;
                            if (!change.subtract(old)) {
                              fault(node, "subtracts what is not there");
                              return;
                            }
                            m_memory[rank][op.destination.buffer].set(
                                b + from_b - from.offset, b + from_e - from.offset, change);
                          });
              });
  }

  /// Workers' gradients become whole numbers or what the wire has, or are gradients again.
  void apply_conversion(std::uint32_t node) {
    const Op& op = op_at(node);
    const std::uint32_t rank = m_places[node].rank;
    const bool to = op.kind == OpKind::to_fixed || op.kind == OpKind::narrow;
    // By the lengths of one element: the product of both may be more than 64 bits hold.
    const std::uint64_t elements = std::gcd(destination_bytes(op), source_bytes(op));
    const auto there = [&](std::uint64_t at) {
      return (at - op.source.offset) / (source_bytes(op) / elements) *
                 (destination_bytes(op) / elements) +
             op.destination.offset;
    };
    pieces_of(rank, op.source, source_bytes(op),
              [&](std::uint64_t b, std::uint64_t e, const Content& content) {
                for (const Content::Run& run : content.runs()) {
                  if (to ? run.last >= k_converted : !is_converted(run.first)) {
                    fault(node, to ? "its source is no gradient" : "its source is not converted");
                  }
                }
                m_memory[rank][op.destination.buffer].set(
                    there(b), there(e),
                    to ? content.moved(0, k_converted - 1, k_converted)
                       : content.moved(k_converted, k_change - 1, 0));
              });
  }
  static bool is_converted(std::uint32_t what) { return what >= k_converted && what < k_change; }

  /// One step: the gradient's sum must be complete, what is stepped must not have been stepped.
  void apply_update(std::uint32_t node) {
    const Op& op = op_at(node);
    const std::uint32_t rank = m_places[node].rank;
    const std::span<const Slice> sources = lane_at(node).sources(op);
    pieces_of(rank, sources[0], op.bytes,
              [&](std::uint64_t, std::uint64_t, const Content& content) {
                if (content != m_all) {
                  fault(node, fmt::format("steps with {}", wrong_in(content, m_all)));
                }
              });
    const auto step = [&](Slice at, std::uint32_t kind, std::string_view what) {
      m_memory[rank][at.buffer].change(at.offset, at.offset + op.bytes, [&](Content& content) {
        if (content != Content{{kind, 1}}) {
          fault(node, content.holds(k_step)
                          ? fmt::format("its {} have made a step already", what)
                          : fmt::format("there are no {} where it looks for them", what));
        }
        content.add(k_step);
      });
    };
    step(op.destination, k_parameters, "parameters");
    for (const Slice& s : sources.subspan(1)) {
      step(s, k_state, "states");
    }
  }

  /// The sum of an op's sources, at each of `targets`, slices of the op's rank.
  void apply_sum(std::uint32_t node, std::span<const Slice> targets) {
    const Op& op = op_at(node);
    sum_of(node).visit(0, op.bytes, [&](std::uint64_t b, std::uint64_t e, const Content& sum) {
      for (const Slice& target : targets) {
        const Located to = locate(m_schedule, m_places[node].rank, target);
        m_memory[to.rank][to.at.buffer].set(to.at.offset + b, to.at.offset + e, sum);
      }
      for (const Content::Run& run : sum.runs()) {
        const bool of_converted = op.dtype == DType::int32 || op.dtype == m_schedule.wire;
        if (is_converted(run.first) != of_converted && run.first != k_none) {
          fault(node, fmt::format("adds {} as {}",
                                  is_converted(run.first) ? "what was converted" : "gradients",
                                  name_of(op.dtype)));
        }
      }
    });
  }

  void check_sums() {
    check_owned();
    if (!m_result.ok()) {
      return;
    }
    fill_memory();
    // Any topological order gives the same result, once check_races has shown that all conflicts
    // are ordered.
    for (const std::uint32_t node : m_order) {
      const Op& op = op_at(node);
      const std::uint32_t rank = m_places[node].rank;
      stop_if_interrupted();
      if (op.kind == OpKind::await || op.bytes == 0) {
        continue;
      }
      if (op.kind == OpKind::sum_in_place) {
        apply_sum(node, lane_at(node).sources(op));
        continue;
      }
      const std::uint64_t to = op.destination.offset;
      Memory& target = m_memory[op.kind == OpKind::write ? op.peer : rank][op.destination.buffer];
      switch (op.kind) {
      case OpKind::reduce:
        apply_sum(node, std::span(&op.destination, 1));
        break;
      case OpKind::update:
        if (m_schedule.outcome == Outcome::latest) {
          apply_change(node);
        } else {
          apply_update(node);
        }
        break;
      case OpKind::subtract:
        apply_subtract(node);
        break;
      case OpKind::to_fixed:
      case OpKind::from_fixed:
      case OpKind::narrow:
      case OpKind::widen:
        apply_conversion(node);
        break;
      default: // the source may be the target
        pieces_of(rank, op.source, op.bytes,
                  [&](std::uint64_t b, std::uint64_t e, const Content& content) {
                    target.set(b - op.source.offset + to, e - op.source.offset + to, content);
                  });
      }
    }
    check_outcome();
  }

  void check_outcome() {
    if (m_schedule.outcome == Outcome::latest) {
      check_latest_cover();
    }
    if (m_schedule.collective != Collective::all_reduce) {
      check_roots();
      return;
    }
    for (std::uint32_t r = 0; r < m_schedule.ranks.size(); ++r) {
      if (m_schedule.outcome == Outcome::restored) {
        check_restored(r);
        continue;
      }
      if (m_schedule.outcome == Outcome::parameters || m_schedule.outcome == Outcome::latest) {
        check_parameters(r);
        check_copies(r);
        continue;
      }
      for (const DTypeRun& run : m_schedule.gradient_runs()) {
        if (m_schedule.worker[r] && run.bytes > 0) {
          pieces_of(r, {m_schedule.ranks[r].gradient_buffer, run.offset_bytes}, run.bytes,
                    [&](std::uint64_t b, std::uint64_t e, const Content& content) {
                      if (content != m_all) {
                        end_fault("rank {}: gradient bytes [{}, {}) end with {}", r, b, e,
                                  wrong_in(content, m_all));
                      }
                    });
        }
      }
    }
  }

  /// Every byte of the gradient has one root, a worker.
  void check_owned() {
    if (m_schedule.collective == Collective::all_reduce) {
      return;
    }
    if (m_schedule.outcome != Outcome::sums) {
      end_fault("a {} ends with sums or copies of gradients only", name_of(m_schedule.collective));
    }
    std::size_t next = 0;
    for (const DTypeRun& run : m_schedule.runs) {
      std::uint64_t at = run.offset_bytes;
      for (; next < m_schedule.owned.size() && m_schedule.owned[next].offset_bytes == at &&
             m_schedule.owned[next].bytes <= run.offset_bytes + run.bytes - at;
           ++next) {
        const OwnedRun& owned = m_schedule.owned[next];
        if (owned.rank >= m_schedule.worker.size() || !m_schedule.worker[owned.rank]) {
          end_fault("gradient byte {} has rank {} as its root, which is no worker", at, owned.rank);
        }
        at += owned.bytes;
      }
      if (at != run.offset_bytes + run.bytes) {
        end_fault("gradient byte {} has no root, or several", at);
        return;
      }
    }
    if (next != m_schedule.owned.size()) {
      end_fault("gradient byte {} has a root, but lies in no run",
                m_schedule.owned[next].offset_bytes);
    }
  }

  /// Roots have the sums, or all workers what the roots had.
  void check_roots() {
    for (const OwnedRun& run : m_schedule.owned) {
      const Content expected = sums(m_schedule.collective) ? m_all : Content{{run.rank, 1}};
      for (std::uint32_t r = 0; r < m_schedule.ranks.size(); ++r) {
        if (!m_schedule.worker[r] || (sums(m_schedule.collective) && r != run.rank)) {
          continue;
        }
        pieces_of(r, {k_gradient_buffer, run.offset_bytes}, run.bytes,
                  [&](std::uint64_t b, std::uint64_t e, const Content& content) {
                    if (content == expected) {
                      return;
                    }
                    if (sums(m_schedule.collective)) {
                      end_fault("rank {}: gradient bytes [{}, {}) end with {}", r, b, e,
                                wrong_in(content, m_all));
                    } else {
                      end_fault("rank {}: gradient bytes [{}, {}) do not end with what rank {} had",
                                r, b, e, run.rank);
                    }
                  });
      }
    }
  }

  template <class... Args>
  void end_fault(fmt::format_string<Args...> format, Args&&... args) {
    if (m_result.faults.size() < k_max_faults) {
      m_result.faults.push_back(fmt::format(format, std::forward<Args>(args)...));
    }
  }

  /// Every byte of the gradient has its latest parameters at one rank.
  void check_latest_cover() {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> held;
    for (const RankProgram& rank : m_schedule.ranks) {
      for (const ParameterRun& run : rank.parameters) {
        if (run.latest && run.bytes > 0) {
          held.emplace_back(run.gradient_offset, run.gradient_offset + run.bytes);
        }
      }
    }
    std::sort(held.begin(), held.end());
    std::size_t next = 0;
    for (const DTypeRun& run : m_schedule.runs) {
      std::uint64_t at = run.offset_bytes;
      for (; next < held.size() && held[next].first == at && at < run.offset_bytes + run.bytes;
           ++next) {
        at = held[next].second;
      }
      if (at != run.offset_bytes + run.bytes) {
        end_fault("gradient byte {} has its latest parameters nowhere, or at several ranks", at);
      }
    }
  }

  /// What is wrong with the changes that parameters of rank `r` hold in the end; empty when
  /// nothing.
  [[nodiscard]] std::string wrong_changes(std::uint32_t r, bool latest,
                                          const Content& content) const {
    for (std::uint32_t w = 0; w < m_schedule.worker.size(); ++w) {
      for (std::uint32_t s = 0; m_schedule.worker[w] && s < m_schedule.steps; ++s) {
        const std::uint32_t times = content.times(k_change + w * m_schedule.steps + s);
        if (times > 1 || (times == 0 && (latest || w == r))) {
          return fmt::format("hold step {} of worker {} {} times", s, w, times);
        }
      }
    }
    return content.times(k_parameters) != 1 || content.holds(k_none)
               ? "are not the first ones and changes"
               : "";
  }

  /// All of them stepped once, and at a worker there is one for every byte of the gradient.
  void check_parameters(std::uint32_t r) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> held;
    for (const ParameterRun& run : m_schedule.ranks[r].parameters) {
      if (run.bytes == 0) {
        continue;
      }
      if (!run.latest) {
        held.emplace_back(run.gradient_offset, run.gradient_offset + run.bytes);
      }
      pieces_of(
          r, run.at, run.bytes, [&](std::uint64_t b, std::uint64_t e, const Content& content) {
            if (m_schedule.outcome == Outcome::latest) {
              if (const std::string wrong = wrong_changes(r, run.latest, content); !wrong.empty()) {
                end_fault("rank {}: the {} parameters of part bytes from {} {}", r,
                          run.latest ? "latest" : "worker's",
                          run.gradient_offset + b - run.at.offset, wrong);
              }
            } else if (content != Content{{k_parameters, 1}, {k_step, 1}}) {
              end_fault("rank {}: parameter bytes [{}, {}) make {} steps instead of one", r,
                        run.gradient_offset + b - run.at.offset,
                        run.gradient_offset + e - run.at.offset, content.times(k_step));
            }
          });
    }
    std::sort(held.begin(), held.end());
    for (const DTypeRun& run : m_schedule.runs) {
      std::uint64_t next = run.offset_bytes;
      for (const auto& [begin, end] : held) {
        next = begin <= next ? std::max(next, end) : next;
      }
      if (m_schedule.worker[r] && next < run.offset_bytes + run.bytes) {
        end_fault("rank {}: has no parameters for gradient byte {}", r, next);
      }
    }
  }

  /// What a rank has saved is as it was before the iteration.
  void check_copies(std::uint32_t r) {
    for (const SavedRun& run : m_schedule.ranks[r].saved) {
      pieces_of(r, run.copy, run.kept.bytes,
                [&](std::uint64_t b, std::uint64_t, const Content& content) {
                  if (content != before_iteration(run.kept.array)) {
                    end_fault("rank {}: array {} from gradient byte {} is saved {}", r,
                              run.kept.array, run.kept.gradient_offset + (b - run.copy.offset),
                              content.holds(k_step) ? "after its step" : "wrong");
                  }
                });
    }
  }

  void check_restored(std::uint32_t r) {
    for (const KeptRun& run : m_schedule.ranks[r].kept) {
      pieces_of(r, run.at, run.bytes, [&](std::uint64_t b, std::uint64_t, const Content& content) {
        if (content != before_iteration(run.array)) {
          end_fault("rank {}: array {} from gradient byte {} is not restored", r, run.array,
                    run.gradient_offset + (b - run.at.offset));
        }
      });
    }
  }

  /// "worker 2 0 times instead of every worker once".
  static std::string wrong_in(const Content& content, const Content& all) {
    std::vector<std::string> wrong;
    for (const Content::Run& run : all.runs()) {
      for (std::uint32_t worker = run.first; worker <= run.last; ++worker) {
        if (content.times(worker) != run.times) {
          wrong.push_back(fmt::format("worker {} {} times", worker, content.times(worker)));
        }
      }
    }
    if (content.holds(k_none)) {
      wrong.emplace_back("memory nobody wrote");
    }
    if (content.holds(k_parameters) || content.holds(k_state)) {
      wrong.emplace_back("parameters or optimizer states");
    }
    return fmt::format("{} instead of every worker once", fmt::join(wrong, ", "));
  }

  void check_races() {
    // Asynchronous additions to the latest parameters come in any order; so does what reads them.
    std::set<std::pair<std::uint32_t, std::uint32_t>> latest; // (rank, buffer)
    // Of every byte: the accesses that the next one must come after. That it comes after those
    // before them then follows.
    std::vector<std::vector<Pieces<std::vector<Access>>>> last(m_schedule.ranks.size());
    for (std::uint32_t r = 0; r < m_schedule.ranks.size(); ++r) {
      for (const std::uint64_t bytes : m_schedule.ranks[r].buffer_bytes) {
        last[r].emplace_back(bytes, std::vector<Access>());
      }
      for (const ParameterRun& run : m_schedule.ranks[r].parameters) {
        if (run.latest) {
          latest.emplace(r, run.at.buffer);
        }
      }
    }
    std::vector<std::uint32_t> position(m_places.size());
    OrderedGraph graph; // a way from a to b: a is certainly over when b is done
    for (const std::uint32_t node : m_order) {
      position[node] = static_cast<std::uint32_t>(graph.size());
      predecessors(node, [&](std::uint32_t p) { graph.add_predecessor(position[p]); });
      graph.append();
    }
    struct Conflict {
      std::uint32_t first = 0, second = 0; // in m_order
      Slice at;
    };
    std::vector<Conflict> conflicts;
    std::vector<WayQuestion> questions;
    const auto touch = [&](std::uint32_t node, Slice slice, std::uint64_t bytes, bool changes) {
      if (bytes == 0) {
        return;
      }
      const Located located = locate(m_schedule, m_places[node].rank, slice);
      const std::uint32_t rank = located.rank;
      const Slice s = located.at;
      const Op& op = op_at(node);
      const bool adds =
          op.kind == OpKind::update ||
          (op.kind == OpKind::reduce && lane_at(node).sources(op)[0] == op.destination);
      const Access access{node, changes,
                          latest.count({rank, s.buffer}) != 0 &&
                              (changes ? adds : adds || op.kind == OpKind::copy)};
      // An arrival begins when the peer's write does, all else when its predecessors are over.
      const std::uint32_t start = m_writer_of[node] != k_none ? m_writer_of[node] : node;
      for_each_piece(last[rank][s.buffer], s.offset, s.offset + bytes,
                     [&](std::uint64_t b, std::uint64_t e, std::vector<Access>& before) {
                       for (const Access& o : before) {
                         const bool in_turn = access.commutes && o.commutes &&
                                              m_places[node].lane == m_places[o.node].lane;
                         if ((changes || o.changes) && !in_turn && node != o.node) {
                           questions.push_back({position[o.node], position[start],
                                                static_cast<std::uint32_t>(conflicts.size())});
                           conflicts.push_back({o.node, node, {s.buffer, b}});
                         }
                       }
                       if (changes && !access.commutes) {
                         before.clear();
                       }
                       before.push_back(access);
                       last[rank][s.buffer].set(b, e, before);
                     });
    };
    for (const std::uint32_t node : m_order) {
      const Op& op = op_at(node);
      if (op.kind == OpKind::await) {
        // A peer's write changes our memory at some time from its start there until the await here
        // is done.
        const Op& write = op_at(m_writer_of[node]);
        touch(node, write.destination, write.bytes, true);
        continue;
      }
      if (op.kind == OpKind::sum_in_place) {
        for (const Slice& s : lane_at(node).sources(op)) {
          touch(node, s, op.bytes, true);
        }
        continue;
      }
      if (op.kind != OpKind::reduce && op.kind != OpKind::update) {
        touch(node, op.source, source_bytes(op), false);
      }
      if (op.kind != OpKind::write) {
        touch(node, op.destination, destination_bytes(op), true);
      }
      if (op.kind == OpKind::reduce || op.kind == OpKind::update) {
        const std::span<const Slice> sources = lane_at(node).sources(op);
        for (std::size_t s = 0; s < sources.size(); ++s) {
          touch(node, sources[s], op.bytes, op.kind == OpKind::update && s > 0); // states change
        }
      }
    }
    for (const WayQuestion& race : without_way(graph, std::move(questions))) {
      const Conflict& c = conflicts[race.about];
      const Place& p = m_places[c.first];
      fault(c.second,
            fmt::format("races with op {} of lane {} ({}, part {}) for bytes from {} of buffer {}",
                        p.op, p.lane, name_of(op_at(c.first).kind), op_at(c.first).part,
                        c.at.offset, c.at.buffer));
    }
  }

  const Schedule& m_schedule;
  std::vector<Place> m_places;
  std::vector<std::vector<std::uint32_t>> m_first; ///< number of the first op of [rank][lane]
  std::vector<std::uint32_t> m_writer_of;          ///< for an await: the write it meets
  std::vector<std::uint32_t> m_order;              ///< a topological order
  std::vector<std::vector<Memory>> m_memory;       ///< of [rank][buffer]
  Content m_all;                                   ///< every worker once
  /// (rank, part, worker): asynchronous steps made there with that worker's gradient so far.
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t> m_changes;
  CheckResult m_result;
};

} // namespace

CheckResult check(const Schedule& schedule) {
  return Checker(schedule).run();
}

} // namespace reckon
