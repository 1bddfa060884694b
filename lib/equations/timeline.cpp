// SPDX-License-Identifier: Apache-2.0
#include "equations/timeline.hpp"

#include "core/error.hpp"
#include "equations/checks.hpp"
#include "equations/timeline_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace reckon {

using equations::check_amount;

namespace {

constexpr std::size_t k_no_event = std::numeric_limits<std::size_t>::max();

/// Plays a program: what runs goes on until the next thing ends.
class Player {
public:
  Player(TimelineProgram& program, const TimelineOptions& options)
      : m_program(program), m_options(options), m_ended_s(program.computation.size(), 0) {}

  void play() {
    for (;;) {
      start();
      const double computing = rate(m_options.contention.compute, m_sending != nullptr);
      const double sending = rate(m_options.contention.communication,
                                  m_computing.running != nullptr || m_aside.running != nullptr);
      double step = std::numeric_limits<double>::infinity();
      for (const Stream* stream : {&m_computing, &m_aside}) {
        step = std::min(step, stream->running ? stream->left_s / computing : step);
      }
      step = std::min(step, m_sending ? m_sending_left_s / sending : step);
      for (const Arrival& arrival : m_arriving) {
        step = std::min(step, arrival.left_s);
      }
      if (!std::isfinite(step)) {
        return; // nothing runs, and nothing can start
      }
      m_now_s += step;
      for (Stream* stream : {&m_computing, &m_aside}) {
        advance(
            stream->running, stream->left_s, step * computing, [this, stream](TimelineStep& done) {
              end(done, stream == &m_aside ? TimelineStream::aside : TimelineStream::computation,
                  stream->since_s);
            });
      }
      arrive(step);
      advance(m_sending, m_sending_left_s, step * sending,
              [this](TimelineCollective& done) { end_chunk(done); });
    }
  }

  std::vector<TimelineEvent> events;
  /// When the step at `place` of the stream of computation ended.
  [[nodiscard]] double ended_s(std::size_t place) const { return m_ended_s[place]; }

private:
  static double rate(double factor, bool beside) { return beside ? 1 / factor : 1; }

  /// What runs, how much of it is left, and since when it runs.
  struct Stream {
    TimelineStep* running = nullptr;
    std::size_t next = 0; ///< to start
    double left_s = 0, since_s = 0;
  };

  /// A collective whose last chunk is sent.
  struct Arrival {
    TimelineCollective* running = nullptr;
    double left_s = 0;
  };

  void arrive(double step_s) {
    for (Arrival& arrival : m_arriving) {
      advance(arrival.running, arrival.left_s, step_s,
              [](TimelineCollective& here) { here.done = true; });
    }
    std::erase_if(m_arriving, [](const Arrival& a) { return a.running == nullptr; });
  }

  template <class T, class End>
  void advance(T*& running, double& left_s, double done_s, End ended) {
    // What is left below this is rounding: the two were meant to end together.
    constexpr double k_rounding = 1e-12;
    if (running == nullptr) {
      return;
    }
    const bool over = left_s - done_s <= k_rounding * done_s;
    left_s -= done_s;
    if (over) {
      T& done = *running;
      running = nullptr;
      ended(done);
    }
  }

  [[nodiscard]] bool can_start(const TimelineStep& step) const {
    return (!step.after || m_program.computation[*step.after].done) &&
           std::all_of(step.waits.begin(), step.waits.end(),
                       [this](std::size_t c) { return m_program.collectives[c].done; });
  }

  /// Each stream in its order, so that what is aside is never more than an iteration behind.
  void start() {
    begin_next(m_program.computation, m_computing);
    begin_next(m_program.aside, m_aside);
    if (m_sending == nullptr && !m_waiting.empty()) {
      start_chunk();
    }
  }

  void begin_next(std::vector<TimelineStep>& steps, Stream& stream) {
    if (stream.running == nullptr && stream.next < steps.size() && can_start(steps[stream.next])) {
      stream = {&steps[stream.next], stream.next + 1, steps[stream.next].seconds, m_now_s};
    }
  }

  [[nodiscard]] bool before(const TimelineCollective& a, const TimelineCollective& b) const {
    switch (m_options.policy) {
    case SchedulePolicy::lifo:
      return a.posted > b.posted;
    case SchedulePolicy::fifo:
      return a.posted < b.posted;
    case SchedulePolicy::priority:
      return a.layer != b.layer ? a.layer < b.layer : a.posted < b.posted;
    }
    return false;
  }

  void start_chunk() {
    const auto it =
        std::min_element(m_waiting.begin(), m_waiting.end(), [this](std::size_t a, std::size_t b) {
          return before(m_program.collectives[a], m_program.collectives[b]);
        });
    m_sending = &m_program.collectives[*it];
    m_sending_left_s = (m_sending->begun || m_options.pipelined ? 0 : m_sending->timed.fill_s) +
                       (m_sending->timed.chunks > 0 ? m_sending->timed.chunk_s : 0);
    m_sending->begun = true;
    m_sending_since_s = m_now_s;
  }

  void record(TimelineStream stream, TimelineWork work, std::size_t layer, std::size_t iteration,
              double since_s) {
    if (m_now_s > since_s) {
      events.push_back({stream, work, layer, iteration, since_s, m_now_s});
    }
  }

  void end(TimelineStep& step, TimelineStream stream, double since_s) {
    step.done = true;
    record(stream, step.work, step.layer, step.iteration, since_s);
    if (stream == TimelineStream::computation) {
      m_ended_s[m_computing.next - 1] = m_now_s;
    }
    for (const std::size_t posted : step.posts) {
      m_program.collectives[posted].posted = ++m_posted;
      m_waiting.push_back(posted);
    }
  }

  void end_chunk(TimelineCollective& collective) {
    // Chunks of one collective that follow each other are one stretch.
    TimelineEvent* last = m_last_sent == k_no_event ? nullptr : &events[m_last_sent];
    if (last != nullptr && last->end_s == m_sending_since_s && last->work == collective.work &&
        last->layer == collective.layer && last->iteration == collective.iteration) {
      last->end_s = m_now_s;
    } else {
      m_last_sent = events.size();
      record(TimelineStream::communication, collective.work, collective.layer, collective.iteration,
             m_sending_since_s);
      m_last_sent = events.size() > m_last_sent ? m_last_sent : k_no_event;
    }
    ++collective.sent;
    if (collective.sent >= collective.timed.chunks) {
      if (m_options.pipelined) {
        m_arriving.push_back({&collective, collective.timed.fill_s});
      } else {
        collective.done = true;
      }
      m_waiting.erase(std::find_if(m_waiting.begin(), m_waiting.end(), [&](std::size_t c) {
        return &m_program.collectives[c] == &collective;
      }));
    }
  }

  TimelineProgram& m_program;
  const TimelineOptions& m_options;
  std::vector<double> m_ended_s;
  double m_now_s = 0;
  std::uint64_t m_posted = 0;
  std::vector<std::size_t> m_waiting; ///< collectives that are posted and not done
  std::vector<Arrival> m_arriving;
  std::size_t m_last_sent = k_no_event; ///< its event
  Stream m_computing, m_aside;
  TimelineCollective* m_sending = nullptr;
  double m_sending_left_s = 0, m_sending_since_s = 0;
};

void check(const TimedCollective& collective) {
  check_amount(collective.fill_s, "the seconds of a collective's latency");
  check_amount(collective.chunk_s, "the seconds of a chunk");
}

void check(std::span<const TimedLayer> layers, const TimelineOptions& options) {
  if (layers.empty()) {
    fail(ErrorKind::usage, "a timeline needs at least one layer");
  }
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const TimedLayer& layer = layers[i];
    check_amount(layer.forward_s, "the seconds of a forward pass");
    check_amount(layer.input_gradient_s, "the seconds of an input gradient");
    check_amount(layer.weight_gradient_s, "the seconds of a weight gradient");
    if (layer.all_reduce) {
      check(*layer.all_reduce);
    }
    if (layer.exchange) {
      check(layer.exchange->forward);
      check(layer.exchange->backward);
      if (layer.exchange->before <= i || layer.exchange->before >= layers.size()) {
        fail(ErrorKind::usage, fmt::format("layer {} exchanges before layer {}, which is not a "
                                           "later one",
                                           i, layer.exchange->before));
      }
      if (layers[layer.exchange->before].exchange) {
        fail(ErrorKind::usage, fmt::format("layer {} waits for an exchange and has one itself",
                                           layer.exchange->before));
      }
    }
  }
  const ContentionFactors& factors = options.contention;
  if (!(factors.compute >= 1) || !(factors.communication >= 1) || !std::isfinite(factors.compute) ||
      !std::isfinite(factors.communication)) {
    fail(ErrorKind::usage, fmt::format("contention factors must be at least 1, not {} and {}",
                                       factors.compute, factors.communication));
  }
  if (options.fused && options.exchange_aside) {
    fail(ErrorKind::usage, "what does not overlap cannot be computed aside");
  }
}

} // namespace

Timeline play_timeline(std::span<const TimedLayer> layers, const TimelineOptions& options) {
  check(layers, options);
  if (options.fused) {
    check(*options.fused);
  }
  TimelineProgram program(layers, options);
  Player player(program, options);
  player.play();
  const std::vector<std::size_t>& ends = program.ends();
  const std::size_t counted = program.counted();
  Timeline timeline;
  timeline.begin_s = player.ended_s(ends[ends.size() - counted - 1]);
  timeline.end_s = player.ended_s(ends.back());
  timeline.events = std::move(player.events);
  for (const TimelineEvent& event : timeline.events) {
    const double within =
        std::min(event.end_s, timeline.end_s) - std::max(event.begin_s, timeline.begin_s);
    if (within > 0 && event.stream != TimelineStream::aside) {
      (event.stream == TimelineStream::computation ? timeline.computation_s
                                                   : timeline.communication_s) += within;
    }
  }
  const double share = 1 / static_cast<double>(counted);
  timeline.iteration_s = share * (timeline.end_s - timeline.begin_s);
  timeline.computation_s *= share;
  timeline.communication_s *= share;
  timeline.exposed_s = std::max(0.0, timeline.iteration_s - timeline.computation_s);
  return timeline;
}

std::vector<double> layer_waits_s(const Timeline& timeline, std::size_t layers) {
  std::vector<double> waits_s(layers, 0);
  const double iterations = (timeline.end_s - timeline.begin_s) / timeline.iteration_s;
  double ready_s = timeline.begin_s;
  for (const TimelineEvent& event : timeline.events) {
    if (event.stream == TimelineStream::computation && event.end_s > timeline.begin_s &&
        event.begin_s < timeline.end_s) {
      waits_s[event.layer] += std::max(0.0, event.begin_s - ready_s) / iterations;
      ready_s = event.end_s;
    }
  }
  if (!waits_s.empty()) { // what the next iteration's first layer waits for
    waits_s.front() += std::max(0.0, timeline.end_s - ready_s) / iterations;
  }
  return waits_s;
}

} // namespace reckon
