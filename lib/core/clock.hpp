// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/units.hpp"

#include <cstdint>
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

/// Whole nanoseconds for arithmetic with deadlines: at most 2^61, 73 years, also for infinity and
/// what is no number.
[[nodiscard]] constexpr std::int64_t to_ns(Seconds time) noexcept {
  constexpr std::int64_t k_most = std::int64_t{1} << 61U;
  const double ns = time.count() * 1e9;
  return ns < static_cast<double>(k_most) ? static_cast<std::int64_t>(ns) : k_most;
}

/// monotonic_ns() after that time.
[[nodiscard]] inline std::int64_t deadline_after(Seconds limit) noexcept {
  return monotonic_ns() + to_ns(limit);
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
