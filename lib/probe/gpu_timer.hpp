// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/clock.hpp"
#include "movers/gpu.hpp"
#include "probe/sampling.hpp"

#include <functional>
#include <vector>

namespace reckon {

/// Throws Error{operation} with the attempt and the library's words unless `status` is 0.
void check_gpu(const GpuLibrary& library, GpuStatus status, const std::string& attempt);

/// Times simultaneous work on GPUs, by events on the devices: all flows start together, behind a
/// gate that opens when everything is queued, so that queueing is not in the result.
class GpuTimer {
public:
  /// Consecutive operations in a stream of `device`.
  struct Flow {
    int device = 0;
    std::function<GpuStatus(GpuStream)> step; ///< queues one operation
  };
  /// An operation that makes the host wait, for example a copy of pageable memory, cannot stand
  /// behind a gate: then `gated` is false and the time includes queueing.
  GpuTimer(GpuLibrary& library, std::vector<Flow> flows, bool gated);

  /// Seconds from the common start until all flows have made `count` operations each. Before the
  /// first time every flow makes one operation without a gate: loading a kernel behind a gate could
  /// wait for the gated work.
  [[nodiscard]] Seconds time(std::uint64_t count);
  /// Seconds of each flow by itself in the last time().
  [[nodiscard]] const std::vector<double>& flow_seconds() const { return m_flow_seconds; }

private:
  void warm_up();
  [[nodiscard]] Seconds time_queued(std::uint64_t count);

  GpuLibrary& m_library;
  std::vector<Flow> m_flows;
  bool m_gated;
  bool m_warm = false;
  std::vector<GpuOwned<GpuStream>> m_streams;
  std::vector<GpuOwned<GpuEvent>> m_begin, m_end;
  GpuOwned<GpuEvent> m_start, m_finish;
  std::vector<double> m_flow_seconds;
};

/// Samples of one operation of all flows together; rank_seconds are the flows' own medians.
[[nodiscard]] Samples sample_flows(GpuTimer& timer, const Clock& clock, Seconds budget,
                                   const std::function<bool()>& interrupted);

} // namespace reckon
