// SPDX-License-Identifier: Apache-2.0
// Training's calls about gradients on a GPU.
#include "core/clock.hpp"
#include "core/error.hpp"
#include "movers/gpu.hpp"
#include "training/of_plan.hpp"
#include "training/training.hpp"

#include <fmt/format.h>

#include <memory>
#include <string>

namespace reckon {

void Training::use_gpu(int device) {
  std::string why_not;
  GpuLibrary* const gpus = gpu_library(&why_not);
  if (gpus == nullptr) {
    fail(ErrorKind::unavailable, "no GPU can be used: " + why_not);
  }
  const std::lock_guard lock(m_mutex);
  throw_failure();
  if (!worker()) {
    fail(ErrorKind::input, fmt::format("rank {} only sums, and has no gradients", rank()));
  }
  if (m_plan.fixed_point) {
    fail(ErrorKind::input, fmt::format("{}: the plan sums whole numbers, which gradients on a GPU "
                                       "are not turned into; plan for plain sums",
                                       m_plan_file));
  }
  if (m_step != Step::none || m_wish != Wish::none || m_engine->staging) {
    fail(ErrorKind::input, m_engine->staging ? "the session uses a GPU already"
                                             : "a step is under way: wait for it first");
  }
  m_engine->staging = std::make_unique<Staging>(
      *gpus, device, buffer(), places_of(m_workload, m_layout), stretches_of(m_plan), m_factor);
  m_engine->gates->use(*m_engine->staging);
}

Staging& Training::staging() const {
  if (!m_engine->staging) {
    fail(ErrorKind::input, "the session uses no GPU: name it first");
  }
  return *m_engine->staging;
}

void Training::ready_on_stream(std::size_t tensor, std::byte* gradient, void* stream) {
  Staging& on_gpu = staging();
  take(tensor, 1);
  on_gpu.ready(tensor, gradient, on_gpu.stream_of(stream));
  note_first(monotonic_ns());
  m_engine->gates->open(tensor, 1);
}

void Training::follow_on_stream(void* stream) {
  Staging& on_gpu = staging();
  on_gpu.follow(on_gpu.stream_of(stream));
}

void Training::wait_on_stream(void* stream) {
  Staging& on_gpu = staging();
  require_open();
  {
    const std::lock_guard lock(m_mutex);
    throw_failure();
  }
  if (const std::size_t missing = m_engine->gates->closed(); missing > 0) {
    fail(ErrorKind::input,
         fmt::format("{} of {} tensors are not ready in this step", missing, tensors().size()));
  }
  try {
    on_gpu.wait(on_gpu.stream_of(stream));
  } catch (const Error&) {
    const std::lock_guard lock(m_mutex);
    throw_failure(); // what has ended the job came first
    throw;
  }
}

} // namespace reckon
