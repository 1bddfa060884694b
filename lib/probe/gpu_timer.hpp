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

/// Times what runs on GPUs at once, by events on the devices (measuring.md rules 1 and 2): all
/// flows start together, behind a gate that opens when everything is queued, so that the time of
/// queueing is not in the result.
class GpuTimer {
public:
  /// One after another in a stream of `device`.
  struct Flow {
    int device = 0;
    std::function<GpuStatus(GpuStream)> step; ///< queues one operation
  };
  /// What makes the host wait itself, such as a copy of pageable memory, cannot stand behind a
  /// gate: then `gated` is false and queueing is part of what is measured.
  GpuTimer(GpuLibrary& library, std::vector<Flow> flows, bool gated);

  /// Seconds from the common start until all flows have made `count` operations each. Before the
  /// first time every flow makes one operation without a gate: loading a kernel behind one would
  /// wait for what is held up.
  [[nodiscard]] Seconds time(std::uint64_t count);
  /// Of each flow by itself in the last time().
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
