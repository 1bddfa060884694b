// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/clock.hpp"
#include "probe/guard.hpp"

#include <deque>

namespace reckon::test {

/// Stands still until it is told to go on.
class FakeClock final : public Clock {
public:
  [[nodiscard]] Seconds now() const noexcept override { return m_now; }
  void advance(Seconds by) { m_now += by; }

private:
  Seconds m_now{100}; // not 0: a start that is taken for granted shows
};

/// Hands out the disturbances it was given, then none.
class FakeGuard final : public Guard {
public:
  void begin() override { ++begun; }
  [[nodiscard]] Disturbance end() override {
    if (disturbances.empty()) {
      return {};
    }
    const Disturbance d = disturbances.front();
    disturbances.pop_front();
    return d;
  }
  bool wait_for_quiet(Seconds limit) override {
    longest_wait = std::max(longest_wait, limit);
    ++waits;
    return true;
  }
  std::deque<Disturbance> disturbances;
  Seconds longest_wait{0};
  int begun = 0;
  int waits = 0;
};

} // namespace reckon::test
