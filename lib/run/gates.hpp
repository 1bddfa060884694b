// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/file.hpp"
#include "run/delays.hpp"

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

namespace reckon {

/// What holds a rank's lanes back until its gradients are there: the n-th delay of every lane's
/// program ends when gate n is open, delays after these at once. A program of a plan with passes
/// has these delays in gradient order, each after the one before, so that a gate that is opened
/// early lets pass when all before it are open.
class Gates {
public:
  explicit Gates(std::size_t count);
  Gates(const Gates&) = delete;
  Gates& operator=(const Gates&) = delete;

  [[nodiscard]] std::size_t size() const noexcept { return m_gates.size(); }
  /// All of them. Called while no lane is at work.
  void close() noexcept;
  /// Takes gates first .. first + count - 1, which exist, for the caller, who will open them:
  /// false, and nothing is taken, where one of them is taken already. Any thread.
  [[nodiscard]] bool take(std::size_t first, std::size_t count) noexcept;
  /// Opens gates that the caller has taken, and wakes the lanes: what it wrote before is visible to
  /// them. Any thread.
  void open(std::size_t first, std::size_t count) noexcept;

  /// Serves the delays of one lane's program. To be called for all lanes before any gate is opened;
  /// must not outlive this. Throws Error{operation} when the system has no descriptors left.
  [[nodiscard]] std::unique_ptr<Delays> delays_of(const LaneProgram& program);

private:
  class LaneDelays;
  enum State : char { k_closed, k_taken, k_open };

  std::vector<std::atomic<char>> m_gates;
  std::vector<Fd> m_bells; ///< a lane's each: readable when a gate was opened since it looked
};

} // namespace reckon
