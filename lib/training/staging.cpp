// SPDX-License-Identifier: Apache-2.0
#include "training/staging.hpp"

#include "core/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

namespace reckon {
namespace {

Stretch common(Stretch a, Stretch b) {
  const std::uint64_t begin = std::max(a.offset_bytes, b.offset_bytes);
  const std::uint64_t end = std::min(a.offset_bytes + a.bytes, b.offset_bytes + b.bytes);
  return {begin, end > begin ? end - begin : 0};
}

} // namespace

std::vector<std::vector<std::uint32_t>> parts_of_tensors(std::span<const Staging::Place> tensors,
                                                         std::span<const Stretch> parts) {
  std::vector<std::uint32_t> order(parts.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, {}, [&](std::uint32_t p) { return parts[p].offset_bytes; });
  std::vector<std::vector<std::uint32_t>> of;
  for (const Staging::Place& place : tensors) {
    const Stretch& tensor = place.at;
    // The last that begins at or before it, if any, and all that follow until it ends.
    auto it = std::ranges::upper_bound(order, tensor.offset_bytes, {},
                                       [&](std::uint32_t p) { return parts[p].offset_bytes; });
    it -= it == order.begin() ? 0 : 1;
    std::vector<std::uint32_t>& mine = of.emplace_back();
    for (; it != order.end() && parts[*it].offset_bytes < tensor.offset_bytes + tensor.bytes;
         ++it) {
      if (common(tensor, parts[*it]).bytes > 0) {
        mine.push_back(*it);
      }
    }
  }
  return of;
}

Staging::Staging(GpuLibrary& gpus, int device, std::span<std::byte> memory,
                 std::vector<Place> tensors, std::vector<Stretch> parts, double factor)
    : m_gpus(gpus), m_device(device), m_memory(memory), m_tensors(std::move(tensors)),
      m_pieces(parts.size()), m_factor(factor),
      m_mapping(-1, parts.size() * sizeof(std::uint32_t), "words of sums"),
      m_words(reinterpret_cast<std::uint32_t*>(m_mapping.bytes().data()), parts.size()),
      m_gradient(m_tensors.size()), m_number(parts.size()), m_summed(parts.size()) {
  if (device < 0 || static_cast<std::size_t>(device) >= gpus.devices().size()) {
    fail(ErrorKind::input,
         fmt::format("there is no GPU number {}: there are {}", device, gpus.devices().size()));
  }
  m_parts_of = parts_of_tensors(m_tensors, parts);
  for (std::size_t t = 0; t < m_tensors.size(); ++t) {
    for (const std::uint32_t p : m_parts_of[t]) {
      m_pieces[p].push_back({t, common(m_tensors[t].at, parts[p])});
    }
  }
  m_gpus.load(device);
  m_registered = GpuRegistration(gpus, memory);
  m_registered_words = GpuRegistration(gpus, m_mapping.bytes());
  m_down = {gpus, gpus.make_stream(device)};
  m_up = {gpus, gpus.make_stream(device)};
  m_counter = {gpus, gpus.make_counter(device)};
  m_given = {gpus, gpus.make_event(device)};
  for (std::size_t t = 0; t < m_tensors.size(); ++t) {
    m_made.emplace_back(gpus, gpus.make_event(device));
  }
}

Staging::~Staging() {
  release();
  // What the streams still do uses our memory.
  static_cast<void>(m_gpus.synchronize(m_down.get()));
  static_cast<void>(m_gpus.synchronize(m_up.get()));
}

void Staging::begin() noexcept {
  for (std::atomic<std::byte*>& gradient : m_gradient) {
    gradient.store(nullptr, std::memory_order_relaxed); // lanes start later, by a lock
  }
  for (std::atomic<std::uint64_t>& number : m_number) {
    number.store(0, std::memory_order_relaxed);
  }
  const std::scoped_lock lock(m_up_mutex, m_down_mutex);
  // The memory is read until then; ready() says so if that fails.
  static_cast<void>(take(m_gpus.wait(m_down.get(), m_given.get()), "waiting for an event"));
  std::fill(m_summed.begin(), m_summed.end(), false);
  m_waited = false;
  ++m_step;
}

void Staging::ready(std::size_t tensor, std::byte* gradient, GpuStream stream) {
  const Place& place = m_tensors[tensor];
  const GpuStream down = m_down.get();
  const std::lock_guard lock(m_down_mutex);
  m_gradient[tensor].store(gradient, std::memory_order_relaxed); // published by the gate
  require(m_gpus.record(m_made[tensor].get(), stream), "recording an event");
  require(m_gpus.wait(down, m_made[tensor].get()), "waiting for an event");
  if (m_factor != 1) {
    require(
        m_gpus.scale(place.dtype, gradient, place.at.bytes / size_of(place.dtype), m_factor, down),
        "dividing a gradient");
  }
  for (const std::uint32_t p : m_parts_of[tensor]) {
    const auto piece = std::ranges::find(m_pieces[p], tensor, &Piece::tensor);
    const std::uint64_t offset = piece->at.offset_bytes;
    require(m_gpus.copy(&m_memory[offset], gradient + (offset - place.at.offset_bytes),
                        piece->at.bytes, down),
            "copying a gradient from the GPU");
    require(m_gpus.count(m_counter.get(), down), "counting a copy");
    m_number[p].store(++m_queued, std::memory_order_release);
  }
}

/// How many copies are over, unless somebody else looks or queues at the moment.
void Staging::look() noexcept {
  const std::unique_lock lock(m_down_mutex, std::try_to_lock);
  if (!lock) {
    return;
  }
  std::uint32_t times = 0;
  if (take(m_gpus.counted(m_counter.get(), times), "looking for copied gradients")) {
    const std::uint64_t before = m_copied.load(std::memory_order_relaxed);
    m_copied.store(before + (times - static_cast<std::uint32_t>(before)), // modulo 2^32
                   std::memory_order_release);
  }
}

bool Staging::arrived(std::uint32_t part) noexcept {
  const std::uint64_t number = m_number[part].load(std::memory_order_acquire);
  if (number > m_copied.load(std::memory_order_acquire)) {
    look();
  }
  return number <= m_copied.load(std::memory_order_acquire);
}

bool Staging::staged(std::uint32_t part) const {
  return std::ranges::any_of(m_pieces[part],
                             [&](const Piece& p) { return m_gradient[p.tensor] != nullptr; });
}

/// With m_up_mutex held.
bool Staging::upload(std::uint32_t part) noexcept {
  return std::ranges::all_of(m_pieces[part], [&](const Piece& piece) {
    std::byte* const gradient = m_gradient[piece.tensor];
    const std::uint64_t offset = piece.at.offset_bytes;
    return gradient == nullptr ||
           take(m_gpus.copy(gradient + (offset - m_tensors[piece.tensor].at.offset_bytes),
                            &m_memory[offset], piece.at.bytes, m_up.get()),
                "copying a sum to the GPU");
  });
}

void Staging::summed(std::uint32_t part) noexcept {
  const std::lock_guard lock(m_up_mutex);
  m_summed[part] = true;
  if (m_waited) { // the copy is queued, behind this word
    std::atomic_ref(m_words[part]).store(m_step, std::memory_order_release);
  } else if (!m_released) {
    static_cast<void>(upload(part)); // conduct() asks for the failure
  }
}

void Staging::follow(GpuStream stream) {
  const std::lock_guard lock(m_up_mutex);
  end_uploads(stream);
}

void Staging::wait(GpuStream stream) {
  const std::lock_guard lock(m_up_mutex);
  if (m_released) {
    fail(ErrorKind::operation, "the job has failed");
  }
  m_waited = true; // release() ends what is held from now on
  for (std::uint32_t p = 0; p < m_pieces.size(); ++p) {
    if (!m_summed[p] && staged(p)) {
      require(m_gpus.hold(m_up.get(), &m_words[p], m_step), "holding a stream");
      if (!upload(p)) {
        fail(ErrorKind::operation, failure());
      }
    }
  }
  end_uploads(stream);
}

/// With m_up_mutex held: `stream` goes on after the copies up.
void Staging::end_uploads(GpuStream stream) {
  require(m_gpus.record(m_given.get(), m_up.get()), "recording an event");
  require(m_gpus.wait(stream, m_given.get()), "waiting for an event");
}

void Staging::finish() {
  const std::lock_guard lock(m_up_mutex);
  if (!std::exchange(m_waited, true)) {
    end_uploads(m_up.get());
    require(m_gpus.synchronize(m_up.get()), "copying sums to the GPU");
  }
}

void Staging::release() noexcept {
  constexpr int k_nan = 0xFF; // every byte of it, in all types
  const std::lock_guard lock(m_up_mutex);
  m_released = true;
  if (m_waited) { // what comes down later would hide the NaNs; it waits for nothing but the program
    static_cast<void>(m_gpus.synchronize(m_down.get()));
  }
  for (std::uint32_t p = 0; m_waited && p < m_pieces.size(); ++p) {
    for (const Piece& piece : m_pieces[p]) {
      if (!m_summed[p] && m_gradient[piece.tensor] != nullptr) {
        std::memset(&m_memory[piece.at.offset_bytes], k_nan, piece.at.bytes);
      }
    }
    m_summed[p] = true;
    std::atomic_ref(m_words[p]).store(m_step, std::memory_order_release);
  }
}

/// Whether it succeeded; what failed first is kept.
bool Staging::take(GpuStatus status, const char* attempt) noexcept {
  if (status == 0) {
    return true;
  }
  const std::lock_guard lock(m_failure_mutex);
  if (m_failure.empty()) {
    m_failure = fmt::format("GPU {}: {}: {}", m_device, attempt, m_gpus.words(status));
  }
  return false;
}

void Staging::require(GpuStatus status, const char* attempt) {
  if (!take(status, attempt)) {
    fail(ErrorKind::operation, failure());
  }
}

std::string Staging::failure() const {
  const std::lock_guard lock(m_failure_mutex);
  return m_failure;
}

} // namespace reckon
