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

// The spans of one call have equal lengths and do not overlap; they need no alignment beyond that
// of float.

struct SgdOptions {
  float learning_rate = 0.01F;
};
/// p -= lr g
void sgd_step(std::span<float> parameters, std::span<const float> gradients,
              const SgdOptions& options) noexcept;

struct MomentumOptions {
  float learning_rate = 0.01F;
  float momentum = 0.9F;
};
/// b = momentum b + g;  p -= lr b.  `velocity` (b) starts as zeros.
void momentum_step(std::span<float> parameters, std::span<float> velocity,
                   std::span<const float> gradients, const MomentumOptions& options) noexcept;

struct RmspropOptions {
  float learning_rate = 0.01F;
  float decay = 0.99F; ///< PyTorch's alpha
  float epsilon = 1e-8F;
};
/// v = decay v + (1 - decay) g^2;  p -= lr g / (sqrt(v) + epsilon).  `mean_square` (v) starts as
/// zeros.
void rmsprop_step(std::span<float> parameters, std::span<float> mean_square,
                  std::span<const float> gradients, const RmspropOptions& options) noexcept;

struct AdamOptions {
  float learning_rate = 0.001F;
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float epsilon = 1e-8F;
};
/// m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;
/// p -= lr / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon).
/// `step` is t, from 1 on; m and v start as zeros. The powers of the betas are taken in double
/// precision.
void adam_step(std::span<float> parameters, std::span<float> first_moment,
               std::span<float> second_moment, std::span<const float> gradients, std::uint64_t step,
               const AdamOptions& options) noexcept;

/// One step of `optimizer` with the learning rate k_learning_rate and the defaults above for the
/// rest. state1 and state2 are the optimizer's arrays in the order above; those that it lacks are
/// not looked at. `step` counts from 1.
void optimizer_step(Optimizer optimizer, std::span<float> parameters, std::span<float> state1,
                    std::span<float> state2, std::span<const float> gradients,
                    std::uint64_t step) noexcept;

/// values = minuend - values: turns a copy of the old parameters into what a step has changed.
void subtract_from(std::span<const float> minuend, std::span<float> values) noexcept;

} // namespace reckon
