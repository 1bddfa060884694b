// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/optimizer.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace reckon {

// Steps are fp32 throughout, in place, on one thread; disjoint ranges may be stepped at once.
// Formulas are those of PyTorch's torch.optim without weight decay, each operation rounded on its
// own (no fused multiply-add), so that the result has the same bits on every SIMD width.

/// Memory traffic of one element's step: the gradient is read, the parameter and every state array
/// are read and written. 12, 20, 20, 28 bytes. Everything written was read first, so there is no
/// hidden write-allocate.
[[nodiscard]] constexpr std::uint64_t bytes_moved_per_element(Optimizer o) {
  return sizeof(float) * (3 + 2 * state_arrays(o));
}

/// The numbers of a step, PyTorch's except the learning rate. An optimizer reads its own.
struct StepNumbers {
  float learning_rate = k_learning_rate; ///< lr
  float momentum = 0.9F;
  float decay = 0.99F; ///< for RMSProp; PyTorch's alpha
  float beta1 = 0.9F, beta2 = 0.999F;
  float epsilon = 1e-8F;
};

/// One step: with the parameters p, the gradients g and the states in this order, which start as
/// zeros,
///   SGD:      p -= lr g
///   momentum: b = momentum b + g;  p -= lr b
///   RMSProp:  v = decay v + (1 - decay) g^2;  p -= lr g / (sqrt(v) + epsilon)
///   Adam:     m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;
///             p -= lr / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
/// `step` is t, from 1 on; the powers of the betas are taken in double precision. States that the
/// optimizer lacks are not looked at. The spans have equal lengths and do not overlap; they need no
/// alignment beyond that of float.
void optimizer_step(Optimizer optimizer, std::span<float> parameters, std::span<float> state1,
                    std::span<float> state2, std::span<const float> gradients, std::uint64_t step,
                    const StepNumbers& numbers = {}) noexcept;

/// values = minuend - values: turns a copy of the old parameters into the change of a step.
void subtract_from(std::span<const float> minuend, std::span<float> values) noexcept;

} // namespace reckon
