// SPDX-License-Identifier: Apache-2.0
#include "movers/engine.hpp"

#include "kernels/fixed.hpp"
#include "kernels/optimizer.hpp"
#include "kernels/reduce.hpp"

#include <cstring>

namespace reckon {
namespace {

class CpuEngine final : public Engine {
public:
  Started start(const LocalOp& op, std::uint64_t /*id*/) noexcept override {
    switch (op.kind) {
    case LocalOp::Kind::copy:
      std::memmove(op.to, op.sources[0], op.bytes);
      break;
    case LocalOp::Kind::sum:
      sum_into(op.dtype, op.to, op.sources, op.bytes / size_of(op.dtype), op.stores);
      break;
    case LocalOp::Kind::sum_in_place:
      sum_in_place(op.dtype, writable(op.sources), op.bytes / size_of(op.dtype));
      break;
    case LocalOp::Kind::update: {
      const auto state = [&](std::size_t number) {
        return op.sources.size() > number ? floats(op.sources[number], op.bytes)
                                          : std::span<float>();
      };
      optimizer_step(op.optimizer, floats(op.to, op.bytes), state(1), state(2),
                     floats(op.sources[0], op.bytes), op.step);
      break;
    }
    case LocalOp::Kind::subtract:
      subtract_from(floats(op.sources[0], op.bytes), floats(op.to, op.bytes));
      break;
    case LocalOp::Kind::to_fixed:
      to_fixed(op.to, op.sources[0], op.bytes / sizeof(float), op.exponent, op.limit);
      break;
    case LocalOp::Kind::narrow:
      narrow(op.dtype, op.to, op.sources[0], op.bytes / size_of(op.dtype));
      break;
    case LocalOp::Kind::widen:
      widen(op.dtype, op.to, op.sources[0], op.bytes / size_of(op.dtype));
      break;
    case LocalOp::Kind::from_fixed:
      from_fixed(op.to, op.sources[0], op.bytes / sizeof(float), op.exponent);
      break;
    }
    return Started::done;
  }

private:
  // The executor's buffers are all writable; of a LocalOp only some pointers are written through.
  static std::span<float> floats(const void* at, std::uint64_t bytes) noexcept {
    return {const_cast<float*>(static_cast<const float*>(at)), bytes / sizeof(float)};
  }
  static std::span<void* const> writable(std::span<const void* const> operands) noexcept {
    return {const_cast<void* const*>(operands.data()), operands.size()};
  }
};

} // namespace

Engine& cpu_engine() noexcept {
  static CpuEngine engine;
  return engine;
}

} // namespace reckon
