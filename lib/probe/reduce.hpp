// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "probe/campaign.hpp"
#include "probe/workbench.hpp"

namespace reckon {

inline constexpr const char* k_reduce_sum = "reduce_sum";
inline constexpr const char* k_sum_and_send = "sum_and_send";
inline constexpr const char* k_optimizer_step = "optimizer_step";

/// How fast gradients are added up (BytePS figure 9a): for fp32, fp16 and bf16, by number of
/// threads, with 2, 4 and 8 operands (`sources`) in parts of 256 KiB, 1 MiB and 4 MiB (`bytes`)
/// from cold memory. The first operand is also the destination, as on a server that adds what
/// arrives to what it has. The rate is that of all threads together and counts what arrives: bytes
/// of one operand times (sources - 1).
[[nodiscard]] Campaign reduce_campaign(Workbench& bench);

/// What a server without a gradient of its own does with a part (PHub's aggregator): operands from
/// cold memory are summed into a slot of a window, in fp32, and the sum is read at once, as a
/// transport does that sends it. With stores through the caches and around them (`operation`), one
/// thread and all, 2 and 8 operands, parts of 32 KiB to 4 MiB. The rate counts as reduce_sum.
[[nodiscard]] Campaign stores_campaign(Workbench& bench);

/// How fast parameters are updated (BytePS figure 9b): SGD, momentum, RMSProp and Adam in fp32, by
/// number of threads, in parts of 1 MiB from cold memory. The rate counts bytes of parameters of
/// all threads together; gradient and state come on top.
[[nodiscard]] Campaign optimizer_campaign(Workbench& bench);

} // namespace reckon
