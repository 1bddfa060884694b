// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/units.hpp"

#include <ctime>
#include <string>

namespace reckon {

/// Time since some fixed moment. Abstract so that tests need not sleep.
class Clock {
public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;
  [[nodiscard]] virtual Seconds now() const noexcept = 0;
};

/// CLOCK_MONOTONIC_RAW in nanoseconds: no slewing during a measurement. The same moment reads the
/// same in every process of one machine.
[[nodiscard]] inline std::int64_t monotonic_ns() noexcept {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC_RAW, &t);
  return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

/// The time of day for people to read: "2026-11-23T15:30:00Z".
[[nodiscard]] std::string utc_now();

class MonotonicClock final : public Clock {
public:
  [[nodiscard]] Seconds now() const noexcept override {
    return Seconds(static_cast<double>(monotonic_ns()) * 1e-9);
  }
};

} // namespace reckon
