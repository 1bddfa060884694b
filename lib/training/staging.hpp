// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/dtype.hpp"
#include "movers/gpu.hpp"
#include "movers/handle.hpp"
#include "run/gates.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace reckon {

/// A stretch of a rank's gradient memory.
struct Stretch {
  std::uint64_t offset_bytes = 0, bytes = 0;
};

/// Gradients on one GPU whose parts travel through the memory of a rank. Each part of a tensor is
/// copied there by itself when the program's stream has made the gradient, and may travel as soon
/// as it has arrived; each sum is copied back as soon as it is there. The program's stream waits
/// for the sums, not its processor.
///
/// Nothing that the network waits for is queued behind anything that waits for the network: a
/// stream is held for sums (GpuLibrary::hold()) only when all gradients of the step have been
/// queued.
///
/// ready(), follow(), wait() and finish() are of the owner, who may call ready() and follow() from
/// several threads; lanes call arrived() and summed() meanwhile. They throw Error{operation} where
/// a call of the GPU's library fails, which ends the job: failure() then has the text for the
/// others.
class Staging final : public PartsElsewhere {
public:
  struct Place {
    Stretch at;
    DType dtype = DType::fp32;
  };
  /// `memory`: of the lanes, which is registered with the GPU until this ends. Gradients are
  /// multiplied by `factor` before they travel. Throws Error where the GPU cannot do all that.
  Staging(GpuLibrary& gpus, int device, std::span<std::byte> memory, std::vector<Place> tensors,
          std::vector<Stretch> parts, double factor);
  ~Staging() override;

  /// Begins a step, when the one before is over.
  void begin() noexcept;
  /// `gradient`, in the GPU's memory, is what the work queued in `stream` so far makes of tensor
  /// number `tensor`: once in a step. It gets the sum, and must stay until wait() or finish().
  void ready(std::size_t tensor, std::byte* gradient, GpuStream stream);
  [[nodiscard]] bool arrived(std::uint32_t part) noexcept override;
  void summed(std::uint32_t part) noexcept override;
  /// Later work in `stream` sees the sums that summed() has told of in this step.
  void follow(GpuStream stream);
  /// Once in a step, when all its tensors are ready: later work in `stream` sees the sums. If the
  /// job fails it sees NaNs in their place, where they were not there yet.
  void wait(GpuStream stream);
  /// Returns when all sums are in the GPU's memory, after the lanes have finished.
  void finish();
  /// The job has failed: whoever waits goes on. Called while no lane is at work; any number of
  /// times.
  void release() noexcept;
  /// A stream of the GPU that the program has made.
  [[nodiscard]] GpuStream stream_of(void* handle) const { return {m_device, handle}; }
  /// What failed here; empty: nothing.
  [[nodiscard]] std::string failure() const;

private:
  struct Piece {
    std::size_t tensor = 0;
    Stretch at;
  };
  [[nodiscard]] bool staged(std::uint32_t part) const;
  [[nodiscard]] bool upload(std::uint32_t part) noexcept;
  void look() noexcept;
  [[nodiscard]] bool take(GpuStatus status, const char* attempt) noexcept;
  void require(GpuStatus status, const char* attempt);
  void end_uploads(GpuStream stream);

  GpuLibrary& m_gpus;
  int m_device;
  std::span<std::byte> m_memory;
  std::vector<Place> m_tensors;
  std::vector<std::vector<std::uint32_t>> m_parts_of; ///< by tensor
  std::vector<std::vector<Piece>> m_pieces;           ///< by part
  double m_factor;
  Mapping m_mapping;
  std::span<std::uint32_t> m_words; ///< by part: the last step in which its sum was there
  GpuRegistration m_registered, m_registered_words;
  GpuOwned<GpuStream> m_down, m_up;
  GpuOwned<GpuCounter> m_counter;                  ///< of copies down
  std::vector<GpuOwned<GpuEvent>> m_made;          ///< by tensor: the program's stream has made it
  GpuOwned<GpuEvent> m_given;                      ///< all sums of the step are in the GPU's memory
  std::vector<std::atomic<std::byte*>> m_gradient; ///< by tensor; null: not of the GPU in this step
  std::vector<std::atomic<std::uint64_t>> m_number; ///< by part: its last copy; 0: none
  std::atomic<std::uint64_t> m_copied{0};           ///< copies that are known to be over

  std::mutex m_down_mutex;    ///< guards the stream, the counter and what follows
  std::uint64_t m_queued = 0; ///< copies
  std::mutex m_up_mutex;      ///< guards the stream and what follows
  std::vector<bool> m_summed; ///< by part
  std::uint32_t m_step = 0;
  bool m_waited = false; ///< the rest of this step's sums is queued, held by m_words
  bool m_released = false;

  mutable std::mutex m_failure_mutex;
  std::string m_failure;
};

/// By tensor: the numbers of the parts with bytes of it, in the order in which they lie there.
[[nodiscard]] std::vector<std::vector<std::uint32_t>>
parts_of_tensors(std::span<const Staging::Place> tensors, std::span<const Stretch> parts);

} // namespace reckon
