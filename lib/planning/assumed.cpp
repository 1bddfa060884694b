// SPDX-License-Identifier: Apache-2.0
#include "planning/assumed.hpp"

#include "core/log.hpp"
#include "core/units.hpp"
#include "documents/cells.hpp"
#include "planning/latency.hpp"
#include "strategies/plan_network.hpp"
#include "strategies/unknown_rates.hpp"
#include "topology/paths.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

namespace reckon {
namespace {

/// Says which part of a port's speed gradients get where somebody said that speed.
void add_goodput(Plan& plan, const PlanRequest& request) {
  if (request.options.what_if.worker_port_bytes_per_s) {
    plan.assumed.push_back(
        "gradients get all of --port-bandwidth (a goodput of 100 %): nothing is subtracted for "
        "headers, acknowledgements and other traffic. If that is a line rate, give what a "
        "transport reaches of it, as BytePS's 90 of 100 Gb/s");
  }
}

/// Plans are of what is summed: says what else the workload sends.
void add_exchanges(Plan& plan, const Workload& workload) {
  const std::size_t tensors = workload.all_to_all.size();
  if (tensors == 0) {
    return;
  }
  plan.assumed.push_back(fmt::format(
      "the exchange of {} by all-to-all takes no time: no plan has it, this one has the "
      "{} that are summed",
      counted(tensors, "tensor"), to_text(Bytes(workload.bytes()))));
  log(LogLevel::warn, "workload '{}': {}", workload.name, plan.assumed.back());
}

/// Says where nobody knows how long the optimizer's step takes.
void add_missing_step(Plan& plan, const Profile& profile) {
  if (!plan.update) {
    return;
  }
  const std::string name(name_of(plan.update->optimizer));
  if (has_places(plan) && plan.routing.empty()) {
    plan.assumed.push_back(fmt::format(
        "the step of {} takes no time: no profile has its rate on GPUs or NUMA nodes", name));
  } else if (profile.select({.test = k_optimizer_step, .operation = name}).empty()) {
    plan.assumed.push_back(fmt::format("the step of {} takes no time: the profile has no {} of it",
                                       name, k_optimizer_step));
  }
}

/// Says where nobody knows how long an empty write between two machines takes.
void add_missing_latency(Plan& plan, const Profile& profile) {
  const auto apart = [&](const PlanRank& rank) {
    return rank.port_bytes_per_second > 0 ||
           rank.machine_number != plan.ranks.front().machine_number ||
           rank.machine != plan.ranks.front().machine;
  };
  if (std::any_of(plan.ranks.begin(), plan.ranks.end(), apart) &&
      !profile.has_any({k_fabric_latency, k_pair_latency, k_pair_write})) {
    plan.assumed.push_back(
        fmt::format("a write between machines takes no time beside its bytes: the profile has no "
                    "{}, so short messages take longer",
                    k_fabric_latency));
  }
}

/// Says where GPUs may have links that the profile's tree does not name.
void add_missing_gpu_links(Plan& plan, const Profile& profile) {
  std::set<std::string> machines;
  for (const PlanRank& rank : plan.ranks) {
    if (rank.endpoint_kind == name_of(ObjectKind::gpu) &&
        lacks_gpu_links(profile.topology, rank.machine) && machines.insert(rank.machine).second) {
      plan.assumed.push_back(
          fmt::format("no NVLink is known here: the GPUs of {} reach each other over PCIe alone; "
                      "where they have such links, say them in topology.links, or probe the "
                      "machine itself",
                      rank.machine));
    }
  }
}

} // namespace

void add_assumed(Plan& plan, const PlanDocuments& documents, const PlanRequest& request) {
  add_goodput(plan, request);
  add_missing_gpu_links(plan, documents.profile);
  add_missing_latency(plan, documents.profile);
  add_missing_step(plan, documents.profile);
  add_latency(plan, documents.profile);
  add_exchanges(plan, documents.workload);
}

} // namespace reckon
