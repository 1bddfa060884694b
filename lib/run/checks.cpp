// SPDX-License-Identifier: Apache-2.0
#include "run/checks.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/json.hpp"
#include "core/memory.hpp"
#include "core/name_ranges.hpp"
#include "core/processors.hpp"
#include "core/units.hpp"
#include "documents/own_machines.hpp"
#include "launch/sockets.hpp"
#include "movers/mover.hpp"
#include "run/transports.hpp"
#include "schedule/checker.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace reckon {
namespace {

/// How to start a plan's ranks: "8 ranks", on several machines with several each "10 ranks, 2 on
/// each of w0-3, 1 on s0".
std::string ranks_by_machine(const Plan& plan) {
  std::string text = fmt::format("{} ranks", plan.ranks.size());
  if (machines_of_ranks(plan).empty()) {
    return text;
  }
  std::map<std::string, int> here;
  std::vector<std::string> machines;
  for (const PlanRank& rank : plan.ranks) {
    if (++here[rank.machine_name()] == 1) {
      machines.push_back(rank.machine_name());
    }
  }
  std::vector<int> counts; // in the order in which machines have them
  for (const std::string& machine : machines) {
    if (std::count(counts.begin(), counts.end(), here[machine]) == 0) {
      counts.push_back(here[machine]);
    }
  }
  for (const int count : counts) {
    std::vector<std::string> alike;
    std::copy_if(machines.begin(), machines.end(), std::back_inserter(alike),
                 [&](const std::string& machine) { return here[machine] == count; });
    text += fmt::format(", {} on {}{}", count, alike.size() == 1 ? "" : "each of ",
                        fmt::join(name_ranges(alike), ", "));
  }
  return text;
}

/// That of GPUs too; `why_not` as available_transports() has it.
std::vector<std::string> transports_here(std::vector<std::string>& why_not) {
  std::vector<std::string> names = available_transports(&why_not);
  if (const std::string gpus = gpu_transport(&why_not); !gpus.empty()) {
    names.push_back(gpus);
  }
  return names;
}

} // namespace

Proof proof_of(const JobSchedules& schedules, const Plan& plan, const std::string& file) {
  Proof proof;
  for (const Schedule* schedule :
       {&schedules.usual, schedules.saving ? &*schedules.saving : nullptr,
        schedules.restoring ? &*schedules.restoring : nullptr}) {
    if (schedule == nullptr) {
      continue;
    }
    const CheckResult result = check(*schedule);
    proof.ops += result.ops;
    if (!result.ok()) {
      proof.fault =
          fmt::format("{}: the plan's schedule is wrong: {}; {}", file, result.faults.front(),
                      plan.one_queue ? "plan with --queues client" : "plan again");
      break;
    }
  }
  return proof;
}

std::size_t prove(const JobSchedules& schedules, const Plan& plan, const std::string& file) {
  const Proof proof = proof_of(schedules, plan, file);
  if (!proof.fault.empty()) {
    fail(ErrorKind::input, proof.fault);
  }
  return proof.ops;
}

void check_memory(const Plan& plan, bool check_only, bool checkpoints) {
  double workers = 0, buffers = 0;
  for (const PlanRank& rank : plan.ranks) {
    workers += rank.worker ? 1 : 0;
    buffers += static_cast<double>((rank.worker ? plan.gradient_bytes : 0));
    if (plan.asynchronous) {
      buffers += 3 * static_cast<double>(rank.worker ? plan.gradient_bytes : 0) +
                 static_cast<double>(rank.assigned_bytes);
    } else if (plan.update) {
      const auto held =
          static_cast<double>(rank.worker ? plan.gradient_bytes : rank.assigned_bytes);
      const auto states = static_cast<double>(state_arrays(plan.update->optimizer));
      // What is held, the replica that it is verified with, and both sides' states.
      buffers += 2 * held * (1 + states);
    }
  }
  if (plan.strategy == "ring") {
    buffers *= 2; // each rank receives into slots, which are no more than that
  } else if (!plan.sums_in_place) {
    const auto slots =
        static_cast<double>(std::min<std::uint64_t>(plan.window_parts, plan.parts.size()));
    buffers += workers * static_cast<double>(plan.ranks.size()) * slots *
               static_cast<double>(plan.part_bytes);
  }
  double schedules = 1;
  if (checkpoints &&
      plan.update) { // a snapshot of everything, and the schedules that save and restore
    buffers += static_cast<double>(plan.gradient_bytes) *
               static_cast<double>(1 + state_arrays(plan.update->optimizer));
    schedules = 3;
  }
  constexpr double k_ops_per_part = 4, k_op_bytes = 700; // as built and while it is proved
  const double needed = (check_only ? 0 : buffers) + static_cast<double>(plan.parts.size()) *
                                                         workers * schedules * k_ops_per_part *
                                                         k_op_bytes;
  const auto available = static_cast<double>(available_memory_bytes());
  if (needed > available) {
    fail(ErrorKind::unavailable,
         fmt::format("the {} ranks of this plan need {} on this machine and {} are free; plan with "
                     "larger parts, fewer workers or a smaller workload",
                     plan.ranks.size(), to_text(Bytes(static_cast<std::uint64_t>(needed))),
                     to_text(Bytes(static_cast<std::uint64_t>(available)))));
  }
}

void check_gpu_memory(const Schedule& schedule, const Plan& plan, const RunOptions& options,
                      const std::string& file) {
  if (options.inside_transport != "cuda") {
    return;
  }
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    if (plan.ranks[rank].endpoint_kind != "gpu") {
      continue;
    }
    for (const LaneProgram& lane : schedule.ranks[rank].lanes) {
      for (const Op& op : lane.ops()) {
        if ((op.kind == OpKind::write || op.kind == OpKind::await) &&
            options.machines[op.peer] != options.machines[rank]) {
          fail(ErrorKind::unavailable,
               fmt::format("{}: the plan moves bytes between {} and {}, and transport {} does not "
                           "reach the memory of a GPU; plan with --gpu-direct=no, by way of the "
                           "processors' memories, or keep the gradients there with --transport "
                           "inside=host",
                           file, plan.ranks[rank].place_name(), plan.ranks[op.peer].place_name(),
                           options.transport));
        }
      }
    }
  }
}

void check_gpus(const Plan& plan, const std::string& file) {
  if (plan.transport != "cuda") {
    return;
  }
  std::set<std::tuple<std::string, std::optional<std::uint64_t>, std::string>> gpus;
  for (const PlanRank& rank : plan.ranks) {
    if (rank.endpoint_kind == "gpu") {
      gpus.emplace(rank.machine, rank.machine_number, rank.endpoint);
    }
  }
  std::vector<std::string> why_not;
  if (!gpus.empty() && gpu_transport(&why_not).empty()) {
    fail(ErrorKind::unavailable,
         fmt::format("{}: the plan needs {}, and this machine has none ({}); with --transport host "
                     "its ranks sum in the processors' memory instead",
                     file, counted(gpus.size(), "GPU"), fmt::join(why_not, "; ")));
  }
}

void check_in_place(const Plan& plan, const std::string& file) {
  if (plan.sums_in_place && plan.transport != "host") {
    fail(ErrorKind::input,
         fmt::format("{}: /transport is {} and /sums is in_place, which ranks do over host alone; "
                     "plan again with --transport {}, or let /sums be sent",
                     file, plan.transport, plan.transport));
  }
}

void check_rank_count(const Plan& plan, const std::string& file, int started) {
  if (static_cast<std::size_t>(started) != plan.ranks.size()) {
    fail(ErrorKind::input,
         fmt::format("{}: the plan is for {} ranks and the launcher started {}; plan for that "
                     "many or start {}",
                     file, plan.ranks.size(), started, ranks_by_machine(plan)));
  }
}

std::string other_machine(const Plan& plan, const MeasuredMachine& here) {
  const auto& there = plan.measured_on;
  if (!there || predicts_own_machines(plan) ||
      (there->cpu == here.cpu && there->cores == here.cores)) {
    return "";
  }
  const auto text = [](const MeasuredMachine& machine) {
    return fmt::format("'{}' ({}, {} core{})", machine.host, machine.cpu, machine.cores,
                       machine.cores == 1 ? "" : "s");
  };
  return fmt::format("its profile is of {}, this is {}", text(*there), text(here));
}

MeasuredMachine this_machine() {
  return {host_name(), cpuinfo_value(read_if_readable("/proc/cpuinfo").value_or(""), "model name"),
          cores_of(allowed_cpus())};
}

void check_transport(const std::string& wanted) {
  std::vector<std::string> why_not;
  const std::vector<std::string> there = transports_here(why_not);
  if (std::find(there.begin(), there.end(), wanted) == there.end()) {
    std::string reason;
    for (const std::string& why : why_not) {
      if (why.starts_with(wanted + ": ")) {
        reason = why.substr(wanted.size());
      }
    }
    std::string near = reason.empty() ? did_you_mean(wanted, there) : "";
    for (const std::string& name : there) { // "tcp" of "tcp;ofi_rxm"
      near = name.starts_with(wanted + ";") ? name : near;
    }
    fail(ErrorKind::unavailable,
         fmt::format("transport '{}' is not available here{}; {}available: {}; choose one, as in "
                     "--transport {}",
                     wanted, reason, near.empty() ? "" : fmt::format("did you mean '{}'? ", near),
                     fmt::join(there, ", "), there.front()));
  }
}

std::string transports_text(bool json) {
  std::vector<std::string> why_not;
  const std::vector<std::string> there = transports_here(why_not);
  if (json) {
    return canonical({{"transports", there}, {"not_available", why_not}});
  }
  std::string text;
  for (const std::string& name : there) {
    text += name + "\n";
  }
  for (const std::string& line : why_not) {
    text += "not available: " + line + "\n";
  }
  return text;
}

} // namespace reckon
