// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "probe/team.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <latch>
#include <thread>
#include <vector>

namespace reckon {

/// Keeps threads at work while something else is measured.
class Background {
public:
  /// Each of the threads on `cpus` calls work(rank, 0), work(rank, 1), ...; all have done so once
  /// when this returns. `work` must not throw. Throws Error when a thread cannot be bound.
  Background(const std::vector<int>& cpus,
             std::function<void(std::size_t rank, std::uint64_t index)> work);
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  /// Waits until the calls under way are done.
  ~Background();

private:
  Team m_team;
  std::function<void(std::size_t, std::uint64_t)> m_work;
  std::latch m_begun;
  std::atomic<bool> m_stop{false};
  std::jthread m_runner;
};

} // namespace reckon
