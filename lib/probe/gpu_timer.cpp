// SPDX-License-Identifier: Apache-2.0
#include "probe/gpu_timer.hpp"

#include "core/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace reckon {
namespace {

/// Operations behind one gate: CUDA's queues are of limited length, and a host that waits for room
/// in one never comes to open the gate.
constexpr std::uint64_t k_most_queued = 128;
/// Events tell half a microsecond.
constexpr Seconds k_event_step(1e-6);

} // namespace

void check_gpu(const GpuLibrary& library, GpuStatus status, const std::string& attempt) {
  if (status != 0) {
    fail(ErrorKind::operation, fmt::format("{}: {}", attempt, library.words(status)));
  }
}

GpuTimer::GpuTimer(GpuLibrary& library, std::vector<Flow> flows, bool gated)
    : m_library(library), m_flows(std::move(flows)), m_gated(gated),
      m_flow_seconds(m_flows.size(), 0.0) {
  for (const Flow& flow : m_flows) {
    library.load(flow.device);
    m_streams.emplace_back(library, library.make_stream(flow.device));
    m_begin.emplace_back(library, library.make_event(flow.device));
    m_end.emplace_back(library, library.make_event(flow.device));
  }
  m_start = {library, library.make_event(m_flows.front().device)};
  m_finish = {library, library.make_event(m_flows.front().device)};
}

void GpuTimer::warm_up() {
  m_warm = true;
  for (std::size_t i = 0; i < m_flows.size(); ++i) {
    const GpuStatus queued = m_flows[i].step(m_streams[i].get());
    const GpuStatus ended = m_library.synchronize(m_streams[i].get());
    check_gpu(m_library, queued != 0 ? queued : ended, "queueing work on the GPU");
  }
}

Seconds GpuTimer::time(std::uint64_t count) {
  if (!m_warm) {
    warm_up();
  }
  const std::uint64_t most = std::max<std::uint64_t>(k_most_queued / m_flows.size(), 1);
  std::fill(m_flow_seconds.begin(), m_flow_seconds.end(), 0.0);
  Seconds total(0);
  for (std::uint64_t done = 0; done < count;) {
    const std::uint64_t now = std::min(most, count - done);
    total += time_queued(now);
    done += now;
  }
  return total;
}

Seconds GpuTimer::time_queued(std::uint64_t count) {
  const GpuStream first = m_streams.front().get();
  GpuStatus status = m_gated ? m_library.close_gate(first) : 0;
  const auto next = [&](auto call) {
    if (status == 0) {
      status = call();
    }
  };
  next([&] { return m_library.record(m_start.get(), first); });
  for (std::size_t i = 0; i < m_flows.size(); ++i) {
    const GpuStream stream = m_streams[i].get();
    if (i > 0) {
      next([&] { return m_library.wait(stream, m_start.get()); });
    }
    next([&] { return m_library.record(m_begin[i].get(), stream); });
  }
  // In turn, so that no flow has to wait for the queueing of another where there is no gate.
  for (std::uint64_t k = 0; k < count; ++k) {
    for (std::size_t i = 0; i < m_flows.size(); ++i) {
      next([&] { return m_flows[i].step(m_streams[i].get()); });
    }
  }
  for (std::size_t i = 0; i < m_flows.size(); ++i) {
    next([&] { return m_library.record(m_end[i].get(), m_streams[i].get()); });
  }
  for (std::size_t i = 1; i < m_flows.size(); ++i) {
    next([&] { return m_library.wait(first, m_end[i].get()); });
  }
  next([&] { return m_library.record(m_finish.get(), first); });
  if (m_gated) {
    m_library.open_gate(); // whatever happened: nothing may stay behind it
  }
  for (const auto& stream : m_streams) { // all, as an error may have kept them apart
    const GpuStatus ended = m_library.synchronize(stream.get());
    status = status == 0 ? ended : status;
  }
  check_gpu(m_library, status, "queueing work on the GPU");
  if (m_gated && m_library.gate_expired()) {
    fail(ErrorKind::operation,
         "the gate before the timed work opened by itself: queueing took too long");
  }
  for (std::size_t i = 0; i < m_flows.size(); ++i) {
    m_flow_seconds[i] += m_library.elapsed(m_begin[i].get(), m_end[i].get()).count();
  }
  return m_library.elapsed(m_start.get(), m_finish.get());
}

Samples sample_flows(GpuTimer& timer, const Clock& clock, Seconds budget,
                     const std::function<bool()>& interrupted) {
  SampleLimits limits;
  limits.budget = budget;
  limits.max_samples = 1000;
  limits.timer_step = k_event_step;
  limits.batch_time = 100 * k_event_step;
  Sampler sampler(limits, clock, interrupted);
  std::vector<std::vector<double>> own(timer.flow_seconds().size());
  while (!sampler.done()) {
    const std::uint64_t batch = sampler.batch();
    const Seconds elapsed = timer.time(batch);
    if (!sampler.warming_up()) {
      for (std::size_t i = 0; i < own.size(); ++i) {
        own[i].push_back(timer.flow_seconds()[i] / static_cast<double>(batch));
      }
    }
    sampler.add(elapsed);
  }
  return sampler.result(own);
}

} // namespace reckon
