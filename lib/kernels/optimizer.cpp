// SPDX-License-Identifier: Apache-2.0
#include "kernels/optimizer.hpp"

#include <array>
#include <cassert>
#include <cmath>

// Compiled once for each instruction set; see reduce.cpp.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/optimizer.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#ifndef RECKON_KERNELS_OPTIMIZER_COEFFICIENTS
#define RECKON_KERNELS_OPTIMIZER_COEFFICIENTS
namespace reckon {
namespace {

/// One step as the kernels see it. Not all coefficients mean something to every optimizer.
struct StepCoefficients {
  float rate = 0;       ///< of the update
  float decay1 = 0;     ///< momentum, beta1
  float one_minus1 = 0; ///< 1 - decay1
  float decay2 = 0;     ///< RMSProp's decay, beta2
  float one_minus2 = 0; ///< 1 - decay2
  float root_scale = 0; ///< Adam: 1 / sqrt(1 - beta2^t)
  float epsilon = 0;
};

struct StepArrays {
  float* parameters;
  float* state1;
  float* state2;
  const float* gradients;
  std::size_t elements;
};

} // namespace
} // namespace reckon
#endif

HWY_BEFORE_NAMESPACE();
namespace reckon {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// Calls rule(tag, parameters, state1, state2, gradients) with vectors, the states by reference,
/// and writes the `k_states` states and the result, the new parameters. The rest that fills no
/// vector is done one by one with the same rule, so that the bits do not depend on where an element
/// lies.
template <std::size_t k_states, class Rule>
HWY_INLINE void step_all(const StepArrays& arrays, const Rule& rule) {
  const auto some = [&](auto tag, std::size_t i) HWY_ATTR {
    auto state1 = hn::Zero(tag);
    auto state2 = hn::Zero(tag);
    if constexpr (k_states >= 1) {
      state1 = hn::LoadU(tag, arrays.state1 + i);
    }
    if constexpr (k_states >= 2) {
      state2 = hn::LoadU(tag, arrays.state2 + i);
    }
    const auto result = rule(tag, hn::LoadU(tag, arrays.parameters + i), state1, state2,
                             hn::LoadU(tag, arrays.gradients + i));
    hn::StoreU(result, tag, arrays.parameters + i);
    if constexpr (k_states >= 1) {
      hn::StoreU(state1, tag, arrays.state1 + i);
    }
    if constexpr (k_states >= 2) {
      hn::StoreU(state2, tag, arrays.state2 + i);
    }
  };
  const hn::ScalableTag<float> whole;
  const std::size_t lanes = hn::Lanes(whole);
  std::size_t i = 0;
  for (; i + lanes <= arrays.elements; i += lanes) {
    some(whole, i);
  }
  const hn::CappedTag<float, 1> one;
  for (; i < arrays.elements; ++i) {
    some(one, i);
  }
}

void sgd_on_target(const StepArrays& arrays, const StepCoefficients& c) {
  step_all<0>(arrays, [&](auto tag, auto p, auto&, auto&, auto g)
                          HWY_ATTR { return hn::Sub(p, hn::Mul(hn::Set(tag, c.rate), g)); });
}

void momentum_on_target(const StepArrays& arrays, const StepCoefficients& c) {
  step_all<1>(arrays, [&](auto tag, auto p, auto& velocity, auto&, auto g) HWY_ATTR {
    velocity = hn::Add(hn::Mul(hn::Set(tag, c.decay1), velocity), g);
    return hn::Sub(p, hn::Mul(hn::Set(tag, c.rate), velocity));
  });
}

void rmsprop_on_target(const StepArrays& arrays, const StepCoefficients& c) {
  step_all<1>(arrays, [&](auto tag, auto p, auto& square, auto&, auto g) HWY_ATTR {
    square = hn::Add(hn::Mul(hn::Set(tag, c.decay2), square),
                     hn::Mul(hn::Set(tag, c.one_minus2), hn::Mul(g, g)));
    const auto root = hn::Add(hn::Sqrt(square), hn::Set(tag, c.epsilon));
    return hn::Sub(p, hn::Mul(hn::Set(tag, c.rate), hn::Div(g, root)));
  });
}

void adam_on_target(const StepArrays& arrays, const StepCoefficients& c) {
  step_all<2>(arrays, [&](auto tag, auto p, auto& mean, auto& square, auto g) HWY_ATTR {
    mean = hn::Add(hn::Mul(hn::Set(tag, c.decay1), mean), hn::Mul(hn::Set(tag, c.one_minus1), g));
    square = hn::Add(hn::Mul(hn::Set(tag, c.decay2), square),
                     hn::Mul(hn::Set(tag, c.one_minus2), hn::Mul(g, g)));
    const auto root =
        hn::Add(hn::Mul(hn::Sqrt(square), hn::Set(tag, c.root_scale)), hn::Set(tag, c.epsilon));
    return hn::Sub(p, hn::Mul(hn::Set(tag, c.rate), hn::Div(mean, root)));
  });
}

/// parameters = gradients - parameters.
void subtract_on_target(const StepArrays& arrays) {
  step_all<0>(arrays, [](auto, auto p, auto&, auto&, auto g) HWY_ATTR { return hn::Sub(g, p); });
}

} // namespace
} // namespace HWY_NAMESPACE
} // namespace reckon
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reckon {
namespace {
HWY_EXPORT(sgd_on_target);
HWY_EXPORT(momentum_on_target);
HWY_EXPORT(rmsprop_on_target);
HWY_EXPORT(adam_on_target);
HWY_EXPORT(subtract_on_target);
} // namespace

void sgd_step(std::span<float> parameters, std::span<const float> gradients,
              const SgdOptions& options) noexcept {
  assert(parameters.size() == gradients.size());
  const StepCoefficients c{.rate = options.learning_rate};
  HWY_DYNAMIC_DISPATCH(sgd_on_target)
  ({parameters.data(), nullptr, nullptr, gradients.data(), parameters.size()}, c);
}

void momentum_step(std::span<float> parameters, std::span<float> velocity,
                   std::span<const float> gradients, const MomentumOptions& options) noexcept {
  assert(parameters.size() == gradients.size() && parameters.size() == velocity.size());
  const StepCoefficients c{.rate = options.learning_rate, .decay1 = options.momentum};
  HWY_DYNAMIC_DISPATCH(momentum_on_target)
  ({parameters.data(), velocity.data(), nullptr, gradients.data(), parameters.size()}, c);
}

void rmsprop_step(std::span<float> parameters, std::span<float> mean_square,
                  std::span<const float> gradients, const RmspropOptions& options) noexcept {
  assert(parameters.size() == gradients.size() && parameters.size() == mean_square.size());
  const StepCoefficients c{.rate = options.learning_rate,
                           .decay2 = options.decay,
                           .one_minus2 = 1 - options.decay,
                           .epsilon = options.epsilon};
  HWY_DYNAMIC_DISPATCH(rmsprop_on_target)
  ({parameters.data(), mean_square.data(), nullptr, gradients.data(), parameters.size()}, c);
}

void adam_step(std::span<float> parameters, std::span<float> first_moment,
               std::span<float> second_moment, std::span<const float> gradients, std::uint64_t step,
               const AdamOptions& options) noexcept {
  assert(parameters.size() == gradients.size() && parameters.size() == first_moment.size() &&
         parameters.size() == second_moment.size() && step >= 1);
  const double t = static_cast<double>(step);
  const double correction1 = 1 - std::pow(static_cast<double>(options.beta1), t);
  const double correction2 = 1 - std::pow(static_cast<double>(options.beta2), t);
  const StepCoefficients c{
      .rate = static_cast<float>(static_cast<double>(options.learning_rate) / correction1),
      .decay1 = options.beta1,
      .one_minus1 = 1 - options.beta1,
      .decay2 = options.beta2,
      .one_minus2 = 1 - options.beta2,
      .root_scale = static_cast<float>(1 / std::sqrt(correction2)),
      .epsilon = options.epsilon};
  HWY_DYNAMIC_DISPATCH(adam_on_target)
  ({parameters.data(), first_moment.data(), second_moment.data(), gradients.data(),
    parameters.size()},
   c);
}

void optimizer_step(Optimizer optimizer, std::span<float> parameters, std::span<float> state1,
                    std::span<float> state2, std::span<const float> gradients,
                    std::uint64_t step) noexcept {
  switch (optimizer) {
  case Optimizer::sgd:
    sgd_step(parameters, gradients, {.learning_rate = k_learning_rate});
    break;
  case Optimizer::momentum:
    momentum_step(parameters, state1, gradients, {.learning_rate = k_learning_rate});
    break;
  case Optimizer::rmsprop:
    rmsprop_step(parameters, state1, gradients, {.learning_rate = k_learning_rate});
    break;
  case Optimizer::adam:
    adam_step(parameters, state1, state2, gradients, step, {.learning_rate = k_learning_rate});
    break;
  }
}

void subtract_from(std::span<const float> minuend, std::span<float> values) noexcept {
  assert(minuend.size() == values.size());
  HWY_DYNAMIC_DISPATCH(subtract_on_target)
  ({values.data(), nullptr, nullptr, minuend.data(), values.size()});
}

} // namespace reckon
#endif
