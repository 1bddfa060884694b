// SPDX-License-Identifier: Apache-2.0
#include "run/pass_crew.hpp"

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/interrupt.hpp"
#include "core/log.hpp"
#include "core/processors.hpp"
#include "core/threads.hpp"
#include "core/whole_number.hpp"
#include "stats/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace reckon {
namespace {

std::string operations() {
  std::string names;
  for (const std::size_t side : k_gemm_sides) {
    names += fmt::format("{}gemm_{}", names.empty() ? "" : ", ", side);
  }
  return names;
}

} // namespace

PassCompute parse_pass_compute(const std::string& text) {
  PassCompute compute;
  const std::size_t colon = text.find(':');
  compute.operation = text.substr(0, colon);
  if (!gemm_side(compute.operation)) {
    fail(ErrorKind::usage,
         fmt::format("--compute {}: '{}' is no computation; one of {}, with the threads of a rank "
                     "as in gemm_256:2",
                     text, compute.operation, operations()));
  }
  if (colon != std::string::npos) {
    compute.threads = whole_number<int>(std::string_view(text).substr(colon + 1)).value_or(0);
    if (compute.threads < 1) {
      fail(ErrorKind::usage,
           fmt::format("--compute {}: the threads of a rank are a whole number from 1 on, as in "
                       "{}:2",
                       text, compute.operation));
    }
  }
  return compute;
}

ThreadPlaces place_threads(std::span<const int> cpus, std::size_t lanes, int local_rank,
                           int local_size, const std::optional<PassCompute>& compute,
                           std::span<const int> wanted) {
  const auto rank = static_cast<std::size_t>(local_rank);
  const auto in_turn = [&](std::span<const int> of, std::size_t threads) {
    std::vector<int> places;
    for (std::size_t t = 0; t < threads; ++t) {
      places.push_back(of.empty() ? -1 : of[(rank * threads + t) % of.size()]);
    }
    return places;
  };
  const auto as_wanted = [&](std::span<const int> of) {
    std::vector<int> places = in_turn(of, lanes);
    for (std::size_t l = 0; local_size == 1 && l < std::min(lanes, wanted.size()); ++l) {
      places[l] = std::find(of.begin(), of.end(), wanted[l]) != of.end() ? wanted[l] : places[l];
    }
    return places;
  };
  if (!compute) {
    return {as_wanted(cpus), {}};
  }
  const auto threads = static_cast<std::size_t>(compute->threads);
  const std::size_t most = cpus.size() - (compute->dedicated && !cpus.empty() ? 1 : 0);
  if (threads > most) {
    fail(ErrorKind::usage,
         fmt::format("--compute {}:{}: a rank may use {} processors here{}; ask for at most {} "
                     "thread{}{}",
                     compute->operation, threads, cpus.size(),
                     compute->dedicated ? ", of which its lanes keep one" : "", most,
                     most == 1 ? "" : "s",
                     compute->dedicated ? ", or for --processors shared" : ""));
  }
  if (!compute->dedicated) {
    return {as_wanted(cpus), in_turn(cpus, threads)};
  }
  const std::size_t computing = std::min(threads * static_cast<std::size_t>(local_size), most);
  return {as_wanted(cpus.first(cpus.size() - computing)), in_turn(cpus.last(computing), threads)};
}

std::vector<std::uint64_t> rounds_of(std::span<const std::int64_t> durations_ns, double round_s) {
  std::vector<std::uint64_t> rounds;
  std::int64_t until_ns = 0;
  std::uint64_t before = 0;
  for (const std::int64_t duration_ns : durations_ns) {
    until_ns += duration_ns;
    const auto until =
        static_cast<std::uint64_t>(std::llround(static_cast<double>(until_ns) * 1e-9 / round_s));
    rounds.push_back(until - before);
    before = until;
  }
  return rounds;
}

std::vector<std::int64_t> passes_of_lanes(const RankProgram& program) {
  std::vector<std::int64_t> passes;
  for (const LaneProgram& lane : program.lanes) {
    std::vector<std::int64_t> mine;
    for (const Op& op : lane.ops()) {
      if (op.kind == OpKind::delay) {
        mine.push_back(op.duration_ns);
      }
    }
    if (!mine.empty() && !passes.empty() && mine != passes) {
      fail(ErrorKind::input, "--compute: the lanes of a rank hold different passes; plan with "
                             "--lanes 1");
    }
    passes = mine.empty() ? passes : mine;
  }
  return passes;
}

/// One lane's view of the crew.
class PassCrew::LaneDelays final : public Delays {
public:
  LaneDelays(PassCrew& crew, const LaneProgram& program)
      : m_crew(crew), m_pass_of(program.ops().size()), m_asked(crew.m_passes.size()) {
    std::uint32_t pass = 0;
    for (std::size_t i = 0; i < program.ops().size(); ++i) {
      m_pass_of[i] = pass;
      pass += program.ops()[i].kind == OpKind::delay ? 1U : 0U;
    }
    m_under_way.reserve(m_asked.size());
  }

  void reset() noexcept override { m_under_way.clear(); }
  void start(std::uint32_t op, std::int64_t /*since_ns*/) noexcept override {
    ++m_asked[m_pass_of[op]];
    m_under_way.push_back(op);
    m_crew.ask(m_pass_of[op]);
  }
  [[nodiscard]] std::optional<Over> next_over(std::int64_t /*now_ns*/) noexcept override {
    const auto some_over = [&](std::uint32_t op) { return is_over(op); };
    if (std::none_of(m_under_way.begin(), m_under_way.end(), some_over)) {
      return std::nullopt;
    }
    // Only now that one was seen to be over all that ended before it are, too.
    auto first = m_under_way.end();
    for (auto it = m_under_way.begin(); it != m_under_way.end(); ++it) {
      if (is_over(*it) && (first == m_under_way.end() || end_of(*it) < end_of(*first))) {
        first = it;
      }
    }
    const Over over{*first, end_of(*first)};
    m_under_way.erase(first);
    return over;
  }
  [[nodiscard]] std::optional<std::int64_t>
  ask_again_ns(std::int64_t now_ns) const noexcept override {
    constexpr std::int64_t k_soon_ns = 100'000;
    std::optional<std::int64_t> first;
    for (const std::uint32_t op : m_under_way) {
      // Of a pass that other lanes have not come to yet, the last time's target: soon, too.
      const std::int64_t end = std::max(
          m_crew.expected_ns(pass(op).target.load(std::memory_order_relaxed)), now_ns + k_soon_ns);
      first = first ? std::min(*first, end) : end;
    }
    return first;
  }

private:
  [[nodiscard]] const Pass& pass(std::uint32_t op) const noexcept {
    return m_crew.m_passes[m_pass_of[op]];
  }
  [[nodiscard]] bool is_over(std::uint32_t op) const noexcept {
    // With the release in work(), so that end_ns is this time's.
    return pass(op).times.load(std::memory_order_acquire) >= m_asked[m_pass_of[op]];
  }
  [[nodiscard]] std::int64_t end_of(std::uint32_t op) const noexcept {
    return pass(op).end_ns.load(std::memory_order_relaxed);
  }

  PassCrew& m_crew;
  std::vector<std::uint32_t> m_pass_of;   ///< by op
  std::vector<std::uint64_t> m_asked;     ///< by pass: times that this lane has asked for it
  std::vector<std::uint32_t> m_under_way; ///< ops
};

PassCrew::PassCrew(std::string_view operation, const std::vector<int>& cpus)
    : m_workers(cpus.size()) {
  const std::optional<std::size_t> side = gemm_side(operation);
  if (!side) {
    fail(ErrorKind::usage,
         fmt::format("'{}' is no computation; one of {}", operation, operations()));
  }
  m_memory.resize(GemmLoad::bytes_of(*side) / sizeof(float));
  m_load =
      std::make_unique<GemmLoad>(std::as_writable_bytes(std::span(m_memory)), *side, cpus.size());
  try {
    for (std::size_t rank = 0; rank < cpus.size(); ++rank) {
      m_threads.push_back(start_thread("a processor that computes",
                                       [this, rank, cpu = cpus[rank]] { work(rank, cpu); }));
    }
  } catch (...) {
    stop();
    throw;
  }
}

PassCrew::~PassCrew() {
  stop();
}

void PassCrew::stop() {
  {
    const std::lock_guard lock(m_mutex); // who waits has looked, or sleeps
    m_stop.store(true, std::memory_order_relaxed);
  }
  m_wake.notify_all();
  m_threads.clear(); // joined, before anything they use goes
}

void PassCrew::queue(std::uint32_t pass) noexcept {
  Pass& p = m_passes[pass];
  p.asked = 0;
  // Of many short passes most have no round: waking the threads for these would take longer. One
  // that has others before it ends after them.
  if (p.rounds == 0 && m_ended.load(std::memory_order_acquire) == m_queued) {
    p.end_ns.store(monotonic_ns(), std::memory_order_relaxed);
    p.times.fetch_add(1, std::memory_order_release);
    return;
  }
  p.left.store(m_workers.size(), std::memory_order_relaxed); // the mutex orders both
  m_queued_rounds += p.rounds;
  p.target.store(m_queued_rounds, std::memory_order_relaxed);
  m_queue[m_queued++ % m_queue.size()] = pass;
}

void PassCrew::ask(std::uint32_t pass) noexcept {
  {
    const std::lock_guard lock(m_mutex);
    if (++m_passes[pass].asked < m_lanes) {
      return;
    }
    queue(pass);
  }
  m_wake.notify_all();
}

void PassCrew::work(std::size_t rank, int cpu) {
  if (cpu >= 0 &&
      !bind_this_thread(cpu)) { // the set of processors has changed since allowed_cpus()
    log(LogLevel::warn,
        "--compute: this process may not use processor {} any more; what was to compute there runs "
        "where the system puts it, and the lanes may have less for themselves",
        cpu);
  }
  Worker& mine = m_workers[rank];
  const std::uint64_t steps = m_load->steps();
  std::uint64_t step = 0;
  for (std::uint64_t next = 0;; ++next) {
    Pass* pass = nullptr;
    {
      std::unique_lock lock(m_mutex);
      m_wake.wait(lock, [&] { return m_queued > next || m_stop.load(std::memory_order_relaxed); });
      if (m_stop.load(std::memory_order_relaxed)) {
        return;
      }
      pass = &m_passes[m_queue[next % m_queue.size()]];
    }
    const std::int64_t begin = monotonic_ns();
    mine.since_ns.store(begin, std::memory_order_relaxed);
    for (std::uint64_t round = 0; round < pass->rounds; ++round) {
      for (std::uint64_t s = 0; s < steps; ++s) {
        if (m_stop.load(std::memory_order_relaxed)) {
          return;
        }
        m_load->step(rank, step++);
      }
      mine.rounds.fetch_add(1, std::memory_order_relaxed);
      mine.since_ns.store(monotonic_ns(), std::memory_order_relaxed);
    }
    mine.busy_ns.fetch_add(monotonic_ns() - begin, std::memory_order_relaxed);
    if (pass->left.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      // Looked at when all are done: a thread may have done its part and told so much later.
      pass->end_ns.store(monotonic_ns(), std::memory_order_relaxed);
      pass->times.fetch_add(1, std::memory_order_release);
      m_ended.fetch_add(1, std::memory_order_release);
      const std::lock_guard lock(m_mutex); // time_rounds() has looked, or sleeps
      m_finished.notify_all();
    }
  }
}

std::int64_t PassCrew::expected_ns(std::uint64_t rounds) const noexcept {
  std::int64_t last = 0; // an estimate: the two numbers of a thread need not fit each other
  for (const Worker& worker : m_workers) {
    const std::uint64_t done = worker.rounds.load(std::memory_order_relaxed);
    const double left = rounds > done ? static_cast<double>(rounds - done) : 0;
    const std::int64_t since = worker.since_ns.load(std::memory_order_relaxed);
    last = std::max<std::int64_t>(last, since + std::llround(left * m_round_s * 1e9));
  }
  return last;
}

std::uint64_t PassCrew::rounds_done() const noexcept {
  std::uint64_t least = UINT64_MAX;
  for (const Worker& worker : m_workers) {
    least = std::min(least, worker.rounds.load(std::memory_order_relaxed));
  }
  return least;
}

std::int64_t PassCrew::busy_ns() const noexcept {
  std::int64_t most = 0;
  for (const Worker& worker : m_workers) {
    most = std::max(most, worker.busy_ns.load(std::memory_order_relaxed));
  }
  return most;
}

void PassCrew::set_passes(std::vector<std::uint64_t> rounds, std::size_t lanes) {
  const std::lock_guard lock(m_mutex);
  m_passes = std::vector<Pass>(rounds.size());
  for (std::size_t p = 0; p < rounds.size(); ++p) {
    m_passes[p].rounds = rounds[p];
  }
  // Positions go on counting, so the ring may only be replaced when nothing is in it.
  m_queue.assign(std::max<std::size_t>(1, rounds.size()), 0);
  m_lanes = lanes;
}

double PassCrew::time_rounds(std::uint64_t rounds) {
  set_passes({rounds}, 1);
  const std::int64_t begin = monotonic_ns();
  ask(0);
  {
    std::unique_lock lock(m_mutex);
    m_finished.wait(lock, [&] { return m_passes[0].times.load(std::memory_order_acquire) > 0; });
  }
  return static_cast<double>(monotonic_ns() - begin) * 1e-9;
}

PassCrew::RoundTime PassCrew::time_round() {
  constexpr double k_turns_s = 0.02; // several turns of a processor that threads share
  constexpr double k_sampling_s = 0.5;
  constexpr std::size_t k_warm_up = 3, k_samples = 10;
  double one = 1;
  for (std::size_t i = 0; i < k_warm_up; ++i) {
    one = std::min(one, std::max(time_rounds(1), 1e-6));
  }
  const auto rounds = static_cast<std::uint64_t>(std::ceil(k_turns_s / one));
  std::vector<double> samples;
  double sampled = 0;
  for (std::size_t i = 0; !interrupted() && (i < k_warm_up + k_samples || sampled < k_sampling_s);
       ++i) {
    const double seconds = time_rounds(rounds);
    if (i >= k_warm_up) {
      samples.push_back(seconds / static_cast<double>(rounds));
      sampled += seconds;
    }
  }
  RoundTime time;
  time.samples = samples.size();
  std::sort(samples.begin(), samples.end());
  time.median_s = samples.empty() ? one : percentile(samples, 0.5);
  time.spread =
      samples.empty() ? 0 : (percentile(samples, 0.9) - percentile(samples, 0.1)) / time.median_s;
  m_round_s = time.median_s;
  return time;
}

std::unique_ptr<Delays> PassCrew::delays_of(const LaneProgram& program) {
  return std::make_unique<LaneDelays>(*this, program);
}

} // namespace reckon
