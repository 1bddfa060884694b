// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/clock.hpp"
#include "core/units.hpp"
#include "movers/mover.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace reckon {

/// A FakeNetwork's treatment of a write.
enum class FakeFault : std::uint8_t {
  none,
  lost,      ///< the sender is told `sent`; nothing ever arrives
  corrupted, ///< one bit of the payload's middle byte flips on the way (a write of 0 bytes is left
             ///< alone)
  failed,    ///< the sender is told `failed`; nothing arrives
};

/// A write as posted, with its times in virtual time.
struct FakeWrite {
  int from = 0, to = 0, lane = 0;
  Slice source, destination;
  std::uint64_t bytes = 0;
  std::uint32_t tag = 0;
  std::uint64_t id = 0;
  Seconds posted{0}, finished{0};
  FakeFault fault = FakeFault::none;
};

/// All ranks of a job in one process, joined by a network that takes virtual time. For tests.
///
/// Each rank has one port out and one port in, which work at once (full duplex) and carry one write
/// at a time, first posted first served: a write starts when both its ports are free. The payload
/// is read and written, and both completions appear, at its finish and not before, so a program
/// that touches a source or a destination too early gets wrong data here as on a real network.
/// Lane.wait() moves the clock to the next event, or by its whole limit if that comes first; poll()
/// never moves it. With one thread everything is deterministic. Several threads are safe too (one
/// lock), but then their order of posting decides the times. Must outlive its movers.
class FakeNetwork {
public:
  using Cost = std::function<Seconds(int from, int to, std::uint64_t bytes)>;
  using Faults = std::function<FakeFault(const FakeWrite&)>;

  /// `cost` is the time that a write keeps its two ports; >= 0. It is called with the network
  /// locked.
  FakeNetwork(int ranks, Cost cost, std::size_t max_in_flight = 64,
              std::uint64_t max_write_bytes = UINT64_MAX);
  ~FakeNetwork();
  FakeNetwork(const FakeNetwork&) = delete;
  FakeNetwork& operator=(const FakeNetwork&) = delete;

  /// The mover of one rank; once for each. Its transport name is "fake".
  [[nodiscard]] std::unique_ptr<Mover> make_mover(int rank);
  /// Asked at each write, in posting order.
  void set_faults(Faults faults);
  /// Writes carry checksums of their bytes: Mover::add_checksums(), of all ranks at once.
  void add_checksums() noexcept;
  /// All ranks are one thread: waiting then yields the processor to nobody, which on a busy machine
  /// costs milliseconds each time.
  void used_from_one_thread() noexcept;
  /// Virtual time since the network was made.
  [[nodiscard]] const Clock& clock() const noexcept;
  /// Every write accepted so far, in posting order.
  [[nodiscard]] std::vector<FakeWrite> calls() const;
  /// Finishes the next write under way; false without one.
  bool step();

private:
  friend class FakeMover;
  friend class FakeLane;
  struct State;
  std::unique_ptr<State> m_state;
};

} // namespace reckon
