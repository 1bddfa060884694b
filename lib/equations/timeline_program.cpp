// SPDX-License-Identifier: Apache-2.0
#include "equations/timeline_program.hpp"

#include <limits>
#include <utility>

namespace reckon {
namespace {

constexpr std::size_t k_none = std::numeric_limits<std::size_t>::max();

} // namespace

// At the end of its forward pass an iteration has waited for all that the one before had posted, so
// that from there on all iterations are alike: two are enough, and the second counts. With
// something aside an iteration may leave work to the next: many, of which the later half counts.
TimelineProgram::TimelineProgram(std::span<const TimedLayer> layers, const TimelineOptions& options)
    : m_layers(layers), m_options(options), m_iterations(options.exchange_aside ? 64 : 2),
      m_counted(m_iterations / 2), m_reduced(layers.size(), k_none),
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

std::size_t TimelineProgram::post(TimelineStep& step, const TimedCollective& timed,
                                  TimelineWork work, std::size_t layer) {
  collectives.push_back({timed, work, layer, step.iteration, 0, 0, false, false});
  step.posts.push_back(collectives.size() - 1);
  return collectives.size() - 1;
}

void TimelineProgram::fetch(TimelineStep& step, std::size_t layer) {
  m_fetched[step.iteration][layer] =
      post(step, m_layers[layer].exchange->forward, TimelineWork::exchange_forward, layer);
}

void TimelineProgram::reduce(TimelineStep& step, std::size_t layer) {
  if (m_layers[layer].all_reduce && !m_options.fused) {
    m_reduced[layer] = post(step, *m_layers[layer].all_reduce, TimelineWork::all_reduce, layer);
  }
}

TimelineStep TimelineProgram::forward_step(std::size_t layer, std::size_t iteration) const {
  TimelineStep step{
      TimelineWork::forward, layer, iteration, m_layers[layer].forward_s, {}, {}, {}, false};
  if (m_reduced[layer] != k_none) {
    step.waits.push_back(m_reduced[layer]);
  }
  return step;
}

/// Forward passes of what is exchanged, aside: from the begin of the iteration before.
void TimelineProgram::look_up(std::size_t iteration) {
  for (std::size_t layer = 0; iteration < m_iterations && layer < m_layers.size(); ++layer) {
    if (m_layers[layer].exchange) {
      TimelineStep step = forward_step(layer, iteration);
      if (iteration >= 2) {
        step.after = m_ends[iteration - 2];
      }
      fetch(step, layer);
      aside.push_back(std::move(step));
    }
  }
}

void TimelineProgram::forward(std::size_t layer, std::size_t iteration,
                              std::vector<std::size_t>& blocking) {
  TimelineStep step = forward_step(layer, iteration);
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

TimelineStep TimelineProgram::backward_step(TimelineWork work, std::size_t layer,
                                            std::size_t iteration) const {
  const TimedLayer& l = m_layers[layer];
  const double seconds =
      work == TimelineWork::weight_gradient ? l.weight_gradient_s : l.input_gradient_s;
  return {work, layer, iteration, seconds, {}, {}, {}, false};
}

void TimelineProgram::backward(std::size_t layer, std::size_t iteration) {
  if (m_layers[layer].exchange) {
    return; // updates()
  }
  TimelineStep weights = backward_step(TimelineWork::weight_gradient, layer, iteration);
  reduce(weights, layer);
  computation.push_back(std::move(weights));
  TimelineStep input = backward_step(TimelineWork::input_gradient, layer, iteration);
  for (std::size_t from = 0; from < layer && !m_options.fused; ++from) {
    if (m_layers[from].exchange && m_layers[from].exchange->before == layer) {
      m_returned[iteration][from] =
          post(input, m_layers[from].exchange->backward, TimelineWork::exchange_backward, from);
    }
  }
  computation.push_back(std::move(input));
}

/// A step of no length that ends when all is there.
void TimelineProgram::wait_for_all(std::size_t iteration) {
  const std::size_t all = post(computation.back(), *m_options.fused, TimelineWork::fused, 0);
  computation.push_back({TimelineWork::fused, 0, iteration, 0, {all}, {}, {}, false});
}

/// The backward pass of layers with an exchange, once their gradient is there.
void TimelineProgram::updates(std::size_t iteration) {
  std::vector<TimelineStep>& stream = m_options.exchange_aside ? aside : computation;
  for (std::size_t layer = m_layers.size(); layer-- > 0;) {
    if (m_layers[layer].exchange) {
      TimelineStep weights = backward_step(TimelineWork::weight_gradient, layer, iteration);
      if (m_returned[iteration][layer] != k_none) {
        weights.waits.push_back(m_returned[iteration][layer]);
      }
      reduce(weights, layer);
      stream.push_back(std::move(weights));
      stream.push_back(backward_step(TimelineWork::input_gradient, layer, iteration));
    }
  }
}

void TimelineProgram::iteration(std::size_t number) {
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

} // namespace reckon
