// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace reckon {

/// The optimizers of BytePS figure 9b. Steps are fp32 throughout, in place, on one thread; disjoint
/// ranges may be stepped at once. Formulas are those of PyTorch's torch.optim without weight decay,
/// each operation rounded on its own (no fused multiply-add), so that the result has the same bits
/// on every SIMD width.
enum class Optimizer { sgd, momentum, rmsprop, adam };

[[nodiscard]] constexpr std::string_view name_of(Optimizer o) {
  switch (o) {
  case Optimizer::sgd:
    return "sgd";
  case Optimizer::momentum:
    return "momentum";
  case Optimizer::rmsprop:
    return "rmsprop";
  case Optimizer::adam:
    return "adam";
  }
  return "?";
}

[[nodiscard]] constexpr std::optional<Optimizer> optimizer_named(std::string_view name) {
  for (const Optimizer o :
       {Optimizer::sgd, Optimizer::momentum, Optimizer::rmsprop, Optimizer::adam}) {
    if (name_of(o) == name) {
      return o;
    }
  }
  return std::nullopt;
}

/// fp32 arrays of state beside the parameters: 0, 1, 1, 2.
[[nodiscard]] constexpr std::size_t state_arrays(Optimizer o) {
  return o == Optimizer::sgd ? 0 : (o == Optimizer::adam ? 2 : 1);
}

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

} // namespace reckon
