// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "movers/mover.hpp"
#include "run/values.hpp"
#include "schedule/schedule.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace reckon {

/// The buffers of one rank, in its schedule's order: as the lanes use them, and as the processor
/// fills and checks them. The mover owns them, and outlives this.
class RankMemory {
public:
  /// `gradient`: the place for RankProgram::gradient_buffer, of its size, which outlives this;
  /// empty, or out of the mover's reach: in the mover's memory.
  RankMemory(Mover& mover, const RankProgram& program, std::span<std::byte> gradient = {});

  [[nodiscard]] std::span<const std::span<std::byte>> buffers() const { return m_buffers; }
  [[nodiscard]] Views views() const { return m_views; }
  /// Brings the processor's writes to the lanes' memory.
  void push() const;
  /// Brings the lanes' results in the first `count` buffers to the processor.
  void pull(std::size_t count) const;

  /// Moves the pages that a lane of `program` uses to the NUMA node of its processor (`cpus`; -1:
  /// any), before a transport registers them. Returns remarks on the lanes' places, `wanted` by the
  /// plan (by lane; -1: any): empty where all processors and all memory are alike.
  [[nodiscard]] std::string settle(const RankProgram& program, std::span<const int> cpus,
                                   std::span<const int> wanted) const;

private:
  Mover& m_mover;
  std::vector<std::span<std::byte>> m_buffers, m_views;
};

} // namespace reckon
