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

/// The buffers of one rank, in its schedule's order: where its lanes work, and where the processor
/// fills and checks them. The mover owns them, and outlives this.
class RankMemory {
public:
  /// `gradient`: where the first buffer is to lie, which has its size and outlives this; empty, or
  /// where the mover cannot reach that: in memory of the mover's.
  RankMemory(Mover& mover, std::span<const std::uint64_t> buffer_bytes,
             std::span<std::byte> gradient = {});

  [[nodiscard]] std::span<const std::span<std::byte>> buffers() const { return m_buffers; }
  [[nodiscard]] Views views() const { return m_views; }
  /// Brings what the processor wrote to where the lanes work.
  void push() const;
  /// Brings what the lanes made of the first `count` buffers to where the processor sees it.
  void pull(std::size_t count) const;

  /// Brings the pages that a lane of `program` works in to the NUMA node of its processor (`cpus`;
  /// -1: any), before a transport registers them. Returns what is worth saying of the lanes'
  /// places, `wanted` by the plan (by lane; -1: any): empty where all processors and all memory are
  /// alike.
  [[nodiscard]] std::string settle(const RankProgram& program, std::span<const int> cpus,
                                   std::span<const int> wanted) const;

private:
  Mover& m_mover;
  std::vector<std::span<std::byte>> m_buffers, m_views;
};

} // namespace reckon
