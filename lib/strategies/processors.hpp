// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <span>

namespace reckon {

/// What one processor of a machine has to do: bytes that it writes to other ranks, and bytes that
/// it adds up.
struct ProcessorWork {
  double moved_bytes = 0, summed_bytes = 0;
};

/// Bytes per second of all processors together that are at work; infinite where it takes no time.
struct ProcessorRates {
  double moved, summed;
};

/// Seconds of the processor that is done last, by what it did.
struct ProcessorTimes {
  double moving_s = 0, summing_s = 0;
};

/// All begin together, and who is done leaves the memory to the others: as long as `busy` of them
/// are at work each gets its part of rates(busy). Without any work all is over at once.
[[nodiscard]] ProcessorTimes
processor_times(std::span<const ProcessorWork> work,
                const std::function<ProcessorRates(std::size_t busy)>& rates);

} // namespace reckon
