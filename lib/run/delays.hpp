// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schedule/schedule.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace reckon {

/// Serves the delays of one lane's program. Called by that lane's thread only; times are
/// monotonic_ns().
class Delays {
public:
  Delays() = default;
  Delays(const Delays&) = delete;
  Delays& operator=(const Delays&) = delete;
  virtual ~Delays() = default;

  /// Forgets the delays under way.
  virtual void reset() noexcept = 0;
  /// The delay with index `op` in the program may go on since `since_ns`.
  virtual void start(std::uint32_t op, std::int64_t since_ns) noexcept = 0;
  struct Over {
    std::uint32_t op = 0;
    std::int64_t end_ns = 0; ///< at any later call
  };
  /// A delay that is over by now, the first one that ended first; absent: all others still wait.
  [[nodiscard]] virtual std::optional<Over> next_over(std::int64_t now_ns) noexcept = 0;
  /// When to ask again; absent: no delay is under way.
  [[nodiscard]] virtual std::optional<std::int64_t>
  ask_again_ns(std::int64_t now_ns) const noexcept = 0;
  /// Asked before ask_again_ns(): a descriptor that becomes readable when another thread ends a
  /// delay after this; -1: only time ends them.
  [[nodiscard]] virtual int bell() noexcept { return -1; }
};

/// Makes the server of a program's delays; without it, or if it returns null, their time passes.
using MakeDelays = std::function<std::unique_ptr<Delays>(const LaneProgram& program)>;

/// Delays whose time passes without work.
class TimedDelays final : public Delays {
public:
  /// `program` must outlive this.
  explicit TimedDelays(const LaneProgram& program);
  void reset() noexcept override { m_ends.clear(); }
  void start(std::uint32_t op, std::int64_t since_ns) noexcept override;
  [[nodiscard]] std::optional<Over> next_over(std::int64_t now_ns) noexcept override;
  [[nodiscard]] std::optional<std::int64_t>
  ask_again_ns(std::int64_t now_ns) const noexcept override;

private:
  const LaneProgram& m_program;
  std::vector<std::pair<std::int64_t, std::uint32_t>> m_ends; ///< heap of (end, op)
};

} // namespace reckon
