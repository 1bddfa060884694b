// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schedule/schedule.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

/// Of the MSCCL export only.
namespace reckon::msccl {

enum class StepKind : std::uint8_t {
  send,        ///< of a part of the gradient
  receive,     ///< into a part of the gradient
  receive_sum, ///< a part of the gradient becomes its sum with what comes
};
/// As it stands in the XML: "s", "r", "rrc".
[[nodiscard]] std::string_view name_of(StepKind kind);

struct Step {
  StepKind kind = StepKind::send;
  std::uint32_t part = 0; ///< of the plan
};

/// What one lane of one rank does: a thread block, which makes its steps one after another.
struct ThreadBlock {
  int send_peer = -1, receive_peer = -1; ///< ranks; -1: none
  std::vector<Step> steps;
};

/// [rank][lane], empty lanes too. The steps stand in an order in which they can be made one after
/// another while each connection holds one part that is sent and not received. Throws Error{input}
/// when a lane talks to several ranks, when sums are of more than two operands or elsewhere than in
/// the gradient, or when there is no such order.
[[nodiscard]] std::vector<std::vector<ThreadBlock>> thread_blocks(const Schedule& schedule);

} // namespace reckon::msccl
