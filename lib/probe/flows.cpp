// SPDX-License-Identifier: Apache-2.0
#include "probe/flows.hpp"

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/json.hpp"
#include "core/threads.hpp"
#include "probe/pattern.hpp"
#include "probe/pin.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>

namespace reckon {
namespace {

constexpr std::uint32_t k_source = 0, k_target = 1;      // buffers, in the order of allocation
constexpr std::chrono::milliseconds k_longest_sleep{20}; // as the executor

/// Senders go on this long after the last window: the ranks do not start at exactly the same time.
constexpr std::int64_t k_margin_ns = 60'000'000;

// Tags: the number of the flow among those to the receiver; for the last one of a flow also how
// many writes there were, since a transport may deliver in any order.
constexpr std::uint32_t k_last = 0x8000'0000;
constexpr std::uint32_t k_enough = 0x4000'0000; // back to the sender: the whole series is here
/// Back to the sender, with the number of the flow among its own: another credit_step() are here.
constexpr std::uint32_t k_credit = 0x2000'0000;
constexpr unsigned k_count_bits = 18;
constexpr std::uint32_t k_count_mask = (1U << k_count_bits) - 1;
constexpr std::size_t k_most_flows = 1U << (29 - k_count_bits);
constexpr std::uint64_t k_control_id = UINT64_MAX;

/// In the order of FlowTask::Kind.
constexpr std::array<std::string_view, 4> k_kinds{"stream", "ping", "echo", "series"};

constexpr std::size_t k_most_points = 2048; // of each flow on each lane
/// Writes that are checked of each flow, and how much at both ends of each.
constexpr std::uint64_t k_checked_writes = 8;
constexpr std::uint64_t k_checked_end = 16 * 1024;

std::vector<std::vector<double>> rows(const JsonView& view) {
  std::vector<std::vector<double>> all;
  for (const JsonView& row : view.elements()) {
    all.push_back(row.numbers());
  }
  return all;
}

/// Writes of a stream that a receiver tells of together: few of those in flight. What tells of them
/// waits behind what flows back, and the more of them come at once, the longer both directions stop
/// in turn.
std::uint64_t credit_step(const FlowTask& task) {
  return std::max<std::uint64_t>(1, task.in_flight / 16);
}

std::int64_t nanoseconds(const JsonView& view) {
  return static_cast<std::int64_t>(view.number()); // 104 days of them are beyond count()
}

} // namespace

std::uint64_t place_of_write(std::uint64_t bytes) {
  const std::uint64_t unit = bytes >= k_page ? k_page : 64;
  return std::max<std::uint64_t>(1, (bytes + unit - 1) / unit) * unit;
}

std::string encode(const FlowTask& task) {
  Json flows = Json::array();
  for (const Flow& flow : task.flows) {
    flows.push_back(flow.from);
    flows.push_back(flow.to);
  }
  return Json{{"kind", k_kinds[static_cast<std::size_t>(task.kind)]},
              {"flows", flows},
              {"lanes", task.lanes},
              {"bytes", task.bytes},
              {"in_flight", task.in_flight},
              {"first", task.first},
              {"warm_up_ns", task.warm_up_ns},
              {"window_ns", task.window_ns},
              {"windows", task.windows},
              {"warm_up", task.warm_up},
              {"count", task.count},
              {"keep_load", task.keep_load},
              {"cpu", task.cpu}}
      .dump();
}

FlowTask decode_task(const std::string& text) {
  const Json json = parse_json(text, "task of rank 0");
  const JsonView view(json, "task of rank 0");
  view.only({"kind", "flows", "lanes", "bytes", "in_flight", "first", "warm_up_ns", "window_ns",
             "windows", "warm_up", "count", "keep_load", "cpu"});
  constexpr int k_most = 1 << 20;
  FlowTask task;
  const auto kind =
      std::find(k_kinds.begin(), k_kinds.end(),
                view.at("kind").one_of({k_kinds[0], k_kinds[1], k_kinds[2], k_kinds[3]}));
  task.kind = static_cast<FlowTask::Kind>(kind - k_kinds.begin());
  const std::vector<JsonView> ends = view.at("flows").elements();
  for (std::size_t i = 0; i + 1 < ends.size(); i += 2) {
    task.flows.push_back({ends[i].integer(0, k_most), ends[i + 1].integer(0, k_most)});
  }
  task.lanes.clear();
  for (const JsonView& lane : view.at("lanes").elements()) {
    task.lanes.push_back(lane.integer(0, k_most));
  }
  task.bytes = view.at("bytes").count();
  task.in_flight = static_cast<std::uint32_t>(view.at("in_flight").integer(1, k_most));
  task.first = view.at("first").count();
  task.warm_up_ns = nanoseconds(view.at("warm_up_ns"));
  task.window_ns = nanoseconds(view.at("window_ns"));
  task.windows = view.at("windows").integer(0, k_most);
  task.warm_up = view.at("warm_up").count();
  task.count = view.at("count").count();
  task.keep_load = view.at("keep_load").boolean();
  task.cpu = view.at("cpu").integer(-1, k_most);
  return task;
}

std::string encode(const FlowOutcome& outcome) {
  Json json{{"rates", outcome.rates},
            {"total", outcome.total},
            {"round_trip_s", outcome.round_trip_s},
            {"begin_ns", outcome.begin_ns},
            {"end_ns", outcome.end_ns}};
  if (outcome.wrong_at != UINT64_MAX) {
    json["wrong_at"] = outcome.wrong_at;
  }
  return json.dump();
}

FlowOutcome decode_flow_outcome(const std::string& text) {
  const Json json = parse_json(text, "outcome of a rank");
  const JsonView view(json, "outcome of a rank");
  view.only({"rates", "total", "round_trip_s", "begin_ns", "end_ns", "wrong_at"});
  FlowOutcome outcome;
  outcome.rates = rows(view.at("rates"));
  outcome.total = view.at("total").numbers();
  outcome.round_trip_s = view.at("round_trip_s").numbers();
  outcome.begin_ns = nanoseconds(view.at("begin_ns"));
  outcome.end_ns = nanoseconds(view.at("end_ns"));
  if (const auto wrong = view.find("wrong_at")) {
    outcome.wrong_at = wrong->count();
  }
  return outcome;
}

double arrival_rate(std::span<const Progressed> points, std::int64_t from_ns, std::int64_t to_ns) {
  const auto before = [](const Progressed& point, std::int64_t ns) { return point.ns < ns; };
  const auto first = std::lower_bound(points.begin(), points.end(), from_ns, before);
  const auto last = std::lower_bound(first, points.end(), to_ns, before);
  const auto n = static_cast<double>(last - first);
  if (n < 3) {
    return 0;
  }
  double time = 0, bytes = 0; // means, from the first point
  for (auto p = first; p != last; ++p) {
    time += static_cast<double>(p->ns - first->ns) / n;
    bytes += static_cast<double>(p->bytes - first->bytes) / n;
  }
  double together = 0, alone = 0;
  for (auto p = first; p != last; ++p) {
    const double t = static_cast<double>(p->ns - first->ns) - time;
    together += t * (static_cast<double>(p->bytes - first->bytes) - bytes);
    alone += t * t;
  }
  return alone > 0 ? 1e9 * together / alone : 0;
}

std::vector<Progressed> merged(const std::vector<std::span<const Progressed>>& parts) {
  struct Step {
    std::int64_t ns;
    std::uint64_t more;
  };
  std::vector<Step> steps;
  for (const std::span<const Progressed> part : parts) {
    std::uint64_t before = 0;
    for (const Progressed& point : part) {
      steps.push_back({point.ns, point.bytes - before});
      before = point.bytes;
    }
  }
  std::stable_sort(steps.begin(), steps.end(),
                   [](const Step& a, const Step& b) { return a.ns < b.ns; });
  std::vector<Progressed> all;
  std::uint64_t bytes = 0;
  for (const Step& step : steps) {
    bytes += step.more;
    if (!all.empty() && all.back().ns == step.ns) {
      all.back().bytes = bytes;
    } else {
      all.push_back({step.ns, bytes});
    }
  }
  return all;
}

std::vector<double> window_rates(const FlowTask& task,
                                 const std::vector<std::span<const Progressed>>& parts) {
  const std::vector<Progressed> points = merged(parts);
  std::vector<double> rates;
  for (int w = 0; w < task.windows; ++w) {
    const std::int64_t from = task.warm_up_ns + w * task.window_ns;
    rates.push_back(arrival_rate(points, from, from + task.window_ns));
  }
  if (std::find(rates.begin(), rates.end(), 0.0) != rates.end()) {
    // A flow that is slower than expected: all windows together may still tell.
    const double whole =
        arrival_rate(points, task.warm_up_ns, task.warm_up_ns + task.windows * task.window_ns);
    std::fill(rates.begin(), rates.end(), whole);
  }
  return rates;
}

struct FlowRank::In {
  int peer = 0;
  std::uint32_t number = 0; ///< of the flow among those of the peer
  std::uint64_t region = 0, slots = 1;
  std::uint64_t arrived = 0;
  std::uint64_t credited = 0; ///< of those, how many the peer was told of
  std::int64_t noted_ns = 0;
  std::vector<Progressed> points;
  std::int64_t writes = -1; ///< modulo 2^k_count_bits, once told
  std::int64_t end_ns = 0;  ///< series: when all were here
  bool told_enough = false;
};

/// What one lane does in one task, and what came of it. Written by its thread alone.
struct FlowRank::LaneWork {
  struct Out {
    int peer = 0;
    std::uint32_t index = 0;  ///< of the flow among those to the peer
    std::uint64_t region = 0; ///< where the peer wants them
    std::uint64_t slots = 1;
    std::uint64_t posted = 0, sent = 0;
    std::uint64_t credited = 0; ///< stream: so many are at the receiver
    bool enough = false;        ///< series: the receiver has it
    bool told = false;
  };
  int lane = 0;
  std::size_t place = 0; ///< among the task's lanes
  int cpu = -1;
  std::vector<Out> out;
  std::vector<In> in;
  std::uint64_t control_posted = 0, control_sent = 0;
  std::uint64_t gap_ns = 0;
  std::int64_t begin_ns = 0;
  std::vector<std::int64_t> stamps;
  std::string error;
};

FlowRank::FlowRank(std::unique_ptr<Mover> mover, const Options& options)
    : m_mover(std::move(mover)), m_options(options), m_source(m_mover->allocate(options.memory)),
      m_target(m_mover->allocate(options.memory)) {
  m_mover->open(options.lanes);
  fill_with_pattern(m_mover->view(m_source),
                    options.seed + static_cast<std::uint64_t>(options.rank));
  m_mover->push(m_source);
}

FlowRank::~FlowRank() {
  stop();
}

void FlowRank::connect(const std::vector<std::string>& addresses) {
  m_mover->connect(m_options.rank, addresses);
}

std::uint64_t FlowRank::source_of(std::uint64_t number) const {
  const std::uint64_t place = place_of_write(m_task.bytes);
  return (m_task.first + number) % (m_source.size() / place) * place;
}

std::uint64_t FlowRank::target_of(std::uint64_t region, std::uint64_t slots,
                                  std::uint64_t number) const {
  // A series goes on where the one before ended: so much memory is in no cache.
  const bool goes_on = m_task.kind == FlowTask::Kind::series;
  return region + (goes_on ? m_task.first + number : number) % slots * place_of_write(m_task.bytes);
}

std::uint64_t FlowRank::slots(std::uint64_t bytes, std::size_t flows, std::size_t lanes) const {
  const std::uint64_t region =
      m_target.size() / std::max<std::size_t>(1, flows * lanes) / k_page * k_page;
  return region / place_of_write(bytes);
}

std::uint64_t FlowRank::region_of(std::size_t index, std::size_t flows, std::size_t lane) const {
  const std::size_t lanes = m_task.lanes.size();
  return (index * lanes + lane) * (m_target.size() / (flows * lanes) / k_page * k_page);
}

void FlowRank::prepare(const FlowTask& task) {
  m_threads.clear();
  m_work.clear();
  m_task = task;
  for (std::size_t place = 0; place < task.lanes.size(); ++place) {
    auto work = std::make_unique<LaneWork>();
    work->lane = task.lanes[place];
    work->place = place;
    work->cpu = task.cpu >= 0 || m_options.cpus.empty()
                    ? task.cpu
                    : m_options.cpus[static_cast<std::size_t>(work->lane) % m_options.cpus.size()];
    work->gap_ns =
        static_cast<std::uint64_t>(task.warm_up_ns + task.window_ns * task.windows + k_margin_ns) /
        (k_most_points - 8);
    std::vector<std::uint32_t> flows_to, flows_from; // by rank
    const auto add_flow = [](std::vector<std::uint32_t>& flows, int rank) {
      const auto at = static_cast<std::size_t>(rank);
      flows.resize(std::max(flows.size(), at + 1));
      return flows[at]++;
    };
    std::vector<std::uint32_t> index, number;
    for (const Flow& flow : task.flows) {
      index.push_back(add_flow(flows_to, flow.to));
      number.push_back(add_flow(flows_from, flow.from));
    }
    for (std::size_t f = 0; f < task.flows.size(); ++f) {
      const Flow& flow = task.flows[f];
      if (flow.from != m_options.rank && flow.to != m_options.rank) {
        continue;
      }
      const std::uint32_t all = flows_to[static_cast<std::size_t>(flow.to)];
      const std::uint64_t room = slots(task.bytes, all, task.lanes.size());
      if (room == 0 || all > k_most_flows) {
        fail(ErrorKind::internal,
             fmt::format("no room for {} flows of {} bytes to rank {}", all, task.bytes, flow.to));
      }
      const std::uint64_t region = region_of(index[f], all, place);
      if (flow.from == m_options.rank) {
        work->out.push_back({flow.to, index[f], region, room});
      }
      if (flow.to == m_options.rank) {
        In& in = work->in.emplace_back();
        in.peer = flow.from;
        in.number = number[f];
        in.region = region;
        in.slots = room;
        in.points.reserve(k_most_points);
        if (task.kind == FlowTask::Kind::series) { // the places of the last series have its data
          std::byte* const target = m_mover->view(m_target).data();
          for_checked(in, [target](std::uint64_t /*from*/, std::uint64_t to, std::uint64_t bytes) {
            std::memset(target + to, k_poison, bytes);
          });
          m_mover->push(m_target);
        }
      }
    }
    work->stamps.reserve(task.count + 1);
    m_work.push_back(std::move(work));
  }
}

void FlowRank::begin() {
  m_stop.store(false, std::memory_order_relaxed);
  m_running = m_work.size();
  m_begin_ns = monotonic_ns();
  try {
    for (const auto& lane : m_work) {
      m_threads.push_back(start_thread("a lane", [this, work = lane.get()] { this->work(*work); }));
    }
  } catch (...) {
    stop();
    m_running = 0;
    throw;
  }
}

void FlowRank::work(LaneWork& lane) noexcept {
  try {
    if (lane.cpu >= 0) {
      bind_to_cpu(lane.cpu);
    }
  } catch (const Error& error) {
    lane.error = error.what();
  }
  if (lane.error.empty() && !(lane.in.empty() && lane.out.empty())) {
    const bool round_trips =
        m_task.kind == FlowTask::Kind::ping || m_task.kind == FlowTask::Kind::echo;
    round_trips ? ping(lane) : stream(lane);
  }
  {
    const std::lock_guard lock(m_mutex);
    --m_running;
  }
  m_finished.notify_one();
}

std::size_t FlowRank::poll(LaneWork& lane) noexcept {
  std::array<Completion, 16> completions;
  MoverLane& mover = m_mover->lane(lane.lane);
  const std::size_t count = mover.poll(completions);
  for (std::size_t i = 0; i < count; ++i) {
    const Completion& c = completions[i];
    if (c.kind == Completion::Kind::failed) {
      lane.error = mover.error();
    } else if (c.kind == Completion::Kind::sent) {
      if (c.id == k_control_id) {
        ++lane.control_sent;
      } else {
        ++lane.out[c.id].sent;
      }
    } else if ((c.tag & k_last) != 0) {
      lane.in[(c.tag & ~k_last) >> k_count_bits].writes =
          static_cast<std::int64_t>(c.tag & k_count_mask);
    } else if ((c.tag & k_credit) != 0) {
      lane.out[c.tag & ~k_credit].credited += credit_step(m_task);
    } else if (c.tag == k_enough) {
      lane.out.front().enough = true;
    } else {
      ++lane.in[c.tag].arrived;
    }
  }
  if (count == 0 || m_task.kind != FlowTask::Kind::stream) {
    return count;
  }
  const std::int64_t now = monotonic_ns();
  for (In& in : lane.in) {
    const bool new_ones = in.arrived > 0 && (in.points.empty() ||
                                             in.points.back().bytes != in.arrived * m_task.bytes);
    if (new_ones && now - in.noted_ns >= static_cast<std::int64_t>(lane.gap_ns) &&
        in.points.size() < k_most_points) {
      in.points.push_back({now - m_begin_ns, in.arrived * m_task.bytes});
      in.noted_ns = now;
    }
  }
  return count;
}

void FlowRank::stream(LaneWork& lane) noexcept {
  MoverLane& mover = m_mover->lane(lane.lane);
  const bool series = m_task.kind == FlowTask::Kind::series;
  const std::int64_t end =
      m_begin_ns + m_task.warm_up_ns + m_task.windows * m_task.window_ns + k_margin_ns;
  const std::uint64_t step = credit_step(m_task);
  const auto finished = [&lane, series, step] {
    return lane.control_sent == lane.control_posted &&
           std::all_of(lane.out.begin(), lane.out.end(),
                       [&](const LaneWork::Out& out) {
                         return out.told && (series || out.posted - out.credited < step);
                       }) &&
           std::all_of(lane.in.begin(), lane.in.end(), [&](const In& in) {
             return in.writes >= 0 &&
                    static_cast<std::uint64_t>(in.writes) == (in.arrived & k_count_mask) &&
                    (series || in.arrived - in.credited < step);
           });
  };
  lane.begin_ns = monotonic_ns();
  while (lane.error.empty() && !m_stop.load(std::memory_order_relaxed)) {
    bool busy = poll(lane) > 0;
    const bool in_time = !series && monotonic_ns() < end;
    for (std::size_t i = 0; i < lane.out.size(); ++i) {
      LaneWork::Out& out = lane.out[i];
      // One write at least, also from a thread that came too late: of nothing, nothing is checked.
      const bool more = series ? !out.enough && (m_task.keep_load || out.posted < m_task.count)
                               : in_time || out.posted == 0;
      // Those in flight must not overwrite each other, unless with the same data, as in a series.
      const std::uint64_t most =
          series ? m_task.in_flight : std::min<std::uint64_t>(m_task.in_flight, out.slots);
      // A transport may call sent what its own buffers hold: on the way is what is not there yet.
      const std::uint64_t there = series ? out.sent : std::min(out.sent, out.credited);
      if (more && out.posted - there < most) {
        const Slice to{k_target, target_of(out.region, out.slots, out.posted)};
        if (mover.write(out.peer, {k_source, source_of(out.posted)}, to, m_task.bytes, out.index,
                        i)) {
          ++out.posted;
          busy = true;
        }
      } else if (!more && !out.told && out.sent == out.posted && (out.enough || !series)) {
        const auto count = static_cast<std::uint32_t>(out.posted) & k_count_mask;
        if (mover.write(out.peer, {}, {}, 0, k_last | (out.index << k_count_bits) | count,
                        k_control_id)) {
          ++lane.control_posted;
          out.told = busy = true;
        }
      }
    }
    for (In& in : lane.in) {
      if (!series && in.arrived - in.credited >= step &&
          mover.write(in.peer, {}, {}, 0, k_credit | in.number, k_control_id)) {
        ++lane.control_posted;
        in.credited += step;
        busy = true;
      }
      if (series && !in.told_enough && in.arrived >= m_task.count) {
        in.end_ns = in.end_ns == 0 ? monotonic_ns() : in.end_ns;
        if (mover.write(in.peer, {}, {}, 0, k_enough, k_control_id)) {
          ++lane.control_posted;
          in.told_enough = busy = true;
        }
      }
    }
    if (finished()) {
      return;
    }
    if (!busy) {
      mover.wait(k_longest_sleep);
    }
  }
}

void FlowRank::ping(LaneWork& lane) noexcept {
  MoverLane& mover = m_mover->lane(lane.lane);
  const bool begins = !lane.out.empty();
  const int peer = begins ? lane.out.front().peer : lane.in.front().peer;
  std::uint64_t posted = 0;
  const auto stopped = [&] {
    return !lane.error.empty() || m_stop.load(std::memory_order_relaxed);
  };
  // A ping's flow goes both ways, so both sides have an entry for what they receive.
  if (lane.in.empty()) {
    lane.in.emplace_back();
  }
  const auto say = [&] {
    Slice from{k_source, 0}, to{k_target, 0};
    const bool long_one = begins && m_task.kind == FlowTask::Kind::echo;
    const std::uint64_t bytes = long_one ? m_task.bytes : 8;
    if (long_one) {
      from.offset = source_of(posted);
      to.offset = target_of(lane.out.front().region, lane.out.front().slots, posted);
    }
    while (!stopped() && !mover.write(peer, from, to, bytes, 0, k_control_id)) {
      if (poll(lane) == 0) {
        mover.wait(k_longest_sleep);
      }
    }
    ++posted;
  };
  for (std::uint64_t round = 0; round < m_task.warm_up + m_task.count; ++round) {
    if (begins) {
      if (round >= m_task.warm_up) {
        lane.stamps.push_back(monotonic_ns());
      }
      say();
    }
    while (!stopped() && lane.in.front().arrived <= round) {
      if (poll(lane) == 0) {
        mover.wait(k_longest_sleep);
      }
    }
    if (!begins) {
      say();
    }
  }
  if (begins) {
    lane.stamps.push_back(monotonic_ns());
  }
  while (!stopped() && lane.control_sent < posted) {
    if (poll(lane) == 0) {
      mover.wait(k_longest_sleep);
    }
  }
}

bool FlowRank::finished_within(std::chrono::milliseconds limit) {
  std::unique_lock lock(m_mutex);
  return m_finished.wait_for(lock, limit, [&] { return m_running == 0; });
}

void FlowRank::stop() {
  m_stop.store(true, std::memory_order_relaxed);
  m_threads.clear();
}

std::string FlowRank::stop_and_describe() {
  stop();
  std::string text;
  for (const auto& lane : m_work) {
    for (const LaneWork::Out& out : lane->out) {
      if (out.sent < out.posted || !out.told) {
        text += fmt::format("; {} of {} writes of {} bytes to rank {} have left", out.sent,
                            out.posted, m_task.bytes, out.peer);
      }
    }
    if (lane->control_sent < lane->control_posted) {
      text += "; a signal has not left";
    }
    for (const In& in : lane->in) {
      if (in.writes < 0) {
        text += fmt::format("; rank {}, with {} writes here, has not said that it is done", in.peer,
                            in.arrived);
      } else if (static_cast<std::uint64_t>(in.writes) != (in.arrived & k_count_mask)) {
        text += fmt::format("; {} writes of rank {} are here, it says {}", in.arrived, in.peer,
                            in.writes);
      }
    }
  }
  return text.empty() ? "its lanes do not answer" : text.substr(2);
}

/// Calls act(source, target, bytes) for both ends of the writes of a flow that are checked: the
/// last ones, as far as they stay in their places, and the first ones of a series, which brings
/// each place the same data again.
template <class Act>
void FlowRank::for_checked(const In& in, Act act) const {
  const bool series = m_task.kind == FlowTask::Kind::series;
  const std::uint64_t all = series ? m_task.count : in.arrived;
  const std::uint64_t end = std::min(m_task.bytes, k_checked_end);
  const auto both_ends = [&](std::uint64_t number) {
    const std::uint64_t from = source_of(number), to = target_of(in.region, in.slots, number);
    act(from, to, end);
    act(from + m_task.bytes - end, to + m_task.bytes - end, end);
  };
  for (std::uint64_t i = 0; i < std::min({all, series ? all : in.slots, k_checked_writes}); ++i) {
    both_ends(all - 1 - i);
    if (series) {
      both_ends(i);
    }
  }
}

void FlowRank::check(const LaneWork& lane, FlowOutcome& outcome) const {
  if (!lane.in.empty()) {
    m_mover->pull(m_target);
  }
  const std::byte* const target = m_mover->view(m_target).data();
  for (const In& in : lane.in) {
    const std::uint64_t seed = m_options.seed + static_cast<std::uint64_t>(in.peer);
    for_checked(in, [&](std::uint64_t from, std::uint64_t to, std::uint64_t bytes) {
      for (std::uint64_t b = 0; b < bytes && outcome.wrong_at == UINT64_MAX; ++b) {
        if (target[to + b] != pattern_byte(seed, from + b)) {
          outcome.wrong_at = to + b;
        }
      }
    });
  }
}

FlowOutcome FlowRank::outcome() {
  m_threads.clear();
  FlowOutcome outcome;
  std::vector<std::span<const Progressed>> all;
  std::vector<std::vector<std::span<const Progressed>>> lanes_of; // of each flow
  for (const auto& lane : m_work) {
    if (!lane->error.empty()) {
      fail(ErrorKind::operation,
           fmt::format("rank {} lane {}: {}", m_options.rank, lane->lane, lane->error));
    }
    for (std::size_t i = 0; i + 1 < lane->stamps.size(); ++i) {
      outcome.round_trip_s.push_back(static_cast<double>(lane->stamps[i + 1] - lane->stamps[i]) *
                                     1e-9);
    }
    const bool answers = m_task.kind == FlowTask::Kind::echo && !lane->out.empty();
    if (m_task.kind != FlowTask::Kind::ping && !answers) {
      check(*lane, outcome);
    }
    if (m_task.kind == FlowTask::Kind::series) {
      outcome.begin_ns = lane->begin_ns;
      outcome.end_ns = lane->in.empty() ? 0 : lane->in.front().end_ns;
    }
    if (m_task.kind != FlowTask::Kind::stream) {
      continue;
    }
    lanes_of.resize(lane->in.size());
    for (std::size_t flow = 0; flow < lane->in.size(); ++flow) {
      all.emplace_back(lane->in[flow].points);
      lanes_of[flow].emplace_back(lane->in[flow].points);
    }
  }
  for (const auto& lanes : lanes_of) {
    outcome.rates.push_back(window_rates(m_task, lanes));
  }
  if (!all.empty()) {
    outcome.total = window_rates(m_task, all);
  }
  return outcome;
}

} // namespace reckon
