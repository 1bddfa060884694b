// SPDX-License-Identifier: Apache-2.0
#include "planning/places.hpp"

#include "core/error.hpp"
#include "core/name_ranges.hpp"
#include "network/inside.hpp"
#include "strategies/default_roles.hpp"
#include "strategies/forest/equal_machines.hpp"
#include "strategies/model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace reckon {
namespace {

/// Which of --workers and --servers to change, and to what: of so many machines that could work and
/// others that can only sum.
std::string too_many_machines(const Profile& profile, const PlanRequest& request,
                              std::uint64_t working, std::uint64_t others, const char* what) {
  const std::uint64_t servers = request.servers.value_or(0);
  const std::string machines =
      fmt::format("profile '{}' has {} with {}{}", profile.name, counted(working, "machine"), what,
                  others > 0 ? fmt::format(" and {} without", others) : "");
  if (request.workers == 0) {
    return fmt::format("--workers 0: nobody would have a gradient; give 1 to {}: {}", working,
                       machines);
  }
  const std::string counts = "; it counts machines, not the places in them";
  if (request.workers.value_or(1) > working) {
    const bool measured = has_named_machines(profile);
    return fmt::format("--workers {}: {}; give {} or less{}{}", *request.workers, machines, working,
                       measured ? "" : ", or raise the count of machines in a copy of the profile",
                       counts);
  }
  const std::string work =
      request.workers ? fmt::format("--workers {}", *request.workers) : "one that works";
  const std::uint64_t left = working + others - request.workers.value_or(1);
  return fmt::format("--servers {}: {}; {} leaves {} to only sum; {}{}", servers, machines, work,
                     left == 0 ? "none" : fmt::format("{}", left),
                     left > 0      ? fmt::format("give {} or less", left)
                     : working > 1 ? "give fewer --workers, or leave --servers out"
                                   : "leave --servers out",
                     counts);
}

/// Makes memory devices of some of a machine's places: the last one of each block of as many.
void take_devices(OpenMachine& machine, const PlanRequest& request) {
  const std::uint64_t places = machine.workers.size(), devices = request.devices.value_or(0);
  if (devices >= places && devices > 0) {
    fail(ErrorKind::usage,
         fmt::format("--devices {}: of {} on each machine none would be left to work; give fewer "
                     "than {}, or more --places",
                     devices, counted(places, "place"), places));
  }
  std::vector<std::string> all = std::exchange(machine.workers, {});
  for (std::uint64_t p = 0; p < places; ++p) {
    const bool device = p * devices / places != (p + 1) * devices / places;
    (device ? machine.relays : machine.workers).push_back(std::move(all[p]));
  }
}

/// The ranks of an opened machine; those that share a place are numbered.
void append_ranks(std::vector<PlanRank>& ranks, const OpenMachine& machine) {
  std::map<std::string, std::uint64_t> there; // ranks, by place
  for (const std::vector<std::string>* const ids : {&machine.workers, &machine.relays}) {
    for (const std::string& id : *ids) {
      PlanRank& rank = ranks.emplace_back();
      rank.machine = machine.group;
      rank.machine_number = machine.number;
      rank.endpoint = id;
      rank.process = there[id]++;
      rank.worker = ids == &machine.workers;
    }
  }
  for (PlanRank& rank : std::span(ranks).last(machine.workers.size() + machine.relays.size())) {
    rank.process = there[rank.endpoint] > 1 ? rank.process : std::nullopt;
  }
}

/// The memory of each rank of machine `number`, in blocks. `ranks_a_machine`: as asked for.
std::vector<std::string> dealt(const std::vector<std::string>& memories,
                               const std::vector<std::uint64_t>& ranks_a_machine,
                               std::uint64_t number) {
  const std::uint64_t here =
      ranks_a_machine[std::min<std::uint64_t>(number, ranks_a_machine.size() - 1)];
  std::vector<std::string> out;
  for (std::uint64_t r = 0; r < here; ++r) {
    out.push_back(memories[r * memories.size() / here]);
  }
  return out;
}

} // namespace

std::vector<PlanRank> ranks_to_place(const Profile& profile, const PlanRequest& request) {
  const ObjectKind kind =
      request.places == PlacesAsked::gpu ? ObjectKind::gpu : ObjectKind::numa_node;
  std::vector<std::pair<const MachineGroup*, std::uint64_t>> working, others;
  for (const MachineGroup& group : profile.machines) {
    const bool works = !profile.topology.ids_in(group.id, kind).empty();
    for (std::uint64_t i = 0; i < group.count; ++i) {
      (works ? working : others).emplace_back(&group, i);
    }
  }
  const std::uint64_t servers = request.servers.value_or(0);
  const std::uint64_t borrowed = servers - std::min<std::uint64_t>(servers, others.size());
  const std::uint64_t workers =
      request.workers.value_or(working.size() - std::min<std::uint64_t>(working.size(), borrowed));
  const char* const what = kind == ObjectKind::gpu ? "a GPU" : "a NUMA node";
  if (working.empty()) {
    fail(ErrorKind::input,
         fmt::format("profile '{}': no machine has {} in its topology; plan without --places, or "
                     "add the machine's objects (docs/topology.md)",
                     profile.name, what));
  }
  if (workers == 0 || workers + borrowed > working.size()) {
    fail(ErrorKind::input,
         too_many_machines(profile, request, working.size(), others.size(), what));
  }
  if (const std::size_t numbers = request.ranks_a_machine.size();
      request.places == PlacesAsked::ranks && numbers > workers) {
    fail(ErrorKind::usage,
         fmt::format("--places {}: {} numbers, and {} {}; give one for each, or fewer: the last "
                     "counts for all that follow",
                     fmt::join(request.ranks_a_machine, ","), numbers, counted(workers, "machine"),
                     workers == 1 ? "works" : "work"));
  }
  constexpr std::uint64_t k_most_relays =
      12; // with more the bound of all choices of them may stay open
  std::vector<PlanRank> ranks;
  for (std::uint64_t i = 0; i < workers; ++i) {
    const std::string& id = working[i].first->id;
    OpenMachine machine{id, working[i].second, profile.topology.ids_in(id, kind), {}};
    const std::vector<std::string> memories = profile.topology.ids_in(id, ObjectKind::numa_node);
    if (request.places == PlacesAsked::ranks) {
      machine.workers = dealt(memories, request.ranks_a_machine, i);
    }
    take_devices(machine, request);
    if (kind == ObjectKind::gpu && !request.devices &&
        (!request.gpu_direct.value_or(true) ||
         workers * memories.size() + servers <= k_most_relays)) {
      machine.relays = memories;
    }
    append_ranks(ranks, machine);
  }
  for (std::uint64_t i = 0; i < servers; ++i) {
    const auto& [group, number] =
        i < others.size() ? others[i] : working[workers + i - others.size()];
    ranks.emplace_back().machine = group->id;
    ranks.back().machine_number = number;
  }
  if (workers + servers == 1) { // nothing leaves it
    for (PlanRank& rank : ranks) {
      rank.machine_number.reset();
    }
  }
  return ranks;
}

Plan plan_between_places(const InsideInputs& inputs, const PlanRequest& request,
                         std::vector<PlanRank> ranks, const InsidePlanOptions& options,
                         bool gpu_direct) {
  constexpr double k_far_from_bound = 0.1;
  const std::string& strategy = request.options.strategy;
  const bool asked = strategy == k_hierarchical_split || strategy == k_hierarchical_two_level;
  const auto trees_between = [&](const std::string& why_trees) {
    constexpr std::size_t k_most_places = 2048; // minutes, and several GB
    if (ranks.size() > k_most_places) {
      fail(ErrorKind::input,
           fmt::format("{} ranks are too many for trees between them, which are solved for {} at "
                       "most. {}",
                       ranks.size(), k_most_places, why_trees));
    }
    return plan_inside(inputs, options);
  };
  if (!asked && (strategy != "auto" || ranks.size() <= k_few_ranks)) {
    return trees_between(fmt::format("Leave --strategy {} out, give {}, or plan fewer machines",
                                     strategy, k_hierarchical_split));
  }
  if (!request.devices) { // no tree of equal machines passes others than workers
    std::erase_if(ranks, [](const PlanRank& r) { return !r.worker && !r.endpoint.empty(); });
  }
  const std::string reason = why_not_equal_machines(inputs.profile, ranks, options, gpu_direct);
  if (!reason.empty()) {
    if (asked) {
      fail(ErrorKind::input, fmt::format("--strategy {} does not apply: {}", strategy, reason));
    }
    return trees_between(
        fmt::format("Plan fewer machines; equal ones are planned as one, but {}", reason));
  }
  Plan equals = plan_equal_machines(inputs, ranks, options, gpu_direct);
  const Prediction& p = equals.prediction;
  if (asked || ranks.size() > k_most_ranks_with_trees ||
      p.busy_seconds() - p.bound_seconds < k_far_from_bound * p.mid_seconds) {
    return equals;
  }
  Plan trees = trees_between("");
  return trees.prediction.mid_seconds < equals.prediction.mid_seconds ? trees : equals;
}

} // namespace reckon
