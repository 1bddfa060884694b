// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "documents/report.hpp"
#include "launch/rendezvous.hpp"

#include <optional>

namespace reckon {

/// Measures the profile's copies and sums in pieces of 1 MiB from memory (Plan::machine_rates)
/// again, before and after a run whose ranks share one machine: a copy by rank 0 alone, then sums
/// by the first MachineRates::threads ranks at once, each on the processor `cpu` of its first lane
/// (-1: any). Every rank calls it and gets the result. Takes about half a second, and meanwhile at
/// most 512 MiB of rank 0 and as much of the others together. Throws as Rendezvous::all_gather().
[[nodiscard]] MachineNow measure_machine(Rendezvous& rendezvous, const MachineRates& rates, int cpu,
                                         Seconds limit);

/// The mean rates of a copy and a sum over both times.
[[nodiscard]] MachineNow mean_of(const MachineNow& before, const MachineNow& after);

/// Fills in the consequences of the measured rates: the prediction at these rates, and the measured
/// time's difference from it. Writes go at the rate of copies.
void compare_with_machine(MachineNow& now, const MachineRates& rates, const Prediction& prediction,
                          double measured_seconds);

} // namespace reckon
