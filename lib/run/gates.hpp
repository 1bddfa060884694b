// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/file.hpp"
#include "run/delays.hpp"

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

namespace reckon {

/// Holds a rank's lanes back until its gradients are ready: the n-th delay of every lane's program
/// ends when gate n is open; later delays end at once. The program of a plan with passes has these
/// delays in gradient order, each after the one before, so a gate that opens early lets lanes pass
/// only when all gates before it are open.
class Gates {
public:
  explicit Gates(std::size_t count);
  Gates(const Gates&) = delete;
  Gates& operator=(const Gates&) = delete;

  [[nodiscard]] std::size_t size() const noexcept { return m_gates.size(); }
  /// Closes all gates. Called while no lane is at work.
  void close() noexcept;
  /// Takes gates first .. first + count - 1, which exist, for the caller, who will open them.
  /// False, without effect, if one of them is taken already. Any thread.
  [[nodiscard]] bool take(std::size_t first, std::size_t count) noexcept;
  /// Opens gates that the caller has taken, and wakes the lanes: the caller's earlier writes are
  /// visible to them. Any thread.
  void open(std::size_t first, std::size_t count) noexcept;

  /// Serves the delays of one lane's program. Call it for all lanes before any gate opens; the
  /// result must not outlive this. Throws Error{operation} when the system has no descriptors left.
  [[nodiscard]] std::unique_ptr<Delays> delays_of(const LaneProgram& program);

private:
  class LaneDelays;
  enum State : char { k_closed, k_taken, k_open };

  std::vector<std::atomic<char>> m_gates;
  std::vector<Fd> m_bells; ///< one a lane: readable when a gate opened since its last look
};

} // namespace reckon
