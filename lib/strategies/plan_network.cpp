// SPDX-License-Identifier: Apache-2.0
#include "strategies/plan_network.hpp"

#include "core/error.hpp"
#include "documents/cells.hpp"
#include "strategies/between.hpp"
#include "strategies/endpoint/overlap.hpp"
#include "strategies/torus/network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

namespace reckon {
namespace {

/// The plan's ranks as roles: neighbours that are alike are one group.
Roles roles_of(const Plan& plan) {
  Roles roles;
  roles.name = "of the plan";
  for (const PlanRank& rank : plan.ranks) {
    RoleGroup group;
    group.machine = rank.machine;
    group.worker = rank.worker;
    group.server = rank.server;
    group.lanes = rank.lanes;
    group.count = 0;
    if (roles.groups.empty() || roles.groups.back().machine != group.machine ||
        roles.groups.back().worker != group.worker || roles.groups.back().server != group.server) {
      roles.groups.push_back(group);
    }
    ++roles.groups.back().count;
  }
  return roles;
}

/// CostModel would name options of `plan`, and whoever asks for a plan's network has none of them.
void check_machines(const Plan& plan, const Profile& profile) {
  std::map<std::string, std::uint64_t> ranks;
  for (const PlanRank& rank : plan.ranks) {
    ++ranks[rank.machine];
  }
  for (const auto& [id, needed] : ranks) {
    const MachineGroup* const machine = group_named(profile, id);
    if (machine == nullptr || (machine->count > 1 && needed > machine->count &&
                               !plan.options.contains(k_port_bandwidth))) {
      fail(ErrorKind::input,
           fmt::format("the plan has {} ranks on machines '{}', of which profile '{}' has {}; give "
                       "the profile that the plan was made from, '{}', or plan again with this one",
                       needed, id, profile.name, machine == nullptr ? 0 : machine->count,
                       plan.profile.name));
    }
  }
}

/// Ports that the plan was made with whatever the profile says.
CostModel::WhatIf what_if_of(const Plan& plan) {
  CostModel::WhatIf what_if;
  for (const auto& [option, worker, port] :
       {std::tuple(k_port_bandwidth, true, &what_if.worker_port_bytes_per_s),
        std::tuple("server_port_bandwidth", false, &what_if.server_port_bytes_per_s)}) {
    const auto of_it = std::find_if(plan.ranks.begin(), plan.ranks.end(),
                                    [of = worker](const PlanRank& r) { return r.worker == of; });
    if (plan.options.contains(option) && of_it != plan.ranks.end()) {
      *port = of_it->port_bytes_per_second;
    }
  }
  return what_if;
}

PlanNetwork network_inside(const Plan& plan, const Profile& profile) {
  const Ways ways(profile, places_of(plan, profile));
  const auto part_bytes = static_cast<double>(plan.part_bytes);
  Between between = ways.between(part_bytes);
  return {std::move(between.network), std::move(between.names), ways.op_cost(part_bytes)};
}

/// Ranks that share a machine pass its memory one after the other.
PlanNetwork network_of_memory(const std::shared_ptr<const Ways>& ways, const Plan& plan) {
  const auto part_bytes = static_cast<double>(plan.part_bytes);
  const CostModel& model = ways->model();
  const std::size_t ranks = model.ranks().size();
  const double talkers = static_cast<double>(ranks) * model.ranks().front().lanes;
  const double threads = std::clamp(talkers, 1.0, static_cast<double>(model.cores()));
  PlanNetwork network;
  network.stations.emplace_back("memory");
  network.network.station_bytes_per_s.push_back(model.shared_rate(talkers, part_bytes).mid);
  network.network.latency_s = model.latency_s();
  network.network.paths.assign(ranks, std::vector<std::vector<std::uint32_t>>(ranks, {0}));
  if (plan.sums_in_place && !model.in_place_rate(DType::fp32, 1, 2)) {
    fail(ErrorKind::input, "the plan's sums are made in place, and the profile has no sum_in_place "
                           "cells; give the profile that it was made from");
  }
  const std::set<std::uint64_t> servers(plan.parts.server.begin(), plan.parts.server.end());
  const auto summing = static_cast<double>(servers.size()) * model.ranks().front().lanes;
  network.cost = [ways, part_bytes, turns = talkers / threads, threads, summing](std::size_t rank,
                                                                                 const Op& op) {
    const CostModel& rates = ways->model();
    if (op.kind == OpKind::sum_in_place) {
      const double cores = std::min(summing, static_cast<double>(rates.cores()));
      const double traffic = 2 * static_cast<double>(op.bytes) * op.source_count;
      return traffic * summing /
             rates.in_place_rate(op.dtype, static_cast<int>(cores), op.source_count)->mid;
    }
    const RankModel& r = rates.ranks()[rank];
    if (op.kind == OpKind::update) {
      return turns * static_cast<double>(op.bytes) /
             rates.step_rate(r.machine, op.optimizer, static_cast<int>(threads)).mid;
    }
    const std::size_t sources = std::max<std::size_t>(2, op.source_count);
    const DType dtype = op.dtype == DType::int32 ? DType::fp32 : op.dtype;
    return turns * static_cast<double>(op.bytes) * static_cast<double>(sources - 1) /
           rates.reduce_rate(dtype, static_cast<int>(threads), sources, part_bytes).mid;
  };
  return network;
}

} // namespace

bool has_places(const Plan& plan) {
  return !plan.ranks.front().endpoint.empty() || plan.ranks.front().machine_number;
}

std::vector<PlanRank> ranks_of(const Roles& roles) {
  std::vector<PlanRank> ranks;
  std::map<std::string, std::uint64_t> used;               // of each group of machines
  std::map<std::string, std::vector<std::string>> in_hand; // endpoints of the last one that is open
  const auto add = [&](const RoleGroup& group, std::uint64_t number, const std::string& endpoint) {
    PlanRank& rank = ranks.emplace_back();
    rank.machine = group.machine;
    rank.machine_number = number;
    rank.endpoint = endpoint;
    rank.worker = group.worker;
    rank.lanes = std::max(1, group.lanes);
  };
  for (const RoleGroup& group : roles.groups) {
    for (std::uint64_t i = 0; group.endpoints.empty() && i < group.count; ++i) {
      add(group, used[group.machine]++, "");
      in_hand.erase(group.machine);
    }
    for (const std::string& id : group.endpoints) {
      const auto [at, first] = in_hand.try_emplace(group.machine);
      if (first || std::count(at->second.begin(), at->second.end(), id) > 0) {
        ++used[group.machine];
        at->second.clear();
      }
      at->second.push_back(id);
      add(group, used[group.machine] - 1, id);
    }
  }
  const bool several = std::any_of(ranks.begin(), ranks.end(), [&](const PlanRank& rank) {
    return rank.machine != ranks.front().machine || *rank.machine_number > 0;
  });
  for (PlanRank& rank : ranks) {
    rank.machine_number = several ? rank.machine_number : std::nullopt;
  }
  return ranks;
}

std::vector<OpenMachine> machines_of(const std::vector<PlanRank>& ranks, bool gpu_direct) {
  std::vector<OpenMachine> machines;
  for (const PlanRank& rank : ranks) {
    const std::uint64_t number = rank.machine_number.value_or(0);
    auto machine = std::find_if(machines.begin(), machines.end(), [&](const OpenMachine& m) {
      return m.group == rank.machine && m.number == number;
    });
    if (machine == machines.end()) {
      machine = machines.insert(machine, {rank.machine, number, {}, {}, rank.worker});
      machine->gpu_direct = gpu_direct;
    }
    if (!rank.endpoint.empty()) {
      (rank.worker ? machine->workers : machine->relays).push_back(rank.endpoint);
    }
  }
  return machines;
}

Places places_of(const std::vector<PlanRank>& ranks, const Profile& profile,
                 const std::string& transport, bool gpu_direct) {
  const std::vector<OpenMachine> machines = machines_of(ranks, gpu_direct);
  const OpenMachine& first = machines.front();
  const auto network = std::make_shared<const Network>(
      ranks.front().machine_number
          ? network_between_machines(profile, machines, transport)
          : network_inside_machine(
                profile, first.group,
                {.workers = first.workers, .relays = first.relays, .transport = transport}));
  Places places{network, {}};
  for (const PlanRank& rank : ranks) {
    const std::string& name = rank.endpoint.empty() ? rank.machine : rank.endpoint;
    places.of_rank.push_back(
        network->place_named(name, rank.machine, rank.machine_number.value_or(0), rank.process));
    if (places.of_rank.back() >= network->places.size()) {
      fail(ErrorKind::input,
           fmt::format("rank {} is at '{}', machine {} of '{}', and the network of the plan's "
                       "other ranks has no such place; plan again",
                       places.of_rank.size() - 1, name, rank.machine_number.value_or(0),
                       rank.machine));
    }
  }
  return places;
}

Places places_of(const Plan& plan, const Profile& profile) {
  const auto direct = plan.options.find(k_gpu_direct);
  return places_of(plan.ranks, profile,
                   plan.transport == k_unspecified_transport ? "" : plan.transport,
                   direct == plan.options.end() || direct->second == "yes");
}

PlanNetwork network_of(const Plan& plan, const Profile& profile) {
  constexpr std::size_t k_most_ranks = 4096; // a GB of ways between each two
  if (plan.ranks.size() > k_most_ranks && !plan.torus) {
    fail(ErrorKind::input,
         fmt::format("the plan has {} ranks, and the ways between more than {} are too many to "
                     "play them; make a plan of fewer machines, which says as much of equal ones",
                     plan.ranks.size(), k_most_ranks));
  }
  if (has_places(plan)) {
    return network_inside(plan, profile);
  }
  if (plan.torus && profile.endpoint) {
    const auto asked = plan.options.find("configuration");
    Between links = torus_between(
        *profile.endpoint, plan.torus->shape,
        configuration_named(*profile.endpoint, asked == plan.options.end() ? "" : asked->second));
    return {std::move(links.network), std::move(links.names),
            [](std::size_t, const Op&) { return 0.0; }};
  }
  check_machines(plan, profile);
  const auto ways =
      std::make_shared<const Ways>(profile, roles_of(plan), plan.transport, what_if_of(plan));
  const auto part_bytes = static_cast<double>(plan.part_bytes);
  if (ways->one_machine()) {
    return network_of_memory(ways, plan);
  }
  Between between = ways->between(part_bytes);
  return {std::move(between.network), std::move(between.names),
          [ways, cost = ways->op_cost(part_bytes)](std::size_t rank, const Op& op) {
            return cost(rank, op);
          }};
}

} // namespace reckon
