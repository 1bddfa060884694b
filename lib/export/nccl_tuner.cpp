// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "export/export.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace reckon {
namespace {

std::string other_choice(const Plan& plan) {
  const auto ring =
      std::find_if(plan.candidates.begin(), plan.candidates.end(), [](const Candidate& c) {
        return c.strategy == "ring" && c.prediction.has_value();
      });
  if (ring == plan.candidates.end()) {
    return "NCCL's rings are not among what the plan compared";
  }
  const std::string its = fmt::format("{:.4g} ms", ring->prediction->mid_seconds * 1e3),
                    chosen = fmt::format("{:.4g} ms", plan.prediction.mid_seconds * 1e3);
  const std::string times =
      its == chosen ? "as long, " + its : fmt::format("{} instead of {}", its, chosen);
  if (plan.options.contains("inside")) {
    return fmt::format("its ring is predicted to take {}, but plan --inside makes no plan of one "
                       "scheme, and this format holds no other; --format goal and --format trace "
                       "write the plan as it is",
                       times);
  }
  return fmt::format(
      "the ring, which it has, is predicted to take {}: plan with --strategy ring to "
      "export that",
      times);
}

/// Transports that reach no further than one machine's memory.
bool within_a_machine(const std::string& transport) {
  return transport == "host" || transport == "shm" || transport == "cuda";
}

} // namespace

std::string nccl_tuner_csv(const Plan& plan) {
  if (plan.wire) {
    fail(ErrorKind::input, fmt::format("gradients of the plan travel as {}, and NCCL sends them as "
                                       "they are; plan without --wire",
                                       name_of(*plan.wire)));
  }
  if (plan.strategy != "ring") {
    fail(ErrorKind::input, fmt::format("the plan's strategy is {}, which NCCL does not have; {}",
                                       plan.strategy, other_choice(plan)));
  }
  const auto workers = std::count_if(plan.ranks.begin(), plan.ranks.end(),
                                     [](const PlanRank& r) { return r.worker; });
  // A rank of NCCL is a GPU. Where ours are whole machines their number of GPUs is not in the plan;
  // where they write into each other's memory, they are of one machine. A profile may call each
  // device a machine of its own, as those of COARSE do: its transport tells.
  const bool gpus = std::all_of(plan.ranks.begin(), plan.ranks.end(), [](const PlanRank& r) {
    return !r.worker || r.endpoint_kind == "gpu";
  });
  std::set<std::pair<std::string, std::optional<std::uint64_t>>> machines;
  for (const PlanRank& rank : plan.ranks) {
    machines.emplace(rank.machine, rank.machine_number);
  }
  const std::int64_t nodes = within_a_machine(plan.transport) ? 1
                             : gpus ? static_cast<std::int64_t>(machines.size())
                                    : workers;
  const std::int64_t ranks = gpus ? workers : -1;
  return fmt::format(
      "# colltype,minbytes,maxbytes,algorithm,protocol,channels,nNodes,nRanks,"
      "numPipeOps,regBuff\n"
      "# {} on {}: predicted {:.4g} ms for {} bytes\n"
      "{}"
      "# 0 channels: as many as NCCL chooses. -1 elsewhere: any. What no row matches "
      "runs on one channel, by the plugin's default\n"
      "allreduce,{},{},ring,simple,0,{},{},-1,-1\n",
      plan.workload.name, plan.profile.name, plan.prediction.mid_seconds * 1e3, plan.gradient_bytes,
      gpus && nodes > 1
          ? "# That is one ring, which leaves each machine by one NIC. NCCL runs rings "
            "over all NICs; `reckon expect` has what these allow\n"
          : "",
      plan.part_bytes, plan.gradient_bytes, nodes, ranks);
}

} // namespace reckon
