// SPDX-License-Identifier: Apache-2.0
#include "planning/request.hpp"

#include "core/error.hpp"
#include "core/json_fwd.hpp"
#include "core/log.hpp"
#include "core/name_ranges.hpp"
#include "core/shape.hpp"
#include "core/units.hpp"
#include "documents/cells.hpp"
#include "documents/document.hpp"
#include "planning/assumed.hpp"
#include "planning/gpu_gradients.hpp"
#include "planning/places.hpp"
#include "planning/wire.hpp"
#include "strategies/between.hpp"
#include "strategies/default_roles.hpp"
#include "strategies/forest/machines.hpp"
#include "strategies/model.hpp"
#include "strategies/plan_network.hpp"
#include "strategies/provenance.hpp"
#include "strategies/strategy.hpp"
#include "strategies/torus/planner.hpp"
#include "strategies/unknown_rates.hpp"
#include "topology/paths.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace reckon {
namespace {

/// Of a profile without roles. `torus`: as many as it has nodes.
std::uint64_t workers_for(const Profile& profile, const PlanRequest& request, bool torus) {
  if (request.workers) {
    return *request.workers;
  }
  if (torus) {
    const auto [local, vertical, horizontal] = parse_shape(request.shape);
    return local * vertical * horizontal;
  }
  if (has_named_machines(profile)) {
    const std::uint64_t all = machines_of(profile), servers = request.servers.value_or(0);
    const std::uint64_t devices = memory_devices_of(profile);
    if (servers >= all) {
      fail(ErrorKind::usage,
           fmt::format("--servers {}: profile '{}' has {}; one that works leaves {} to only sum; "
                       "give that many or less",
                       servers, profile.name, counted(all, "machine"), all - 1));
    }
    return all - (devices > 0 ? devices : servers);
  }
  const MachineGroup& first = profile.machines.front();
  if (first.count > 1) {
    return first.count;
  }
  if (request.options.what_if.worker_port_bytes_per_s) {
    fail(
        ErrorKind::usage,
        fmt::format("--port-bandwidth: every rank is a machine with a port of its own, and profile "
                    "'{}' has one \"{}\"; say with --workers how many there are",
                    profile.name, first.id));
  }
  return std::clamp<std::uint64_t>(first.cores, 2, 256); // that share memory, as movers have it
}

/// What the best strategy would give if machines that are idle served.
void add_candidate_with_servers(Plan& plan, const PlanInputs& inputs, const PlanOptions& options,
                                std::uint64_t workers, int lanes) {
  const std::vector<MachineGroup>& groups = inputs.profile.machines;
  if (groups.size() < 2 || has_named_machines(inputs.profile)) {
    return;
  }
  const std::uint64_t servers = std::min(workers, groups[1].count);
  Candidate candidate{fmt::format("with_{}_servers", servers), {}, {}};
  try {
    const Roles roles = default_roles(inputs.profile, workers, servers, lanes,
                                      options.what_if.worker_port_bytes_per_s.has_value());
    const Plan with = make_plan({inputs.profile, inputs.workload, roles, inputs.profile_link,
                                 inputs.workload_link, std::nullopt},
                                options);
    candidate.strategy = fmt::format("{}_{}", with.strategy, candidate.strategy);
    candidate.prediction = with.prediction;
  } catch (const Error& error) { // the plan without them is as good as before
    if (error.kind() != ErrorKind::input && error.kind() != ErrorKind::unavailable) {
      throw;
    }
    candidate.reason = error.what();
  }
  plan.candidates.push_back(std::move(candidate));
}

void take_roles(InsidePlanOptions& options, const Roles& roles) {
  for (const RoleGroup& group : roles.groups) {
    if (group.endpoints.empty()) {
      fail(ErrorKind::input, fmt::format("roles '{}': a group names no endpoints; inside a machine "
                                         "each says which GPUs, NUMA nodes or memory devices it is",
                                         roles.name));
    }
    options.machine = options.machine.empty() ? group.machine : options.machine;
    if (group.machine != options.machine) {
      fail(ErrorKind::input,
           fmt::format("roles '{}': groups on {} and {}; inside a machine all are on one: leave "
                       "--inside out",
                       roles.name, options.machine, group.machine));
    }
    options.lanes = static_cast<std::uint64_t>(std::max(1, group.lanes));
  }
  const InsideOptions named = endpoints_of(roles);
  options.inside.workers = named.workers;
  if (!named.relays->empty()) {
    options.inside.relays = named.relays;
  }
}

/// Throws Error{usage} for what a plan of places has no use for.
void check_inside(const PlanRequest& request, bool several) {
  constexpr const char* k_no_roles =
      "leave out --workers and --servers; a file for --roles names GPUs and NUMA nodes";
  constexpr const char* k_own_ports =
      "the NICs' rates are the profile's (port_bandwidth cells); --network says what passes them";
  constexpr const char* k_only_sums =
      "a tree's ranks have it not yet; plan between machines, with --places machine";
  constexpr const char* k_strategies = "all schemes are solved at once; --roles limits who may sum";
  constexpr const char* k_proxies = "is of --strategy coarse and dense; leave one of the two out";
  struct Asked {
    const char* flag;
    bool asked;
    const char* instead;
  };
  const PlanOptions &asked = request.options, plain;
  const ProxyOptions plain_proxies,
      &proxies = is_proxy_strategy(asked.strategy) ? plain_proxies : request.proxies;
  for (const auto& [flag, is_asked, instead] : std::initializer_list<Asked>{
           {"--workers", request.workers.has_value() && !several, k_no_roles},
           {"--servers", request.servers.has_value() && !several, k_no_roles},
           {"--shape", !request.shape.empty(), k_strategies},
           {"--configuration", !asked.configuration.empty(),
            "it is of an endpoint in a torus; give --shape and a profile that has one, such as "
            "ace-torus"},
           {"--sums", asked.sums_in_place.has_value(),
            "is of ranks that are processes of one machine; leave --inside and --places out"},
           {"--ring-order", asked.ring_order != plain.ring_order,
            "between places a ring takes the best order; plan between machines to keep theirs"},
           {"--contention", asked.contention.has_value(), k_only_sums},
           {"--async", asked.async_steps.has_value(),
            "no rank of a tree keeps the latest parameters; plan without --inside, with --workers "
            "and --servers"},
           {"--reduction", asked.fixed_point.has_value(), k_only_sums},
           {"--port-bandwidth", asked.what_if.worker_port_bytes_per_s.has_value(), k_own_ports},
           {"--server-port-bandwidth", asked.what_if.server_port_bytes_per_s.has_value(),
            k_own_ports},
           {"--proxy-bytes", proxies.proxy_bytes.has_value(), k_proxies},
           {"--bandwidth-slack", proxies.tolerance != plain_proxies.tolerance, k_proxies},
           {"--ring-directions", proxies.ring_directions.has_value(), k_proxies},
           {"--shards", proxies.paper_shards, k_proxies},
           {"--queues", proxies.one_queue, k_proxies}}) {
    if (is_asked) {
      fail(ErrorKind::usage,
           fmt::format("{} with {}: {}", flag, several ? "--places" : "--inside", instead));
    }
  }
}

/// With what plans of places take from the options that all plans have.
InsidePlanOptions with_common(InsidePlanOptions options, const PlanRequest& request) {
  options.plan = request.options;
  options.lanes = request.lanes.value_or(1);
  options.collective = request.collective;
  options.root = request.root.value_or(0);
  return options;
}

/// What a plan of places says that was asked for beside the places.
void add_what_was_asked(Plan& plan, const PlanRequest& request) {
  const PlanOptions& options = request.options;
  if (options.strategy != "auto") {
    plan.options["strategy"] = options.strategy;
  }
  if (plan.update) {
    plan.options["optimizer"] = name_of(plan.update->optimizer);
    plan.options["update"] = name_of(plan.update->place);
  }
  if (request.gpu_direct) {
    plan.options[k_gpu_direct] = *request.gpu_direct ? "yes" : "no";
  }
  if (plan.passes) {
    add_order(plan, options.order);
  }
  if (plan.collective != Collective::all_reduce) {
    plan.options["collective"] = name_of(plan.collective);
  }
  if (has_root(plan.collective)) {
    plan.options["root"] = fmt::format("{}", plan.root);
  }
}

Plan plan_inside_as_asked(const PlanDocuments& documents, const PlanRequest& request) {
  check_inside(request, false);
  InsidePlanOptions options = with_common(*request.inside, request);
  options.inside.gpu_direct = request.gpu_direct.value_or(false);
  if (documents.roles) {
    take_roles(options, *documents.roles);
  }
  Plan plan = plan_inside({documents.profile, documents.workload, documents.profile_link,
                           documents.workload_link, documents.roles_link},
                          options);
  plan.options = {{"inside", plan.ranks.front().machine},
                  {"lanes", fmt::format("{}", request.lanes.value_or(1))}};
  for (const auto& [name, gradients] : {std::pair("network", options.inside.network),
                                        std::pair("service", options.inside.service)}) {
    if (gradients != 0) {
      plan.options[name] = fmt::format("{}", gradients);
    }
  }
  add_what_was_asked(plan, request);
  return plan;
}

/// Throws Error{usage} where --devices has nothing to choose from.
void check_devices(const PlanDocuments& documents, const PlanRequest& request) {
  if (request.devices &&
      (documents.roles || !request.places || request.places == PlacesAsked::machine)) {
    fail(ErrorKind::usage,
         fmt::format("--devices {}: it says how many of each machine's places are memory devices; "
                     "give --places gpu, numa or the number of ranks on each machine{}",
                     *request.devices, documents.roles ? ", and leave --roles out" : ""));
  }
}

/// Says which of the profile's machines the plan leaves out, and whose GPUs do nothing.
void add_unused(Plan& plan, const Profile& profile, std::size_t devices) {
  std::map<std::pair<std::string, std::uint64_t>, bool> used; // of a machine: whether it works
  for (const PlanRank& rank : plan.ranks) {
    used[{rank.machine, rank.machine_number.value_or(0)}] |= rank.worker;
  }
  std::vector<std::string> left_out, idle;
  std::size_t gpus = 0;
  for (const MachineGroup& group : profile.machines) {
    for (std::uint64_t i = 0; i < group.count; ++i) {
      const std::string name = PlanRank{.machine = group.id,
                                        .machine_number = i,
                                        .member = i < group.members.size() ? group.members[i] : ""}
                                   .machine_name();
      const auto at = used.find({group.id, i});
      if (at == used.end()) {
        left_out.push_back(name);
      } else if (!at->second) {
        const std::size_t own = profile.topology.ids_in(group.id, ObjectKind::gpu).size();
        gpus += own;
        idle.insert(idle.end(), own > 0 ? 1 : 0, name);
      }
    }
  }
  const auto add = [&](std::string_view name, std::size_t count, const std::string& of) {
    if (count > 0) {
      plan.quantities.push_back({std::string(name), static_cast<double>(count), of, {}});
    }
  };
  const auto summing = static_cast<std::size_t>(std::ranges::count_if(
      plan.ranks, [](const PlanRank& rank) { return !rank.worker && !rank.endpoint.empty(); }));
  add(k_unused_devices, devices - std::min(devices, summing),
      "memory devices that the trees do without: no ranks of the plan");
  add(k_unused_gpus, gpus,
      fmt::format("of machines that only sum: {}", fmt::join(name_ranges(idle), ", ")));
  add(k_unused_machines, left_out.size(),
      fmt::format("neither work nor sum: {}", fmt::join(name_ranges(left_out), ", ")));
}

Plan plan_places_as_asked(const PlanDocuments& documents, const PlanRequest& request) {
  check_inside(request, true);
  if (documents.roles && request.places) {
    fail(ErrorKind::usage, "--places with --roles: roles say themselves which places there are; "
                           "leave one of the two out");
  }
  InsidePlanOptions options = with_common({}, request);
  const std::uint64_t servers = request.servers.value_or(0);
  const bool whole = request.places == PlacesAsked::machine;
  std::vector<PlanRank> ranks =
      documents.roles ? ranks_of(*documents.roles)
      : whole         ? ranks_of(default_roles(documents.profile,
                                               workers_for(documents.profile, request, false), servers, 1))
                      : ranks_to_place(documents.profile, request);
  for (PlanRank& rank : ranks) {
    options.lanes = std::max(options.lanes, static_cast<std::uint64_t>(rank.lanes));
  }
  const bool gpu_direct = request.gpu_direct.value_or(true);
  std::vector<OpenMachine> opened = machines_of(ranks, gpu_direct);
  const std::size_t machines = opened.size();
  open_machines(options, std::move(opened));
  if (documents.roles && options.machines.empty() && !options.inside.relays) {
    options.inside.relays.emplace(); // roles say all who sum
  }
  std::map<std::string, std::string> asked{{"places", "as the roles say"}};
  if (!documents.roles) {
    asked = {{"places", whole                                ? "machine"
                        : request.places == PlacesAsked::gpu ? "gpu"
                        : request.places == PlacesAsked::ranks
                            ? fmt::format("{}", fmt::join(request.ranks_a_machine, ","))
                            : "numa"},
             {"workers", fmt::format("{}", machines - servers)},
             {"servers", fmt::format("{}", servers)},
             {"lanes", fmt::format("{}", request.lanes.value_or(1))}};
  }
  if (request.devices) {
    asked["devices"] = fmt::format("{}", *request.devices);
  }
  Plan plan;
  if (is_proxy_strategy(request.options.strategy)) {
    ProxyOptions proxies = request.proxies;
    proxies.ranks = std::move(ranks);
    proxies.gpu_direct = gpu_direct;
    for (PlanRank& rank : proxies.ranks) {
      rank.lanes = static_cast<int>(options.lanes);
    }
    const Roles none;
    plan = plan_proxies({documents.profile, documents.workload,
                         documents.roles ? *documents.roles : none, documents.profile_link,
                         documents.workload_link, documents.roles_link},
                        request.options, proxies);
    asked.merge(plan.options);
  } else {
    const InsideInputs inputs{documents.profile, documents.workload, documents.profile_link,
                              documents.workload_link, documents.roles_link};
    plan = plan_between_places(inputs, request, std::move(ranks), options, gpu_direct);
  }
  plan.options = std::move(asked);
  add_unused(plan, documents.profile,
             request.devices.value_or(0) * (machines - std::min<std::size_t>(machines, servers)));
  add_what_was_asked(plan, request);
  return plan;
}

/// Plans nearer than this to what no trees beat leave nothing to look for.
constexpr double k_near_bound = 0.01;
constexpr double k_worth = 0.002;
constexpr const char* k_needs_shape = "give --shape LxVxH, which says who is next to whom";

bool is_near_bound(const Plan& plan) {
  return plan.prediction.mid_seconds <= plan.prediction.bound_seconds * (1 + k_near_bound);
}

std::string near_bound_text(const Plan& plan) {
  const double above = plan.prediction.mid_seconds / plan.prediction.bound_seconds - 1;
  constexpr double k_rounding = 1e-4;
  return above < k_rounding
             ? fmt::format("{} reaches the bound, which no trees beat", plan.strategy)
             : fmt::format("{} is within {:.2g} % of the bound, which no trees beat", plan.strategy,
                           100 * above);
}

/// Puts `other` beside the plan, or in its place where it is faster, or asked for.
void set_beside(Plan& plan, Plan other, bool asked_for) {
  const bool taken =
      asked_for || other.prediction.mid_seconds < plan.prediction.mid_seconds * (1 - k_worth);
  other.candidates = std::move(plan.candidates);
  other.candidates.push_back({other.strategy, other.prediction, ""});
  if (taken) {
    plan = std::move(other);
    plan.runner_up.clear();
    compare_with_candidates(plan);
    return;
  }
  plan.candidates = std::move(other.candidates);
  const double margin = other.prediction.mid_seconds / plan.prediction.mid_seconds - 1;
  if (plan.runner_up.empty() || margin < plan.margin) {
    plan.runner_up = other.strategy;
    plan.margin = margin;
    plan.margin_text.clear(); // of the runner-up before
  }
}

/// Whether the profile tells the ways between these machines apart: of equal ports byteps_split is
/// the best of all trees (equation 8).
bool ways_differ(const PlanInputs& inputs, const PlanOptions& options) {
  const CostModel model(inputs.profile, inputs.roles, options.transport, options.what_if);
  return knows_pairs(inputs.profile, model, options.what_if) ||
         std::any_of(model.racks().begin(), model.racks().end(), [&](const std::string& rack) {
           return std::isfinite(model.uplink_bytes_per_s(rack));
         });
}

void compare_trees(Plan& plan, const PlanInputs& inputs, const PlanOptions& options,
                   bool asked_for) {
  const std::string reason = why_no_trees(inputs, options, plan);
  if (asked_for && !reason.empty()) {
    fail(ErrorKind::input, fmt::format("--strategy {} does not apply: {}", k_optimum, reason));
  }
  const auto leave_out = [&](std::string why) {
    plan.candidates.push_back({k_optimum, {}, std::move(why)});
  };
  if (!reason.empty()) {
    leave_out(reason);
  } else if (!asked_for && !ways_differ(inputs, options)) {
    leave_out("on ports alone byteps_split is the best of all trees (equation 8)");
  } else if (!asked_for && is_near_bound(plan)) {
    leave_out(near_bound_text(plan));
  } else {
    if (options.progress) {
      options.progress("the best of all trees", 1);
    }
    Plan trees = with_best_trees(plan, inputs, options);
    set_beside(plan, std::move(trees), asked_for);
  }
}

/// COARSE's memory devices: ranks that only serve.
void compare_devices(Plan& plan, const PlanInputs& inputs, const PlanOptions& options,
                     bool other_asked_for) {
  const bool devices =
      std::any_of(inputs.roles.groups.begin(), inputs.roles.groups.end(),
                  [](const RoleGroup& group) { return !group.worker && group.server; });
  const auto leave_out = [&](std::string why) {
    plan.candidates.push_back({"coarse", {}, std::move(why)});
  };
  if (!devices) {
    leave_out("there is no rank that only serves; add --servers");
  } else if (options.async_steps || options.fixed_point || options.contention) {
    leave_out("it has neither --async nor --reduction fixed nor --contention");
  } else if (!ways_differ(inputs, options)) {
    leave_out("on equal ways no proxy is nearer than another; --strategy coarse plans it");
  } else if (is_near_bound(plan)) {
    leave_out(near_bound_text(plan));
  } else {
    PlanOptions coarse = options;
    coarse.strategy = "coarse";
    ProxyOptions proxies;
    proxies.all_candidates = false;
    Plan other = plan_proxies(inputs, coarse, proxies);
    if (other_asked_for) {
      plan.candidates.push_back({other.strategy, other.prediction, ""});
    } else {
      set_beside(plan, std::move(other), false);
    }
  }
}

/// Throws Error{usage} for what a collective has no place for.
void check_collective(const PlanRequest& request) {
  if (request.root && !has_root(request.collective)) {
    fail(ErrorKind::usage,
         fmt::format("--root with --collective {}: of a broadcast or a reduce it says from or to "
                     "which rank; leave it out, or give one of these",
                     name_of(request.collective)));
  }
  const PlanOptions& options = request.options;
  if (request.collective != Collective::all_reduce && is_proxy_strategy(options.strategy)) {
    fail(ErrorKind::usage,
         fmt::format("--collective {} with --strategy {}: memory devices sum for an all-reduce; "
                     "leave one of the two out",
                     name_of(request.collective), options.strategy));
  }
  if (request.collective != Collective::all_reduce &&
      (options.forward_seconds || options.backward_seconds || options.optimizer ||
       options.order == Order::priority)) {
    fail(ErrorKind::usage, fmt::format("--collective {}: its traffic alone is predicted; leave out "
                                       "--forward and --backward, --optimizer and --order",
                                       name_of(request.collective)));
  }
}

/// Throws Error{usage} for a shape with more nodes than there can be.
void check_shape(const PlanRequest& request, const Profile& profile) {
  const auto [local, vertical, horizontal] = parse_shape(request.shape);
  const std::uint64_t nodes = local * vertical * horizontal, machines = machines_of(profile);
  const bool processes = profile.has_any({k_fabric_aggregate}); // that share a machine
  if (!profile.endpoint && !request.options.what_if.worker_port_bytes_per_s && !processes &&
      nodes > machines) {
    fail(ErrorKind::usage,
         fmt::format("--shape {} has {} nodes; profile '{}' has {}, and no endpoint with links to "
                     "neighbours (as ace-torus has); give a shape of no more nodes",
                     request.shape, nodes, profile.name, counted(machines, "machine")));
  }
}

/// Throws Error{usage} for a transport that looks like one of the profile's and is none.
void check_transport(const Profile& profile, const PlanRequest& request) {
  const std::string& asked = request.options.transport;
  std::vector<std::string> known;
  for (const Cell& cell : profile.cells) {
    if (cell.has_value() && !cell.key.transport.empty()) {
      known.push_back(cell.key.transport);
    }
  }
  if (asked.empty() || known.empty() || asked == "host" || asked == "cuda" ||
      std::ranges::count(known, asked) > 0) {
    return;
  }
  std::ranges::sort(known);
  known.erase(std::unique(known.begin(), known.end()), known.end());
  // "vrebs" for "verbs;ofi_rxm": what stands before the layer is what people call it.
  std::map<std::string, std::string> by_name;
  std::vector<std::string> names = known;
  for (const std::string& transport : known) {
    const std::string name = transport.substr(0, transport.find(';'));
    by_name.emplace(name, transport);
    names.push_back(name);
  }
  const std::string near = did_you_mean(asked, names);
  if (!near.empty()) {
    fail(ErrorKind::usage,
         fmt::format("--transport {}: profile '{}' has {}; did you mean '{}'?", asked, profile.name,
                     fmt::join(known, ", "), by_name.contains(near) ? by_name.at(near) : near));
  }
}

/// Throws Error{usage} for what is asked of one strategy and given to another.
void check_request(const PlanRequest& request, const Profile& profile) {
  const PlanOptions& options = request.options;
  const ProxyOptions &asked = request.proxies, plain;
  check_strategy(options.strategy);
  if (is_torus_strategy(options.strategy) && request.shape.empty()) {
    fail(ErrorKind::usage, "--strategy torus: give --shape LxVxH, for example 4x4x4");
  }
  if (!is_torus_strategy(options.strategy) && options.strategy != "auto" &&
      !request.shape.empty()) {
    fail(ErrorKind::usage, "--shape needs --strategy torus, torus_scatter or auto");
  }
  if (!request.shape.empty()) {
    check_shape(request, profile);
  }
  if (is_proxy_strategy(options.strategy)) {
    if (options.contention) {
      fail(ErrorKind::usage,
           fmt::format("--contention with --strategy {}: such plans are predicted without it",
                       options.strategy));
    }
  } else if (asked.proxy_bytes || asked.tolerance != plain.tolerance || asked.paper_shards ||
             asked.ring_directions || asked.one_queue) {
    fail(ErrorKind::usage, "--proxy-bytes, --bandwidth-slack, --shards, --ring-directions and "
                           "--queues need --strategy coarse or dense");
  }
  if (!options.configuration.empty() && (request.shape.empty() || !profile.endpoint)) {
    fail(ErrorKind::usage, "--configuration needs --shape and a profile with an endpoint, such as "
                           "ace-torus");
  }
  if (options.update_at && !options.optimizer) {
    fail(ErrorKind::usage, "--update says where the optimizer's step is made: give --optimizer");
  }
  if (options.what_if.server_port_bytes_per_s && !options.what_if.worker_port_bytes_per_s) {
    fail(ErrorKind::usage, "--server-port-bandwidth needs --port-bandwidth");
  }
}

/// Strategies that a rank a machine has, and places have not: a ring both have.
bool is_between_machines(const std::string& strategy) {
  return is_proxy_strategy(strategy) || is_torus_strategy(strategy) ||
         strategy == k_rack_hierarchical;
}

/// Whether ranks are GPUs where nobody says what they are: where the first machines have some,
/// the links between them are known or nothing else is, and nothing is asked for that plans of
/// places have not. `why_not` gets a sentence where it is for want of rates alone.
bool are_gpus(const PlanDocuments& documents, const PlanRequest& request, std::string& why_not) {
  const PlanOptions& options = request.options;
  const Profile& profile = documents.profile;
  if (request.places || documents.roles || profile.machines.empty() || !request.shape.empty() ||
      is_between_machines(options.strategy) || options.async_steps || options.fixed_point ||
      options.contention || options.wire || request.gpu_gradients ||
      options.what_if.worker_port_bytes_per_s) {
    return false;
  }
  const MachineGroup& first = profile.machines.front();
  const std::vector<std::string> gpus = profile.topology.ids_in(first.id, ObjectKind::gpu);
  if (gpus.size() < 2 || (machines_of(profile) == 1 && request.workers.value_or(1) > 1 &&
                          profile.has_any({k_fabric_aggregate}))) {
    return false; // processes of the one machine
  }
  if (!profile.has_any({k_port_bandwidth, k_fabric_aggregate})) {
    return true; // nothing else is known of the machines
  }
  InsideOptions all;
  all.workers = gpus;
  const Network network = network_inside_machine(profile, first.id, all);
  if (network.ways[0][1] && !network.ways[0][1]->empty()) {
    return true;
  }
  why_not = fmt::format(
      "{}the links between the GPUs of {}, so ranks are machines and what the {} GPUs in each sum "
      "counts as free (--places gpu plans them all the same): give each entry of topology.links a "
      "bytes_per_second, or each two GPUs a {} cell, from {} to {} and so on",
      k_no_rate, first.id, gpus.size(), k_device_write_ce, gpus[0], gpus[1]);
  return false;
}

/// Whether whole machines are places with a memory, which sums and writes pass, and not only ports.
bool knows_memories(const Profile& profile) {
  return !profile.machines.empty() &&
         !profile.topology.ids_in(profile.machines.front().id, ObjectKind::numa_node).empty();
}

/// `why_machines`: as are_gpus().
Plan plan_of_sums(const PlanDocuments& documents, const PlanRequest& request,
                  std::string& why_machines) {
  check_collective(request);
  check_devices(documents, request);
  if (request.inside) {
    return plan_inside_as_asked(documents, request);
  }
  const bool other_collective = request.collective != Collective::all_reduce;
  if (documents.roles && (other_collective || documents.roles->names_endpoints())) {
    return plan_places_as_asked(documents, request);
  }
  if (const bool gpus = are_gpus(documents, request, why_machines);
      gpus || (other_collective && !request.places)) {
    PlanRequest of_places = request;
    of_places.places = gpus ? PlacesAsked::gpu : PlacesAsked::machine;
    return plan_places_as_asked(documents, of_places);
  }
  if (request.places && (request.places != PlacesAsked::machine || other_collective ||
                         knows_memories(documents.profile))) {
    return plan_places_as_asked(documents, request);
  }
  const Profile& profile = documents.profile;
  check_request(request, profile);
  if (profile.machines.empty()) {
    fail(ErrorKind::input, fmt::format("profile '{}' has no machines", profile.name));
  }
  const bool torus = is_torus_strategy(request.options.strategy) || !request.shape.empty();
  const std::uint64_t workers = workers_for(profile, request, torus);
  const auto lanes = static_cast<int>(request.lanes.value_or(0));
  const Roles roles =
      documents.roles ? *documents.roles
                      : default_roles(profile, workers, request.servers.value_or(0), lanes,
                                      request.options.what_if.worker_port_bytes_per_s.has_value());
  const PlanInputs inputs{profile,
                          documents.workload,
                          roles,
                          documents.profile_link,
                          documents.workload_link,
                          documents.roles_link};
  if (is_proxy_strategy(request.options.strategy)) {
    if (!documents.roles && request.servers.value_or(0) > workers) {
      fail(ErrorKind::usage,
           fmt::format("--servers {} for {}: a device serves workers of its own; give as many at "
                       "most, or --roles",
                       *request.servers, counted(workers, "worker")));
    }
    return plan_proxies(inputs, request.options, request.proxies);
  }
  if (torus) {
    return plan_torus(inputs, request.options, parse_shape(request.shape));
  }
  const bool asks_for_trees = request.options.strategy == k_optimum;
  PlanOptions options = request.options;
  options.strategy = asks_for_trees ? "auto" : options.strategy;
  Plan plan = make_plan(inputs, options);
  if (options.strategy != "auto") {
    plan.candidates.push_back({k_optimum, {}, "only --strategy optimum and auto search for it"});
    plan.candidates.push_back({"coarse", {}, "only --strategy coarse and auto plan it"});
    plan.candidates.push_back({"torus", {}, k_needs_shape});
    return plan;
  }
  compare_trees(plan, inputs, options, asks_for_trees);
  compare_devices(plan, inputs, options, asks_for_trees);
  plan.candidates.push_back({"torus", {}, k_needs_shape});
  if (!documents.roles && !request.servers && !asks_for_trees) {
    add_candidate_with_servers(plan, inputs, options, workers, lanes);
  }
  plan.options["strategy"] = request.options.strategy;
  return plan;
}

/// What `plan` predicts of a strategy; none where it does not.
const Prediction* prediction_of(const Plan& plan, const std::string& strategy) {
  if (plan.strategy == strategy) {
    return &plan.prediction;
  }
  const auto same = [&](const Candidate& c) { return c.strategy == strategy; };
  const auto found = std::find_if(plan.candidates.begin(), plan.candidates.end(), same);
  return found == plan.candidates.end() || !found->prediction ? nullptr : &*found->prediction;
}

/// As plan_of_sums(); where ports may be faster or slower than asked for, predictions reach from
/// those on the fastest to those on the slowest ones.
Plan plan_over_range(const PlanDocuments& documents, const PlanRequest& request,
                     std::string& why_machines) {
  Plan plan = plan_of_sums(documents, request, why_machines);
  if (request.port_spread == 0 && request.server_port_spread == 0) {
    return plan;
  }
  for (const double sign : {1.0, -1.0}) {
    PlanRequest end = request;
    CostModel::WhatIf& ports = end.options.what_if;
    for (const auto& [port, spread] :
         {std::pair(&ports.worker_port_bytes_per_s, request.port_spread),
          std::pair(&ports.server_port_bytes_per_s, request.server_port_spread)}) {
      if (*port) {
        **port *= 1 + sign * spread;
      }
    }
    const Plan other = plan_of_sums(documents, end, why_machines);
    const auto widen = [&](const std::string& strategy, Prediction& p) {
      if (const Prediction* const at_end = prediction_of(other, strategy)) {
        p.lo_seconds = std::min(p.lo_seconds, at_end->lo_seconds);
        p.hi_seconds = std::max(p.hi_seconds, at_end->hi_seconds);
      }
    };
    for (Candidate& candidate : plan.candidates) {
      if (candidate.prediction) {
        widen(candidate.strategy, *candidate.prediction);
      }
    }
    widen(plan.strategy, plan.prediction);
  }
  for (const auto& [name, spread] :
       {std::pair(k_port_bandwidth, request.port_spread),
        std::pair("server_port_bandwidth", request.server_port_spread)}) {
    if (spread > 0) {
      plan.options[name] += fmt::format(" +-{:.6g}%", 100 * spread);
    }
  }
  return plan;
}

/// Rates of a profile that look as if they were in another unit.
void warn_of_rates(const Profile& profile) {
  constexpr double k_least = 1e6;
  const auto doubt = [&](const std::string& what, const std::optional<double>& rate) {
    if (rate && *rate < k_least) {
      log(LogLevel::warn,
          "profile '{}': {} is {:g} bytes per second, and documents hold no other unit: 12.5 GB/s "
          "is 12.5e9",
          profile.name, what, *rate);
    }
  };
  for (const TopologyObject& object : profile.topology.objects) {
    doubt("link_bytes_per_second of " + object.id, object.link_bytes_per_second);
    doubt("pcie_bytes_per_second of " + object.id, object.pcie_bytes_per_second);
  }
  for (const PeerLink& link : profile.topology.links) {
    doubt(fmt::format("bytes_per_second of the link {} - {}", link.from, link.to),
          link.bytes_per_second);
  }
  for (const Cell& cell : profile.cells) {
    if (cell.status == CellStatus::published && cell.unit == "bytes_per_second") {
      doubt(cell.key.text(), cell.p50);
    }
  }
}

} // namespace

PlanDocuments read_plan_documents(const std::string& profile, const std::string& workload,
                                  const std::string& roles) {
  std::vector<std::string> doubts;
  PlanDocuments out{read_profile(profile, doubts), read_workload(workload, doubts), {}, {}, {}, {}};
  for (const std::string& doubt : doubts) {
    log(LogLevel::warn, "{}", doubt);
  }
  warn_of_rates(out.profile);
  const auto link = [](const std::string& given, const auto& document) {
    DocumentLink made = link_to(document.name, canonical_text(document));
    made.file = given == document.name || given == "-" ? "" : given;
    return made;
  };
  out.profile_link = link(profile, out.profile);
  out.workload_link = link(workload, out.workload);
  if (!roles.empty()) {
    out.roles = read_roles(roles);
    out.roles_link = link(roles, *out.roles);
  }
  return out;
}

namespace {

/// As plan_over_range(), of gradients as they travel.
Plan plan_as_sent(const PlanDocuments& documents, const PlanRequest& request,
                  std::string& why_machines) {
  if (!request.options.wire) {
    return plan_over_range(documents, request, why_machines);
  }
  check_wire(request);
  PlanDocuments sent = documents;
  sent.workload = as_sent(documents.workload, *request.options.wire);
  Plan plan = plan_over_range(sent, request, why_machines);
  add_wire(plan);
  return plan;
}

} // namespace

Plan plan_as_asked(const PlanDocuments& documents, const PlanRequest& request) {
  check_transport(documents.profile, request);
  if (request.gpu_gradients) {
    check_gpu_gradients(request);
  }
  std::string why_machines;
  Plan plan = [&] {
    try {
      return plan_as_sent(documents, request, why_machines);
    } catch (const Error& error) { // planners know profiles by their names
      const std::string_view what = error.what();
      if (error.kind() != ErrorKind::input || !what.starts_with("profile '") ||
          documents.profile_link.file.empty()) {
        throw;
      }
      fail(error.kind(), fmt::format("{}: {}", documents.profile_link.file, what));
    }
  }();
  if (request.gpu_direct && !request.inside &&
      std::none_of(plan.ranks.begin(), plan.ranks.end(),
                   [](const PlanRank& rank) { return rank.endpoint_kind == "gpu"; })) {
    fail(ErrorKind::usage, "--gpu-direct: no rank of this plan is a GPU; leave it out, or give "
                           "--places gpu");
  }
  if (!why_machines.empty()) {
    plan.assumed.push_back(why_machines);
  }
  if (request.gpu_gradients) {
    add_gpu_gradients(plan, documents.profile);
  }
  add_assumed(plan, documents, request);
  return plan;
}

} // namespace reckon
