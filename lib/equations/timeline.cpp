// SPDX-License-Identifier: Apache-2.0
#include "equations/timeline.hpp"

#include "core/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace reckon {
namespace {

/// At the end of its forward pass an iteration has waited for all that the one before had posted,
/// so that from there on all iterations are alike: two are enough, and the second counts. With
/// something aside an iteration may leave work to the next: many, of which the later half counts.
struct Repetitions {
  std::size_t played = 2, counted = 1;
};
Repetitions repetitions(const TimelineOptions& options) {
  return options.exchange_aside ? Repetitions{64, 32} : Repetitions{};
}

struct Collective {
  TimedCollective timed;
  TimelineWork work = TimelineWork::all_reduce;
  std::size_t layer = 0, iteration = 0;
  std::uint64_t posted = 0; ///< when, in the order of posting; 0: not yet
  std::uint64_t sent = 0;   ///< chunks
  bool begun = false, done = false;
};

struct Computing {
  TimelineWork work = TimelineWork::forward;
  std::size_t layer = 0, iteration = 0;
  double seconds = 0;
  std::vector<std::size_t> waits, posts; ///< collectives
  std::optional<std::size_t> after;      ///< a place in the stream of computation
  bool done = false;
};

constexpr std::size_t k_none = std::numeric_limits<std::size_t>::max();

/// What all iterations do, and what each step waits for.
class Program {
public:
  Program(std::span<const TimedLayer> layers, const TimelineOptions& options)
      : m_layers(layers), m_options(options), m_iterations(repetitions(options).played),
        m_reduced(layers.size(), k_none),
        m_fetched(m_iterations, std::vector<std::size_t>(layers.size(), k_none)),
        m_returned(m_fetched) {
    for (std::size_t i = 0; i < m_iterations; ++i) {
      iteration(i);
      m_ends.push_back(computation.size() - 1);
    }
    if (options.exchange_aside) {
      updates(m_iterations - 1);
    }
  }

  std::vector<Collective> collectives;
  std::vector<Computing> computation, aside;
  /// The last step of each iteration in the stream of computation.
  [[nodiscard]] const std::vector<std::size_t>& ends() const { return m_ends; }

private:
  std::size_t post(Computing& step, const TimedCollective& timed, TimelineWork work,
                   std::size_t layer) {
    collectives.push_back({timed, work, layer, step.iteration, 0, 0, false, false});
    step.posts.push_back(collectives.size() - 1);
    return collectives.size() - 1;
  }

  void fetch(Computing& step, std::size_t layer) {
    m_fetched[step.iteration][layer] =
        post(step, m_layers[layer].exchange->forward, TimelineWork::exchange_forward, layer);
  }

  void reduce(Computing& step, std::size_t layer) {
    if (m_layers[layer].all_reduce && !m_options.fused) {
      m_reduced[layer] = post(step, *m_layers[layer].all_reduce, TimelineWork::all_reduce, layer);
    }
  }

  [[nodiscard]] Computing forward_step(std::size_t layer, std::size_t iteration) const {
    Computing step{
        TimelineWork::forward, layer, iteration, m_layers[layer].forward_s, {}, {}, {}, false};
    if (m_reduced[layer] != k_none) {
      step.waits.push_back(m_reduced[layer]);
    }
    return step;
  }

  /// Forward passes of what is exchanged, aside: from the begin of the iteration before.
  void look_up(std::size_t iteration) {
    for (std::size_t layer = 0; iteration < m_iterations && layer < m_layers.size(); ++layer) {
      if (m_layers[layer].exchange) {
        Computing step = forward_step(layer, iteration);
        if (iteration >= 2) {
          step.after = m_ends[iteration - 2];
        }
        fetch(step, layer);
        aside.push_back(std::move(step));
      }
    }
  }

  void forward(std::size_t layer, std::size_t iteration, std::vector<std::size_t>& blocking) {
    Computing step = forward_step(layer, iteration);
    step.waits.insert(step.waits.end(), blocking.begin(), blocking.end());
    blocking.clear();
    for (std::size_t from = 0; from < layer; ++from) {
      if (m_layers[from].exchange && m_layers[from].exchange->before == layer) {
        step.waits.push_back(m_fetched[iteration][from]);
      }
    }
    if (m_layers[layer].exchange) {
      fetch(step, layer);
      if (m_options.fused) { // the loop waits at once
        blocking.push_back(m_fetched[iteration][layer]);
      }
    }
    computation.push_back(std::move(step));
  }

  [[nodiscard]] Computing backward_step(TimelineWork work, std::size_t layer,
                                        std::size_t iteration) const {
    const TimedLayer& l = m_layers[layer];
    const double seconds =
        work == TimelineWork::weight_gradient ? l.weight_gradient_s : l.input_gradient_s;
    return {work, layer, iteration, seconds, {}, {}, {}, false};
  }

  void backward(std::size_t layer, std::size_t iteration) {
    if (m_layers[layer].exchange) {
      return; // updates()
    }
    Computing weights = backward_step(TimelineWork::weight_gradient, layer, iteration);
    reduce(weights, layer);
    computation.push_back(std::move(weights));
    Computing input = backward_step(TimelineWork::input_gradient, layer, iteration);
    for (std::size_t from = 0; from < layer && !m_options.fused; ++from) {
      if (m_layers[from].exchange && m_layers[from].exchange->before == layer) {
        m_returned[iteration][from] =
            post(input, m_layers[from].exchange->backward, TimelineWork::exchange_backward, from);
      }
    }
    computation.push_back(std::move(input));
  }

  /// A step of no length that ends when all is there.
  void wait_for_all(std::size_t iteration) {
    const std::size_t all = post(computation.back(), *m_options.fused, TimelineWork::fused, 0);
    computation.push_back({TimelineWork::fused, 0, iteration, 0, {all}, {}, {}, false});
  }

  /// The backward pass of layers with an exchange, once their gradient is there.
  void updates(std::size_t iteration) {
    std::vector<Computing>& stream = m_options.exchange_aside ? aside : computation;
    for (std::size_t layer = m_layers.size(); layer-- > 0;) {
      if (m_layers[layer].exchange) {
        Computing weights = backward_step(TimelineWork::weight_gradient, layer, iteration);
        if (m_returned[iteration][layer] != k_none) {
          weights.waits.push_back(m_returned[iteration][layer]);
        }
        reduce(weights, layer);
        stream.push_back(std::move(weights));
        stream.push_back(backward_step(TimelineWork::input_gradient, layer, iteration));
      }
    }
  }

  void iteration(std::size_t number) {
    if (m_options.exchange_aside) {
      if (number == 0) {
        look_up(0);
      }
      look_up(number + 1);
      if (number > 0) {
        updates(number - 1);
      }
    }
    std::vector<std::size_t> blocking;
    for (std::size_t layer = 0; layer < m_layers.size(); ++layer) {
      if (!m_layers[layer].exchange || !m_options.exchange_aside) {
        forward(layer, number, blocking);
      }
    }
    for (std::size_t layer = m_layers.size(); layer-- > 0;) {
      backward(layer, number);
    }
    if (m_options.fused) {
      wait_for_all(number);
    }
    if (!m_options.exchange_aside) {
      updates(number);
    }
  }

  std::span<const TimedLayer> m_layers;
  const TimelineOptions& m_options;
  std::size_t m_iterations;
  std::vector<std::size_t> m_reduced;                          ///< the latest of each layer
  std::vector<std::vector<std::size_t>> m_fetched, m_returned; ///< by iteration and layer
  std::vector<std::size_t> m_ends;
};

/// Plays a program: what runs goes on until the next thing ends.
class Player {
public:
  Player(Program& program, const TimelineOptions& options)
      : m_program(program), m_options(options), m_ended_s(program.computation.size(), 0) {}

  void play() {
    for (;;) {
      start();
      const double computing = rate(m_options.contention.computation, m_sending != nullptr);
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
        advance(stream->running, stream->left_s, step * computing, [this, stream](Computing& done) {
          end(done, stream == &m_aside ? TimelineStream::aside : TimelineStream::computation,
              stream->since_s);
        });
      }
      arrive(step);
      advance(m_sending, m_sending_left_s, step * sending,
              [this](Collective& done) { end_chunk(done); });
    }
  }

  std::vector<TimelineEvent> events;
  /// When the step at `place` of the stream of computation ended.
  [[nodiscard]] double ended_s(std::size_t place) const { return m_ended_s[place]; }

private:
  static double rate(double factor, bool beside) { return beside ? 1 / factor : 1; }

  /// What runs, how much of it is left, and since when it runs.
  struct Stream {
    Computing* running = nullptr;
    std::size_t next = 0; ///< to start
    double left_s = 0, since_s = 0;
  };

  /// A collective whose last chunk is sent.
  struct Arrival {
    Collective* running = nullptr;
    double left_s = 0;
  };

  void arrive(double step_s) {
    for (Arrival& arrival : m_arriving) {
      advance(arrival.running, arrival.left_s, step_s, [](Collective& here) { here.done = true; });
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

  [[nodiscard]] bool can_start(const Computing& step) const {
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

  void begin_next(std::vector<Computing>& steps, Stream& stream) {
    if (stream.running == nullptr && stream.next < steps.size() && can_start(steps[stream.next])) {
      stream = {&steps[stream.next], stream.next + 1, steps[stream.next].seconds, m_now_s};
    }
  }

  [[nodiscard]] bool before(const Collective& a, const Collective& b) const {
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

  void end(Computing& step, TimelineStream stream, double since_s) {
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

  void end_chunk(Collective& collective) {
    // Chunks of one collective that follow each other are one stretch.
    TimelineEvent* last = m_last_sent == k_none ? nullptr : &events[m_last_sent];
    if (last != nullptr && last->end_s == m_sending_since_s && last->work == collective.work &&
        last->layer == collective.layer && last->iteration == collective.iteration) {
      last->end_s = m_now_s;
    } else {
      m_last_sent = events.size();
      record(TimelineStream::communication, collective.work, collective.layer, collective.iteration,
             m_sending_since_s);
      m_last_sent = events.size() > m_last_sent ? m_last_sent : k_none;
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

  Program& m_program;
  const TimelineOptions& m_options;
  std::vector<double> m_ended_s;
  double m_now_s = 0;
  std::uint64_t m_posted = 0;
  std::vector<std::size_t> m_waiting; ///< collectives that are posted and not done
  std::vector<Arrival> m_arriving;
  std::size_t m_last_sent = k_none; ///< its event
  Stream m_computing, m_aside;
  Collective* m_sending = nullptr;
  double m_sending_left_s = 0, m_sending_since_s = 0;
};

void check_seconds(double seconds, const char* what) {
  if (!(seconds >= 0) || !std::isfinite(seconds)) {
    fail(ErrorKind::usage, fmt::format("{} must be a time of at least 0 s, not {}", what, seconds));
  }
}

void check(const TimedCollective& collective) {
  check_seconds(collective.fill_s, "the latency of a collective");
  check_seconds(collective.chunk_s, "the time of a chunk");
}

void check(std::span<const TimedLayer> layers, const TimelineOptions& options) {
  if (layers.empty()) {
    fail(ErrorKind::usage, "a timeline needs at least one layer");
  }
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const TimedLayer& layer = layers[i];
    check_seconds(layer.forward_s, "a forward pass");
    check_seconds(layer.input_gradient_s, "an input gradient");
    check_seconds(layer.weight_gradient_s, "a weight gradient");
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
  if (!(factors.computation >= 1) || !(factors.communication >= 1) ||
      !std::isfinite(factors.computation) || !std::isfinite(factors.communication)) {
    fail(ErrorKind::usage, fmt::format("contention factors must be at least 1, not {} and {}",
                                       factors.computation, factors.communication));
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
  Program program(layers, options);
  Player player(program, options);
  player.play();
  const std::vector<std::size_t>& ends = program.ends();
  const std::size_t counted = repetitions(options).counted;
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

} // namespace reckon
