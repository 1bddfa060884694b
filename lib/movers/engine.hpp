// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/dtype.hpp"
#include "core/optimizer.hpp"
#include "core/stores.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace reckon {

/// A step of a rank's program within the rank's memory.
struct LocalOp {
  enum class Kind : std::uint8_t {
    copy,         ///< to = sources[0]
    sum,          ///< to = the sum of all sources, as sum_into()
    update,       ///< optimizer_step(): to = parameters; sources = gradient, then the states
    subtract,     ///< to = sources[0] - to, fp32
    to_fixed,     ///< sources[0], fp32, to whole numbers
    from_fixed,   ///< and back
    narrow,       ///< sources[0], fp32, rounded to `dtype`
    widen,        ///< and back to fp32
    sum_in_place, ///< each of the sources = the sum of all, as reckon::sum_in_place()
  };
  Kind kind = Kind::copy;
  DType dtype = DType::fp32;      ///< sum, sum_in_place, narrow, widen
  Stores stores = Stores::cached; ///< sum; a GPU has no choice
  Optimizer optimizer = Optimizer::sgd;
  std::uint64_t step = 1;    ///< update: from 1 on
  std::int16_t exponent = 0; ///< to_fixed, from_fixed
  std::int32_t limit = 0;    ///< to_fixed
  std::byte* to = nullptr;
  /// An update's states and the operands of a sum in place are written, too.
  std::span<const void* const> sources;
  /// Bytes of `to`, or of each source of a sum in place; narrow, widen: of the elements of `dtype`.
  std::uint64_t bytes = 0;
};

/// Does local ops, for one thread. All memory lies in buffers of the mover that it belongs to.
class Engine {
public:
  enum class Started : std::uint8_t {
    done,    ///< over already
    pending, ///< Completion::Kind::computed will come out of the lane's poll()
    full,    ///< not now: poll and try again
    failed,  ///< the lane's error() says why
  };
  Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  virtual ~Engine() = default;
  /// `id` comes back with the completion. `op.sources` is read during the call only.
  [[nodiscard]] virtual Started start(const LocalOp& op, std::uint64_t id) noexcept = 0;
};

/// The calling processor, by the kernels of lib/kernels. Without state: one for all.
[[nodiscard]] Engine& cpu_engine() noexcept;

} // namespace reckon
