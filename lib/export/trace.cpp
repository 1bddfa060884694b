// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "core/json.hpp"
#include "export/export.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>

namespace reckon {
namespace {

/// Rows of a lane. Events in one row of a trace viewer must not overlap.
enum class RowKind : std::uint8_t { lane, passes, writes };
constexpr std::array<std::pair<RowKind, const char*>, 3> k_rows{
    {{RowKind::lane, ""}, {RowKind::passes, ", passes"}, {RowKind::writes, ", writes"}}};

RowKind row_of(OpKind kind) {
  return kind == OpKind::write   ? RowKind::writes
         : kind == OpKind::delay ? RowKind::passes
                                 : RowKind::lane;
}

std::string text_of(const Op& op) {
  switch (op.kind) {
  case OpKind::write:
    return fmt::format("part {} to rank {}, {} B", op.part, op.peer, op.bytes);
  case OpKind::await:
    return fmt::format("part {} from rank {}", op.part, op.peer);
  case OpKind::reduce:
  case OpKind::sum_in_place:
    return fmt::format("sum of part {}, {} x {} B", op.part, op.source_count, op.bytes);
  case OpKind::copy:
    return fmt::format("copy of part {}, {} B", op.part, op.bytes);
  case OpKind::update:
    return fmt::format("step of part {}, {} B", op.part, op.bytes);
  case OpKind::subtract:
    return fmt::format("delta of part {}, {} B", op.part, op.bytes);
  case OpKind::to_fixed:
  case OpKind::from_fixed:
  case OpKind::narrow:
  case OpKind::widen:
    return fmt::format("conversion of part {}, {} B", op.part, op.bytes);
  case OpKind::delay:
    return "pass";
  }
  return "?";
}

class TraceWriter {
public:
  explicit TraceWriter(const Schedule& schedule) : m_schedule(schedule) {
    put("{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
  }

  void timeline(const NamedTimeline& timeline) {
    ++m_process;
    event("{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{},\"args\":{{\"name\":{}}}}}",
          m_process, Json(timeline.name).dump());
    std::int64_t start = std::numeric_limits<std::int64_t>::max();
    for_each_lane([&](std::size_t r, std::size_t l) {
      for (const OpSpan& span : timeline.ops[r][l]) {
        start = std::min(start, span.begin_ns);
      }
    });
    for_each_lane([&](std::size_t r, std::size_t l) {
      for (const auto& [kind, suffix] : k_rows) {
        rows(r, l, kind, suffix, timeline.ops[r][l], start);
      }
    });
  }

  std::string finish() {
    put("\n]}}\n");
    return fmt::to_string(m_text);
  }

private:
  template <class Function>
  void for_each_lane(Function function) const {
    for (std::size_t r = 0; r < m_schedule.ranks.size(); ++r) {
      for (std::size_t l = 0; l < m_schedule.ranks[r].lanes.size(); ++l) {
        function(r, l);
      }
    }
  }

  void rows(std::size_t rank, std::size_t lane, RowKind kind, const char* suffix,
            const std::vector<OpSpan>& spans, std::int64_t start) {
    const std::span<const Op> ops = m_schedule.ranks[rank].lanes[lane].ops();
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (row_of(ops[i].kind) == kind) {
        order.push_back(i);
      }
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return spans[a].begin_ns < spans[b].begin_ns;
    });
    std::vector<std::int64_t> free_ns; // by row
    const std::uint64_t first = m_thread + 1;
    for (const std::size_t i : order) {
      const bool instant = ops[i].kind == OpKind::await; // in the way of nothing
      auto row = std::find_if(free_ns.begin(), free_ns.end(), [&](std::int64_t free) {
        return instant || free <= spans[i].begin_ns;
      });
      if (row == free_ns.end()) {
        row = free_ns.insert(row, std::numeric_limits<std::int64_t>::min());
        ++m_thread;
        const std::size_t number = free_ns.size();
        event("{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":"
              "\"rank {} lane {}{}{}\"}}}}",
              m_process, m_thread, rank, lane, suffix,
              number > 1 ? fmt::format(" ({})", number) : "");
        event("{{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":{},\"tid\":{},\"args\":{{"
              "\"sort_index\":{}}}}}",
              m_process, m_thread, m_thread);
      }
      if (!instant) {
        *row = spans[i].end_ns;
      }
      one(ops[i], spans[i], start, first + static_cast<std::uint64_t>(row - free_ns.begin()));
      put("\"rank\":{},\"lane\":{},\"op\":{}}}}}", rank, lane, i);
    }
  }

  /// An event, up to its arguments. Chrome's times are microseconds: three digits keep ours.
  void one(const Op& op, const OpSpan& span, std::int64_t start, std::uint64_t thread) {
    const auto microseconds = [](std::int64_t ns) {
      return fmt::format("{}.{:03}", ns / 1000, ns % 1000);
    };
    event("{{\"name\":\"{}\",\"pid\":{},\"tid\":{},\"ts\":{},{},\"args\":{{", text_of(op),
          m_process, thread, microseconds(span.begin_ns - start),
          op.kind == OpKind::await
              ? std::string("\"ph\":\"i\",\"s\":\"t\"")
              : fmt::format("\"ph\":\"X\",\"dur\":{}", microseconds(span.end_ns - span.begin_ns)));
  }

  template <class... Args>
  void event(fmt::format_string<Args...> format, Args&&... args) {
    put("{}", m_first ? "\n" : ",\n");
    m_first = false;
    put(format, std::forward<Args>(args)...);
  }
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(m_text), format, std::forward<Args>(args)...);
  }

  const Schedule& m_schedule;
  fmt::memory_buffer m_text;
  bool m_first = true;
  int m_process = 0;
  std::uint64_t m_thread = 0; ///< of all processes: each number once
};

std::size_t index_of(const JsonView& args, const char* key, std::size_t count) {
  const std::uint64_t value = args.at(key).count();
  if (value >= count) {
    args.at(key).fail(
        fmt::format("is {}, and the plan has {} of them there; give the trace of a run "
                    "of this plan",
                    value, count));
  }
  return value;
}

/// Of the microseconds there.
std::int64_t nanoseconds_of(const JsonView& time) {
  constexpr double k_most_us = 1e12; // twelve days; rounding is below a nanosecond up to there
  const double us = time.non_negative();
  if (us > k_most_us) {
    time.fail(fmt::format("is {:g} us, more than {:g}; give the trace of a run", us, k_most_us));
  }
  return std::llround(us * 1000);
}

} // namespace

std::string chrome_trace(const Schedule& schedule, std::span<const NamedTimeline> timelines) {
  TraceWriter writer(schedule);
  for (const NamedTimeline& timeline : timelines) {
    writer.timeline(timeline);
  }
  return writer.finish();
}

NamedTimeline read_trace(const Json& json, const std::string& file, const Schedule& schedule,
                         const std::string& name) {
  const JsonView view(json, file);
  const std::vector<JsonView> events = view.at("traceEvents").elements();
  std::optional<std::uint64_t> process;
  for (const JsonView& event : events) {
    if (event.at("name").string() == "process_name" && event.at("ph").string() == "M" &&
        event.at("args").at("name").string() == name) {
      process = event.at("pid").count();
    }
  }
  if (!process) {
    view.fail(fmt::format("has no process named {}; give what `reckon run --trace` wrote", name));
  }
  NamedTimeline timeline{name, {}};
  std::size_t left = 0;
  std::vector<std::vector<std::vector<bool>>> seen;
  for (const RankProgram& rank : schedule.ranks) {
    RankTimeline& lanes = timeline.ops.emplace_back();
    auto& seen_lanes = seen.emplace_back();
    for (const LaneProgram& lane : rank.lanes) {
      lanes.emplace_back(lane.ops().size());
      seen_lanes.emplace_back(lane.ops().size());
      left += lane.ops().size();
    }
  }
  for (const JsonView& event : events) {
    const std::string kind = event.at("ph").string();
    if (kind == "M" || event.at("pid").count() != *process) {
      continue;
    }
    const JsonView args = event.at("args");
    const std::size_t rank = index_of(args, "rank", schedule.ranks.size());
    const std::size_t lane = index_of(args, "lane", schedule.ranks[rank].lanes.size());
    const std::span<const Op> ops = schedule.ranks[rank].lanes[lane].ops();
    const std::size_t op = index_of(args, "op", ops.size());
    if (event.at("name").string() != text_of(ops[op]) || seen[rank][lane][op]) {
      event.at("name").fail(fmt::format(
          "must be \"{}\", once; give the trace of a run of this plan", text_of(ops[op])));
    }
    seen[rank][lane][op] = true;
    --left;
    const std::int64_t begin = nanoseconds_of(event.at("ts"));
    const std::int64_t lasts = kind == "X" ? nanoseconds_of(event.at("dur")) : 0;
    timeline.ops[rank][lane][op] = {begin, begin + lasts};
  }
  if (left > 0) {
    view.fail(fmt::format(
        "lacks {} ops of the plan's schedule; give the trace of a run of this plan", left));
  }
  return timeline;
}

} // namespace reckon
