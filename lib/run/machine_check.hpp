// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "documents/report.hpp"
#include "launch/rendezvous.hpp"

#include <optional>

namespace reckon {

/// Measures again, before and after a run whose ranks share one machine, what the profile has of
/// copies and sums in memory that is in no cache (Plan::machine_rates): copies, then sums, by the
/// first MachineRates::threads ranks at once, each on the processor `cpu` of its first lane (-1:
/// wherever the system puts it). Every rank calls it and gets the result. Takes about 0.3 s, and
/// 256 MiB of all ranks together meanwhile (16 MiB of each of more than 16). Throws as
/// Rendezvous::all_gather().
[[nodiscard]] MachineNow measure_machine(Rendezvous& rendezvous, const MachineRates& rates, int cpu,
                                         Seconds limit);

/// The mean rates of a copy and a sum over both times.
[[nodiscard]] MachineNow mean_of(const MachineNow& before, const MachineNow& after);

/// Fills in the consequences of the measured rates: the prediction at these rates, and the measured
/// time's difference from it. Writes go at the rate of copies.
void compare_with_machine(MachineNow& now, const MachineRates& rates, const Prediction& prediction,
                          double measured_seconds);

} // namespace reckon
