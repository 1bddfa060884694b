// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/file.hpp"
#include "run/delays.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace reckon {

/// Gradients that come to the lanes' memory and leave it by themselves, as those of a GPU do.
/// Called by lanes at once with each other and with their owner.
class PartsElsewhere {
public:
  PartsElsewhere() = default;
  PartsElsewhere(const PartsElsewhere&) = delete;
  PartsElsewhere& operator=(const PartsElsewhere&) = delete;
  virtual ~PartsElsewhere() = default;

  /// Whether the gradient of a part whose gate is open is in the lanes' memory.
  [[nodiscard]] virtual bool arrived(std::uint32_t part) noexcept = 0;
  /// The sum of the part is in the lanes' memory, where nobody writes it any more in this step.
  virtual void summed(std::uint32_t part) noexcept = 0;
};

/// Holds a rank's lanes back until its gradients are ready. Of a program with passes of parts
/// (Passes::of_parts) the first delay of a part ends when all tensors with bytes in it are ready,
/// the second one says that its sum is there. The first ones of a lane follow one another, so a
/// gate that opens early lets the lane pass only when all gates before it are open.
class Gates {
public:
  /// `parts_of`: by tensor, the numbers of the parts with bytes of it.
  explicit Gates(std::vector<std::vector<std::uint32_t>> parts_of);
  Gates(const Gates&) = delete;
  Gates& operator=(const Gates&) = delete;

  /// Number of tensors.
  [[nodiscard]] std::size_t size() const noexcept { return m_parts_of.size(); }
  /// Closes all gates. Called while no lane is at work.
  void close() noexcept;
  /// From the next step on parts come from there and go back; it must outlive this. Called while no
  /// lane is at work.
  void use(PartsElsewhere& elsewhere) noexcept { m_elsewhere = &elsewhere; }
  /// Takes tensors first .. first + count - 1, which exist, for the caller, who will open them.
  /// False, without effect, if one of them is taken already. Any thread.
  [[nodiscard]] bool take(std::size_t first, std::size_t count) noexcept;
  /// The tensors, which the caller has taken, are ready: opens the gates of parts that miss none,
  /// and wakes the lanes. The caller's earlier writes are visible to them. Any thread.
  void open(std::size_t first, std::size_t count) noexcept;
  /// Tensors that nobody has opened since close().
  [[nodiscard]] std::size_t closed() const noexcept { return m_closed; }
  /// Whether the sums of tensors first .. first + count - 1 are in the lanes' memory, after at most
  /// `limit`; until all gates are closed again. Any thread.
  [[nodiscard]] bool summed_within(std::size_t first, std::size_t count,
                                   std::chrono::nanoseconds limit);
  /// When a lane last went through a gate: monotonic_ns().
  [[nodiscard]] std::int64_t passed_ns() const noexcept { return m_passed_ns; }

  /// Serves the delays of one lane's program. Call it for all lanes before any gate opens; the
  /// result must not outlive this. Throws Error{operation} when the system has no descriptors left.
  [[nodiscard]] std::unique_ptr<Delays> delays_of(const LaneProgram& program);

private:
  class LaneDelays;
  void summed(std::uint32_t part) noexcept;

  std::vector<std::vector<std::uint32_t>> m_parts_of; ///< by tensor
  std::vector<std::uint32_t> m_tensors_in;            ///< by part
  std::vector<std::atomic<bool>> m_taken;             ///< by tensor
  std::vector<std::atomic<std::uint32_t>> m_missing;  ///< by part: its tensors that are not ready
  std::vector<std::atomic<bool>> m_summed;            ///< by part
  std::atomic<std::size_t> m_closed{0};
  std::atomic<std::int64_t> m_passed_ns{0};
  PartsElsewhere* m_elsewhere = nullptr;
  std::mutex m_mutex; ///< of those that wait for sums, and of lanes while there are some
  std::condition_variable m_changed;
  std::atomic<int> m_waiting{0};
  std::vector<Fd> m_bells; ///< one a lane: readable when a gate opened since its last look
};

} // namespace reckon
