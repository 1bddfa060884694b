// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "equations/contended.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

/// Equation 52: an iteration in which layers compute while the gradients of others are summed (ACE,
/// sections V and VI). Plain doubles in seconds. Invalid arguments throw Error{usage}.
namespace reckon {

/// The next of the waiting collectives: the last posted, the first posted, or that of the layer
/// which the next forward pass needs first.
enum class SchedulePolicy { lifo, fifo, priority };

/// One collective: nothing interrupts a chunk, and between chunks another may be preferred.
struct TimedCollective {
  double fill_s = 0;  ///< once: latencies until its first data have arrived everywhere
  double chunk_s = 0; ///< of each chunk
  std::uint64_t chunks = 0;
  [[nodiscard]] double alone_s() const { return fill_s + chunk_s * static_cast<double>(chunks); }
};

/// The exchange of a layer's output with all workers before layer `before`, a later one, and of its
/// gradient.
struct TimedExchange {
  TimedCollective forward, backward;
  std::size_t before = 0;
};

struct TimedLayer {
  double forward_s = 0, input_gradient_s = 0, weight_gradient_s = 0;
  std::optional<TimedCollective> all_reduce; ///< of its weights' gradient
  /// The weight gradient of a layer with an exchange waits for the backward exchange, at the end of
  /// the iteration.
  std::optional<TimedExchange> exchange;
};

struct TimelineOptions {
  SchedulePolicy policy = SchedulePolicy::lifo;
  /// Given: nothing overlaps; this is an iteration's sums and backward exchanges, at its end.
  std::optional<TimedCollective> fused;
  /// Layers with an exchange compute beside the others, and their forward pass is an iteration
  /// ahead: ACE's treatment of DLRM's embeddings (VI-D).
  bool exchange_aside = false;
  /// Whether chunks of the next collective are sent while the last of one are on their way, as by
  /// an engine that works on many chunks at once. Otherwise a collective holds its mover from its
  /// first latency to its last chunk, as consecutive kernels do.
  bool pipelined = false;
  /// Equation 53: for endpoints that share instead of dividing.
  ContentionFactors contention;
};

enum class TimelineStream { computation, aside, communication };
enum class TimelineWork {
  forward,
  input_gradient,
  weight_gradient,
  all_reduce,
  exchange_forward,
  exchange_backward,
  fused
};

/// A stretch of one activity of a stream.
struct TimelineEvent {
  TimelineStream stream = TimelineStream::computation;
  TimelineWork work = TimelineWork::forward;
  std::size_t layer = 0; ///< for `fused`: 0
  std::size_t iteration = 0;
  double begin_s = 0, end_s = 0;
};

struct Timeline {
  /// Of all played iterations, by their ends; without activities of no duration.
  std::vector<TimelineEvent> events;
  /// The repeating part: from the end of one iteration to that of the next; with layers aside, 32
  /// iterations. The times below are those of one.
  double begin_s = 0, end_s = 0;
  double iteration_s = 0;
  double computation_s = 0;   ///< of it, in the stream of computation
  double exposed_s = 0;       ///< the rest, in which that stream waits
  double communication_s = 0; ///< time of it in which something is sent
};

/// Layers in forward order; at least one. Their backward pass goes from the last to the first, each
/// computing its weights' gradient, which is then posted, and its input's.
[[nodiscard]] Timeline play_timeline(std::span<const TimedLayer> layers,
                                     const TimelineOptions& options);

/// The waiting times of each layer's computations, in one of the repeating iterations: seconds,
/// exposed_s in total.
[[nodiscard]] std::vector<double> layer_waits_s(const Timeline& timeline, std::size_t layers);

} // namespace reckon
