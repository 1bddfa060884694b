// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "equations/timeline.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

/// The input of play_timeline(): the steps of all its iterations, and their dependencies.
namespace reckon {

struct TimelineCollective {
  TimedCollective timed;
  TimelineWork work = TimelineWork::all_reduce;
  std::size_t layer = 0, iteration = 0;
  std::uint64_t posted = 0; ///< when, in the order of posting; 0: not yet
  std::uint64_t sent = 0;   ///< chunks
  bool begun = false, done = false;
};

struct TimelineStep {
  TimelineWork work = TimelineWork::forward;
  std::size_t layer = 0, iteration = 0;
  double seconds = 0;
  std::vector<std::size_t> waits, posts; ///< collectives
  std::optional<std::size_t> after;      ///< a place in the stream of computation
  bool done = false;
};

/// Layers as play_timeline() has checked them.
class TimelineProgram {
public:
  TimelineProgram(std::span<const TimedLayer> layers, const TimelineOptions& options);

  std::vector<TimelineCollective> collectives;
  std::vector<TimelineStep> computation, aside; ///< each in its order
  /// The last step of each iteration in the stream of computation.
  [[nodiscard]] const std::vector<std::size_t>& ends() const { return m_ends; }
  /// Iterations at the end that count; the ones before only fill the queue.
  [[nodiscard]] std::size_t counted() const { return m_counted; }

private:
  std::size_t post(TimelineStep& step, const TimedCollective& timed, TimelineWork work,
                   std::size_t layer);
  void fetch(TimelineStep& step, std::size_t layer);
  void reduce(TimelineStep& step, std::size_t layer);
  [[nodiscard]] TimelineStep forward_step(std::size_t layer, std::size_t iteration) const;
  [[nodiscard]] TimelineStep backward_step(TimelineWork work, std::size_t layer,
                                           std::size_t iteration) const;
  void look_up(std::size_t iteration);
  void forward(std::size_t layer, std::size_t iteration, std::vector<std::size_t>& blocking);
  void backward(std::size_t layer, std::size_t iteration);
  void wait_for_all(std::size_t iteration);
  void updates(std::size_t iteration);
  void iteration(std::size_t number);

  std::span<const TimedLayer> m_layers;
  const TimelineOptions& m_options;
  std::size_t m_iterations, m_counted;
  std::vector<std::size_t> m_reduced;                          ///< the latest of each layer
  std::vector<std::vector<std::size_t>> m_fetched, m_returned; ///< by iteration and layer
  std::vector<std::size_t> m_ends;
};

} // namespace reckon
