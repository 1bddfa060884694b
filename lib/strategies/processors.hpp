// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <span>

namespace reckon {

/// The work of one processor of a machine: bytes that it writes to other ranks, and bytes that it
/// adds up.
struct ProcessorWork {
  double moved_bytes = 0, summed_bytes = 0;
};

/// Bytes per second of all working processors together; infinite where it takes no time.
struct ProcessorRates {
  double moved, summed;
};

/// Seconds until the last processor is done, by kind of work.
struct ProcessorTimes {
  double moving_s = 0, summing_s = 0;
};

/// All begin together, and a processor that is done leaves the memory to the others: as long as
/// `busy` of them work each gets its part of rates(busy). Without any work the time is 0.
[[nodiscard]] ProcessorTimes
processor_times(std::span<const ProcessorWork> work,
                const std::function<ProcessorRates(std::size_t busy)>& rates);

} // namespace reckon
