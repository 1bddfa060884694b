// SPDX-License-Identifier: Apache-2.0
#include "kernels/optimizer.hpp"

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

void step_on_target(Optimizer optimizer, const StepArrays& arrays, const StepCoefficients& c) {
  switch (optimizer) {
  case Optimizer::sgd:
    step_all<0>(arrays, [&](auto tag, auto p, auto&, auto&, auto g)
                            HWY_ATTR { return hn::Sub(p, hn::Mul(hn::Set(tag, c.rate), g)); });
    break;
  case Optimizer::momentum:
    step_all<1>(arrays, [&](auto tag, auto p, auto& velocity, auto&, auto g) HWY_ATTR {
      velocity = hn::Add(hn::Mul(hn::Set(tag, c.decay1), velocity), g);
      return hn::Sub(p, hn::Mul(hn::Set(tag, c.rate), velocity));
    });
    break;
  case Optimizer::rmsprop:
    step_all<1>(arrays, [&](auto tag, auto p, auto& square, auto&, auto g) HWY_ATTR {
      square = hn::Add(hn::Mul(hn::Set(tag, c.decay2), square),
                       hn::Mul(hn::Set(tag, c.one_minus2), hn::Mul(g, g)));
      const auto root = hn::Add(hn::Sqrt(square), hn::Set(tag, c.epsilon));
      return hn::Sub(p, hn::Mul(hn::Set(tag, c.rate), hn::Div(g, root)));
    });
    break;
  case Optimizer::adam:
    step_all<2>(arrays, [&](auto tag, auto p, auto& mean, auto& square, auto g) HWY_ATTR {
      mean = hn::Add(hn::Mul(hn::Set(tag, c.decay1), mean), hn::Mul(hn::Set(tag, c.one_minus1), g));
      square = hn::Add(hn::Mul(hn::Set(tag, c.decay2), square),
                       hn::Mul(hn::Set(tag, c.one_minus2), hn::Mul(g, g)));
      const auto root =
          hn::Add(hn::Mul(hn::Sqrt(square), hn::Set(tag, c.root_scale)), hn::Set(tag, c.epsilon));
      return hn::Sub(p, hn::Mul(hn::Set(tag, c.rate), hn::Div(mean, root)));
    });
    break;
  }
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
HWY_EXPORT(step_on_target);
HWY_EXPORT(subtract_on_target);

} // namespace

void optimizer_step(Optimizer optimizer, std::span<float> parameters, std::span<float> state1,
                    std::span<float> state2, std::span<const float> gradients, std::uint64_t step,
                    const StepNumbers& numbers) noexcept {
  assert(parameters.size() == gradients.size() && step >= 1);
  assert(state_arrays(optimizer) < 1 || state1.size() == parameters.size());
  assert(state_arrays(optimizer) < 2 || state2.size() == parameters.size());
  const bool adam = optimizer == Optimizer::adam;
  StepCoefficients c{.rate = numbers.learning_rate,
                     .decay1 = adam ? numbers.beta1 : numbers.momentum,
                     .decay2 = adam ? numbers.beta2 : numbers.decay,
                     .epsilon = numbers.epsilon};
  c.one_minus1 = 1 - c.decay1;
  c.one_minus2 = 1 - c.decay2;
  if (adam) {
    const double t = static_cast<double>(step);
    const double correction1 = 1 - std::pow(static_cast<double>(numbers.beta1), t);
    const double correction2 = 1 - std::pow(static_cast<double>(numbers.beta2), t);
    c.rate = static_cast<float>(static_cast<double>(numbers.learning_rate) / correction1);
    c.root_scale = static_cast<float>(1 / std::sqrt(correction2));
  }
  HWY_DYNAMIC_DISPATCH(step_on_target)
  (optimizer,
   {parameters.data(), state1.data(), state2.data(), gradients.data(), parameters.size()}, c);
}

void subtract_from(std::span<const float> minuend, std::span<float> values) noexcept {
  assert(minuend.size() == values.size());
  HWY_DYNAMIC_DISPATCH(subtract_on_target)
  ({values.data(), nullptr, nullptr, minuend.data(), values.size()});
}

} // namespace reckon
#endif
