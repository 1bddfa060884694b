// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "probe/gpu_places.hpp"
#include "probe/gpu_timer.hpp"

#include <cstddef>
#include <cstdint>

namespace reckon {

/// One copy among a machine's GPUs and NUMA nodes: `bytes` from `offset` of the source to the same
/// place of the target.
struct GpuCopy {
  using End = GpuPlaces::End;
  enum class Engine {
    ce,     ///< the driver's copy engine
    sm,     ///< a kernel on the driver
    staged, ///< by way of the host, whatever the GPUs could do
  };
  End from, to;
  Engine engine = Engine::ce;
  bool by_source = true; ///< which end drives, where both are GPUs
  std::uint64_t offset = 0, bytes = 0;
  int blocks = 0; ///< sm; 0: all
  [[nodiscard]] bool pinned() const { return from.pinned && to.pinned; }
  /// The GPU that drives, as an index of GpuPlaces::gpus().
  [[nodiscard]] std::size_t driver() const;
};

/// The copy as work of a stream. Makes the buffers ready.
[[nodiscard]] GpuTimer::Flow flow_of(GpuPlaces& places, const GpuCopy& copy);

/// Turns peer access on or off for what the copy needs. Throws Error{unavailable} where the GPUs
/// have none.
void settle_access(GpuPlaces& places, const GpuCopy& copy);

} // namespace reckon
