// SPDX-License-Identifier: Apache-2.0
#include "training/training.hpp"

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/interrupt.hpp"
#include "core/json.hpp"
#include "core/processors.hpp"
#include "core/threads.hpp"
#include "core/version.hpp"
#include "documents/document.hpp"
#include "documents/own_machines.hpp"
#include "kernels/scale.hpp"
#include "launch/peer_fields.hpp"
#include "run/checks.hpp"
#include "run/placement.hpp"
#include "run/transports.hpp"
#include "stats/summary.hpp"
#include "strategies/lower.hpp"
#include "strategies/predict.hpp"
#include "training/of_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

namespace reckon {
namespace {

/// Between steps: a rank may validate for as long as it likes.
constexpr Seconds k_no_limit{1e9};
constexpr std::size_t k_kept_steps = 1000;

void add(std::deque<double>& times, double seconds) {
  times.push_back(seconds);
  if (times.size() > k_kept_steps) {
    times.pop_front();
  }
}

double seconds_between(std::int64_t from_ns, std::int64_t to_ns) {
  return static_cast<double>(to_ns - from_ns) * 1e-9;
}

} // namespace

/// What a rank says before each step, and before it leaves.
struct Training::Arrival {
  bool worker = false, leaves = false, averages = false;
  std::uint64_t steps = 0;               ///< made so far
  std::int64_t ready_ns = 0, end_ns = 0; ///< of the last one, on rank 0's clock
  [[nodiscard]] PeerFields fields() {
    return {{"worker", &worker}, {"leaves", &leaves},     {"averages", &averages},
            {"steps", &steps},   {"ready_ns", &ready_ns}, {"end_ns", &end_ns}};
  }
};

Training::Training(const TrainingOptions& options)
    : m_plan(read_plan(options.plan)), m_link(link_to(options.plan, canonical_text(m_plan))) {
  require_plain_sums(m_plan, options.plan);
  m_workload = options.by_parts ? parts_as_workload(m_plan, options.plan)
                                : workload_of(m_plan, options.plan, options.workload);
  m_layout = layout_of(m_workload);
  m_workers = static_cast<std::size_t>(
      std::count_if(m_plan.ranks.begin(), m_plan.ranks.end(), [](auto& r) { return r.worker; }));
  m_factor = options.average ? 1 / static_cast<double>(m_workers) : 1;
  JobEnvironment job = environment_for(m_plan, options.plan);
  prepare(options, job);
  const NoSignals quiet;
  m_conductor =
      start_thread<std::thread>("the job's steps", [this, job = std::move(job)] { conduct(job); });
}

Training::~Training() {
  while (!abandoned_within(m_why, Seconds(1))) {
  }
}

// --- joining ---------------------------------------------------------------------------------

void Training::prepare(const TrainingOptions& options, const JobEnvironment& job) {
  m_self = static_cast<std::size_t>(job.rank);
  m_plan_file = options.plan;
  m_peer_limit = options.peer_limit;
  m_pin = options.pin_lanes;
  m_engine->options.limit = options.limit;
  m_engine->options.checksums = options.checksums;
  m_engine->options.local_rank = job.local_rank;
  m_engine->options.local_size = job.local_size;
  choose_transports(m_engine->options, m_plan, options.transport);
  if (m_engine->options.transport == k_unspecified_transport) {
    fail(ErrorKind::input,
         fmt::format("{}: the profile that it was made from names no transport of the machines' "
                     "ports; name one",
                     options.plan));
  }
  check_in_place(m_plan, options.plan);
  m_plan.sums_in_place = m_plan.sums_in_place && m_engine->options.transport == m_plan.transport;
  if (worker() && !options.gradient.empty()) {
    const bool aligned = reinterpret_cast<std::uintptr_t>(options.gradient.data()) % 64 == 0;
    if (options.gradient.size() < m_layout.total_bytes || !aligned) {
      fail(ErrorKind::input, fmt::format("the gradient memory given has {} bytes{}; {} are needed, "
                                         "at a multiple of 64",
                                         options.gradient.size(), aligned ? "" : ", not aligned",
                                         m_layout.total_bytes));
    }
    m_gradient = m_engine->options.gradient = options.gradient.first(m_layout.total_bytes);
  }
  if (options.pin_lanes) {
    m_engine->options.lane_cpus = lane_cpus_of(m_plan.ranks[m_self]);
  }
}

void Training::join(JobEnvironment job) {
  const std::optional<Passes> planned = std::exchange(m_plan.passes, Passes{.of_parts = true});
  JobSchedules schedules{lower(m_plan), {}, {}};
  m_plan.passes = planned; // as it stands in the document
  if (m_self == 0) {
    prove(schedules, m_plan, m_plan_file);
  }
  if (m_engine->options.checksums) {
    expect_arrivals(schedules.usual);
  }
  m_engine->schedule = std::move(schedules.usual);
  m_engine->mover =
      mover_for(m_engine->options, m_self); // an unknown one is no matter of the others
  // Who runs the same plan with `reckon run` is in another job.
  m_rendezvous.emplace(std::move(job), m_link.digest + " in training", m_engine->options.limit,
                       Fd(), m_peer_limit, AfterNews::stay, m_cancel.get_token());
}

void Training::connect() {
  const RankProgram& program = m_engine->schedule.ranks[m_self];
  std::vector<int> cpus(program.lanes.size(), -1);
  if (m_pin) {
    cpus = place_threads(allowed_cpus(), program.lanes.size(), m_engine->options.local_rank,
                         m_engine->options.local_size, {}, m_engine->options.lane_cpus)
               .lanes;
  }
  m_engine->session.emplace(*m_rendezvous, std::vector{&program}, m_engine->options,
                            std::move(cpus), std::move(m_engine->mover));
  const RankMemory& memory = m_engine->session->memory();
  if (memory.views()[program.gradient_buffer].data() !=
      memory.buffers()[program.gradient_buffer].data()) {
    fail(ErrorKind::unavailable,
         fmt::format("transport {} keeps gradients in a GPU's memory; training takes transports of "
                     "processors' memory",
                     m_engine->options.inside_transport.empty()
                         ? m_engine->options.transport
                         : m_engine->options.inside_transport));
  }
  if (worker()) {
    m_engine->gates.emplace(
        parts_of_tensors(places_of(m_workload, m_layout), stretches_of(m_plan)));
    m_gradient = m_gradient.empty() ? buffer() : m_gradient;
  }
  m_engine->session->start_lanes([this](const LaneProgram& lane) {
    return m_engine->gates ? m_engine->gates->delays_of(lane) : nullptr;
  });
}

std::span<std::byte> Training::buffer() const {
  const std::uint32_t which = m_engine->schedule.ranks[m_self].gradient_buffer;
  return m_engine->session->memory().buffers()[which].first(m_layout.total_bytes);
}

// --- the conductor ---------------------------------------------------------------------------

void Training::conduct(JobEnvironment job) noexcept {
  try {
    join(std::move(job));
    connect();
    {
      const std::lock_guard lock(m_mutex);
      m_joined = true;
      m_changed.notify_all();
    }
    while (meet(next_wish())) {
      step();
    }
    {
      std::unique_lock lock(m_mutex);
      m_all_leave = true;
      m_changed.notify_all();
      m_changed.wait(lock, [this] { return m_wish == Wish::leave || m_cancel.stop_requested(); });
    }
    if (m_cancel.stop_requested()) {
      fail(ErrorKind::operation, "cancelled");
    }
    m_engine->staging.reset(); // its memory goes
    m_engine->session->leave();
    const std::lock_guard lock(m_mutex);
    m_left = true;
    m_changed.notify_all();
  } catch (const std::exception& e) {
    std::optional<Error> abandoned;
    {
      const std::lock_guard lock(m_mutex);
      m_failure = std::current_exception();
      if (m_cancel.stop_requested()) {
        abandoned.emplace(ErrorKind::operation, m_why);
      }
      m_changed.notify_all();
    }
    if (m_rendezvous) {
      m_rendezvous->give_up(abandoned ? *abandoned : e);
    }
    if (m_engine->staging) {
      constexpr std::chrono::seconds k_limit{1}; // a lane that hangs does so in a transport
      static_cast<void>(m_engine->session->stopped_within(k_limit));
      m_engine->staging->release();
    }
  }
  const std::lock_guard lock(m_mutex);
  m_conducted = true;
  m_changed.notify_all();
}

Training::Wish Training::next_wish() {
  if (!worker()) {
    return Wish::step;
  }
  std::unique_lock lock(m_mutex);
  m_changed.wait(lock, [this] { return m_wish != Wish::none || m_cancel.stop_requested(); });
  return m_cancel.stop_requested() ? Wish::leave
         : m_wish == Wish::step    ? std::exchange(m_wish, Wish::none)
                                   : m_wish;
}

/// Waits until all ranks have said what comes next. False: all workers leave.
bool Training::meet(Wish mine) {
  Arrival arrival;
  arrival.worker = worker();
  arrival.leaves = mine == Wish::leave;
  arrival.averages = m_factor != 1;
  {
    const std::lock_guard lock(m_mutex);
    arrival.steps = m_steps;
    arrival.ready_ns = m_last_ready_ns;
    arrival.end_ns = m_last_end_ns;
  }
  const std::vector<Arrival> all = gather(*m_rendezvous, arrival, k_no_limit);
  const auto name = [&](std::size_t rank) {
    return fmt::format("rank {} ({})", rank, m_engine->session->places().hosts[rank]);
  };
  std::optional<std::size_t> first; // worker
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (!all[r].worker) {
      continue;
    }
    first = first.value_or(r);
    if (all[r].averages != all[*first].averages) {
      fail(ErrorKind::input,
           fmt::format("{} averages gradients and {} sums them", name(all[r].averages ? r : *first),
                       name(all[r].averages ? *first : r)));
    }
    if (all[r].leaves != all[*first].leaves) {
      fail(ErrorKind::input, fmt::format("{} leaves after {} steps, and {} begins another one",
                                         name(all[r].leaves ? r : *first), all[r].steps,
                                         name(all[r].leaves ? *first : r)));
    }
  }
  note(all);
  return !all[*first].leaves;
}

/// Of the last step: from the last gradient that was ready anywhere to the last rank's end.
void Training::note(const std::vector<Arrival>& all) {
  std::int64_t ready_ns = 0, end_ns = 0;
  for (const Arrival& rank : all) {
    ready_ns = rank.worker ? std::max(ready_ns, rank.ready_ns) : ready_ns;
    end_ns = std::max(end_ns, rank.end_ns);
  }
  if (all.front().steps > 0) {
    const std::lock_guard lock(m_mutex);
    add(m_times.exchange, seconds_between(ready_ns, end_ns));
  }
}

void Training::step() {
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(m_mutex);
    number = m_steps + 1;
  }
  m_engine->session->start(0, number);
  while (!m_engine->session->over_within(std::chrono::milliseconds(20))) {
    if (m_cancel.stop_requested()) {
      fail(ErrorKind::operation, "cancelled");
    }
    if (const std::string why = m_engine->staging ? m_engine->staging->failure() : "";
        !why.empty()) {
      fail(ErrorKind::operation, why);
    }
  }
  if (m_engine->staging) { // the last gradient was made before it came to the lanes
    m_ready_ns = m_engine->gates->passed_ns();
  }
  if (worker() && m_gradient.data() != buffer().data()) {
    std::memcpy(m_gradient.data(), buffer().data(), m_gradient.size());
  }
  const std::int64_t now_ns = monotonic_ns();
  const std::int64_t shift_ns = m_engine->session->root_clock_ns() - monotonic_ns();
  const std::lock_guard lock(m_mutex);
  m_last_ready_ns = m_ready_ns + shift_ns;
  m_last_end_ns = now_ns + shift_ns;
  if (worker()) {
    add(m_times.step, seconds_between(m_began_ns, now_ns));
    add(m_times.exposed, seconds_between(m_ready_ns, now_ns));
    add(m_times.gradients, seconds_between(m_first_ready_ns, m_ready_ns));
  }
  ++m_steps;
  m_step = Step::over;
  m_changed.notify_all();
}

// --- the owner's calls -----------------------------------------------------------------------

template <typename Settled>
void Training::wait(std::unique_lock<std::mutex>& lock, std::optional<Seconds> limit,
                    Settled settled) {
  if (limit) {
    m_changed.wait_for(lock, *limit, settled);
  } else {
    m_changed.wait(lock, settled);
  }
}

void Training::throw_failure() const {
  if (m_failure) {
    std::rethrow_exception(m_failure);
  }
}

bool Training::joined_within(std::optional<Seconds> limit) {
  std::unique_lock lock(m_mutex);
  wait(lock, limit, [this] { return m_joined || m_failure != nullptr; });
  throw_failure();
  return m_joined;
}

void Training::begin() {
  const std::lock_guard lock(m_mutex);
  throw_failure();
  require_worker();
  if (m_step != Step::none) {
    fail(ErrorKind::input, "a step begins when the one before is over: wait for it first");
  }
  if (m_wish == Wish::leave) {
    fail(ErrorKind::input, "this rank is leaving: no step can begin");
  }
  m_engine->gates->close();
  if (m_engine->staging) {
    m_engine->staging->begin();
  }
  m_step = Step::under_way;
  m_wish = Wish::step;
  m_began_ns = monotonic_ns();
  m_first_ready_ns = 0;
  m_open = true;
  m_changed.notify_all();
}

void Training::require_worker() const {
  if (!worker()) {
    fail(ErrorKind::input, fmt::format("rank {} only sums: it serves", rank()));
  }
}

void Training::require_open() const {
  if (!m_open) {
    const std::lock_guard lock(m_mutex);
    throw_failure();
    fail(ErrorKind::input, "no step has begun that could have gradients");
  }
}

void Training::require_tensors(std::size_t first, std::size_t count) const {
  if (first > tensors().size() || count > tensors().size() - first) {
    fail(ErrorKind::input,
         fmt::format("{} tensors from number {} on: there are {}", count, first, tensors().size()));
  }
}

void Training::take(std::size_t first, std::size_t count) {
  require_open();
  require_tensors(first, count);
  if (!m_engine->gates->take(first, count)) {
    fail(ErrorKind::input,
         fmt::format("of {} tensors from number {} on, some are ready in this step already", count,
                     first));
  }
}

void Training::ready(std::size_t first, std::size_t count) {
  take(first, count);
  const std::span<std::byte> lanes = buffer();
  for (std::size_t t = first; t < first + count; ++t) {
    const std::uint64_t offset = m_layout.tensor_offset_bytes[t], bytes = tensors()[t].bytes();
    if (lanes.data() != m_gradient.data()) {
      std::memcpy(&lanes[offset], &m_gradient[offset], bytes);
    }
    scale(lanes.subspan(offset, bytes), tensors()[t].dtype, m_factor);
  }
  m_ready_ns = monotonic_ns();
  note_first(m_ready_ns);
  m_engine->gates->open(first, count);
}

void Training::note_first(std::int64_t ready_ns) {
  std::int64_t none = 0;
  m_first_ready_ns.compare_exchange_strong(none, ready_ns);
}

bool Training::summed_within(std::size_t first, std::size_t count, std::optional<Seconds> limit) {
  using Clock = std::chrono::steady_clock;
  require_tensors(first, count);
  require_worker();
  const Seconds most = limit.value_or(k_no_limit);
  const Clock::time_point begin = Clock::now();
  for (;;) { // what ends the job rings no bell here
    constexpr Seconds k_slice{0.02};
    const Seconds left = std::max(Seconds(0), most - Seconds(Clock::now() - begin));
    const auto slice =
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::min(left, k_slice));
    if (m_engine->gates->summed_within(first, count, slice)) {
      return true;
    }
    const std::lock_guard lock(m_mutex);
    throw_failure();
    if (m_step == Step::none) {
      fail(ErrorKind::input, "no step has begun that could have sums");
    }
    if (left <= k_slice) {
      return false;
    }
  }
}

bool Training::over_within(std::optional<Seconds> limit) {
  std::unique_lock lock(m_mutex);
  wait(lock, limit, [this] { return m_step != Step::under_way || m_failure != nullptr; });
  throw_failure();
  require_worker();
  if (m_step == Step::none) {
    return true;
  }
  if (m_step == Step::under_way) {
    return false;
  }
  if (m_engine->staging) {
    m_engine->staging->finish();
  }
  m_step = Step::none;
  m_open = false;
  return true;
}

bool Training::served_within(std::optional<Seconds> limit) {
  std::unique_lock lock(m_mutex);
  if (worker()) {
    fail(ErrorKind::input, fmt::format("rank {} has gradients: it does not serve", rank()));
  }
  wait(lock, limit, [this] { return m_all_leave || m_failure != nullptr; });
  throw_failure();
  return m_all_leave;
}

bool Training::left_within(std::optional<Seconds> limit) {
  {
    std::unique_lock lock(m_mutex);
    throw_failure();
    if (worker() ? m_step != Step::none : !m_all_leave) {
      fail(ErrorKind::input, worker() ? "a step is under way" : "the workers have not left");
    }
    m_wish = Wish::leave;
    m_changed.notify_all();
    wait(lock, limit, [this] { return m_left || m_failure != nullptr; });
    throw_failure();
    if (!m_left) {
      return false;
    }
  }
  m_conductor.join();
  m_engine->session.reset();
  m_rendezvous.reset();
  return true;
}

bool Training::abandoned_within(const std::string& why, Seconds limit) noexcept {
  if (!m_conductor.joinable()) {
    return true; // it has left
  }
  {
    std::unique_lock lock(m_mutex);
    m_why = why;
    m_cancel.request_stop();
    m_changed.notify_all();
    if (!m_changed.wait_for(lock, limit, [this] { return m_conducted; })) { // it tells the others
      return false;
    }
  }
  m_conductor.join();
  if (m_engine->session && !m_engine->session->stopped_within(std::chrono::seconds(1))) {
    static_cast<void>(m_engine.release());
  } else {
    m_engine->staging.reset(); // its memory goes with the session
  }
  m_engine.reset();
  m_rendezvous.reset();
  return true;
}

std::string Training::report() const {
  const std::lock_guard lock(m_mutex);
  const PlanRank& me = m_plan.ranks[m_self];
  const double passes = m_plan.passes ? m_plan.passes->total_seconds() : 0;
  const auto of = [](const std::deque<double>& times) {
    const std::vector<double> list(times.begin(), times.end());
    return Json{{"p50", median(list)}, {"all", list}};
  };
  // What the passes lose to the traffic is computing, not waiting.
  const double contention = contention_seconds(m_plan.prediction);
  const auto exposed = [&](double seconds) { return std::max(0.0, seconds - passes - contention); };
  const double measured = median({m_times.exchange.begin(), m_times.exchange.end()});
  double gradients = 0; // after the first one
  for (std::size_t l = 1; m_plan.passes && l < m_plan.passes->size(); ++l) {
    gradients += m_plan.passes->backward_seconds[l];
  }
  const double backward = median({m_times.gradients.begin(), m_times.gradients.end()});
  const std::optional<double> rounded = wire_error(m_plan);
  Json json{
      {"reckon", k_version},
      {"plan", {{"name", m_link.name}, {"digest", m_link.digest}}},
      {"transport", m_engine->options.transport},
      {"rank", m_self},
      {"hosts", m_engine->session->places().hosts},
      {"worker", me.worker},
      {"steps", m_steps},
      {"gradient_bytes", m_layout.total_bytes},
      {"wire_error", rounded ? Json(*rounded) : Json()},
      {"sent_bytes_per_step", me.egress_bytes},
      {"received_bytes_per_step", me.ingress_bytes},
      {"copied_bytes_per_step",
       (me.worker && m_gradient.data() != buffer().data() ? 2 * m_layout.total_bytes : 0) +
           (m_engine->staging ? 2 * m_layout.total_bytes : 0)},
      {"step_seconds", of(m_times.step)},
      {"exposed_seconds", of(m_times.exposed)},
      {"exchange_seconds", of(m_times.exchange)},
      {"gradients_seconds", of(m_times.gradients)},
      {"prediction",
       {{"seconds", exposed(m_plan.prediction.mid_seconds)},
        {"lo_seconds", exposed(m_plan.prediction.lo_seconds)},
        {"hi_seconds", exposed(m_plan.prediction.hi_seconds)},
        {"contention_seconds", contention},
        {"gradients_seconds", gradients},
        {"of_these_passes_seconds", gradients > 0 && !m_times.gradients.empty()
                                        ? Json(exposed_seconds(m_plan, backward / gradients))
                                        : Json()},
        {"measured_seconds", measured}}},
  };
  return compact(json);
}

} // namespace reckon
