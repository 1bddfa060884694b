// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "run/job.hpp"

#include <cstddef>
#include <string>

namespace reckon {

/// The checker's verdict on all schedules of a job.
struct Proof {
  std::size_t ops = 0;
  std::string fault; ///< the first fault, with a remedy; empty: no fault
};
/// `file`: the plan's.
[[nodiscard]] Proof proof_of(const JobSchedules& schedules, const Plan& plan,
                             const std::string& file);

/// The same as Error{input}: a plan that cannot work never starts. Returns the number of ops.
std::size_t prove(const JobSchedules& schedules, const Plan& plan, const std::string& file);

/// Throws Error{unavailable} where all ranks of the plan on this machine need more memory than it
/// has free. Call it before building the schedule, which alone can need more. `check_only`: a proof
/// needs no buffers. `checkpoints`: the run saves or resumes.
void check_memory(const Plan& plan, bool check_only, bool checkpoints);

/// Throws Error{unavailable} where the transport inside machines keeps a rank's buffers in the
/// memory of a GPU and the schedule moves bytes between them and another machine: the network
/// reaches only the processors' memories. `file`: the plan's.
void check_gpu_memory(const Schedule& schedule, const Plan& plan, const RunOptions& options,
                      const std::string& file);

/// Throws Error{input} for a plan that sums in place over a transport without shared memory: a plan
/// that was changed by hand. `file`: the plan's.
void check_in_place(const Plan& plan, const std::string& file);

/// Throws Error{input} where a launcher has started another number of ranks than the plan is for,
/// with how many on which machine it needs. `file`: the plan's.
void check_rank_count(const Plan& plan, const std::string& file, int started);

/// Where the plan's ranks share the one machine that its profile was measured on, and that has
/// other processors than `here`: "its profile is of 'bigbox' (Xeon, 56 cores), this is 'vm' (EPYC,
/// 2 cores)". Else empty.
[[nodiscard]] std::string other_machine(const Plan& plan, const MeasuredMachine& here);
/// This machine, as far as this process may use it.
[[nodiscard]] MeasuredMachine this_machine();

/// Throws Error{unavailable} where the plan's transport moves the memory of GPUs and none are here.
void check_gpus(const Plan& plan, const std::string& file);

/// Throws Error{unavailable} where this machine lacks the transport, with the reason and the
/// transports that it has.
void check_transport(const std::string& wanted);

/// `reckon run --list`: this machine's transports, and the missing ones with reasons, as text or as
/// JSON.
[[nodiscard]] std::string transports_text(bool json);

} // namespace reckon
