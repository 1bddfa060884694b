// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schedule/schedule.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

/// Only for the MSCCL export.
namespace reckon::msccl {

enum class StepKind : std::uint8_t {
  send,        ///< of a part of the gradient
  receive,     ///< into a part of the gradient
  receive_sum, ///< a part of the gradient becomes its sum with the arriving data
};
/// The letters in the XML: "s", "r", "rrc".
[[nodiscard]] std::string_view name_of(StepKind kind);

struct Step {
  StepKind kind = StepKind::send;
  std::uint32_t part = 0; ///< of the plan
};

/// The program of one lane of one rank: a thread block, which makes its steps one after another.
struct ThreadBlock {
  int send_peer = -1, receive_peer = -1; ///< ranks; -1: no rank
  std::vector<Step> steps;
};

/// [rank][lane], empty lanes too. The order of the steps works if each connection holds one part
/// that is sent and not received. Throws Error{input} when a lane talks to several ranks, when sums
/// have more than two operands or are elsewhere than in the gradient, or when no order works.
[[nodiscard]] std::vector<std::vector<ThreadBlock>> thread_blocks(const Schedule& schedule);

} // namespace reckon::msccl
