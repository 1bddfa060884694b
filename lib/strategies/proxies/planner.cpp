// SPDX-License-Identifier: Apache-2.0
#include "strategies/proxies/planner.hpp"

#include "core/error.hpp"
#include "core/log.hpp"
#include "strategies/checkpoint_cost.hpp"
#include "strategies/forest/equal_machines.hpp"
#include "strategies/forest/planner.hpp"
#include "strategies/lower.hpp"
#include "strategies/parts.hpp"
#include "strategies/plan_network.hpp"
#include "strategies/predict.hpp"
#include "strategies/provenance.hpp"
#include "strategies/proxies/routes.hpp"
#include "strategies/proxies/search.hpp"
#include "strategies/unknown_rates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace reckon {
namespace {

/// Of a plan's time, what goes into the strategies over memory devices; the rest into the others.
constexpr double k_own_part = 0.7;

void check_options(const PlanInputs& inputs, const PlanOptions& options,
                   const ProxyOptions& proxies, const Job& job) {
  const Workload& workload = inputs.workload;
  if (options.async_steps || options.fixed_point) {
    fail(ErrorKind::usage, fmt::format("--strategy {}: leave out --async and --reduction fixed; "
                                       "ps_noncolocated has them",
                                       options.strategy));
  }
  if (proxies.proxy_bytes && *proxies.proxy_bytes > job.bytes() &&
      *proxies.proxy_bytes != k_all_proxy_bytes) {
    fail(ErrorKind::input,
         fmt::format("--proxy-bytes {:.0f}: workload '{}' has {:.0f} bytes; give fewer, or 'all', "
                     "or 'auto'",
                     *proxies.proxy_bytes, workload.name, job.bytes()));
  }
}

/// The fewest lanes with which no rank adds up slower than its port brings the operands.
int needed_lanes(const Job& job, const Ways& ways, const std::vector<ProxyRoute>& routes,
                 double shard_bytes) {
  TreeCut cut;
  cut.boundary = job.tensors();
  cut.shard_bytes = shard_bytes;
  while (job.bytes() / cut.shard_bytes * job.writes_per_part() > k_quick.most_writes / 4) {
    cut.shard_bytes *= 2;
  }
  int needed = 1;
  for (const bool dense : {false, true}) {
    cut.dense = dense;
    const Plan plan = cut_into_trees(job, ways, routes, cut);
    needed = std::max(needed, lanes_needed(ways.model(), load_of(plan, lower(plan)),
                                           job.workload.tensors.front().dtype,
                                           static_cast<double>(plan.part_bytes)));
  }
  return needed;
}

RoutingTables routing_of(const PlanInputs& inputs, const PlanOptions& options,
                         const ProxyOptions& proxies, const Job& job, const Ways& ways) {
  if (options.part_bytes) {
    check_part_bytes(*options.part_bytes);
  }
  RoutingTables routing = solve_routing_tables(job, ways.curves(), proxies.tolerance);
  if (const std::size_t guessed = ways.guessed_curves(job.workers, job.devices); guessed > 0) {
    const std::string text = fmt::format(
        "profile '{}' has no pair_write of {} pairs of client and proxy: their latencies and short "
        "sizes are guesses from pair_latency and pair_bandwidth; `reckon probe --cluster "
        "--pair-writes` measures them, with a longer --time where time ran out",
        inputs.profile.name, guessed);
    log(LogLevel::warn, "{}", text);
    routing.sources.push_back(text);
  }
  for (ProxyRoute& r : routing.routes) {
    if (options.part_bytes) {
      r.partition_bytes = static_cast<double>(*options.part_bytes);
    }
  }
  return routing;
}

/// COARSE's storage holds the parameters on the memory devices: the step is made there, unless it
/// was asked for at the workers, or nothing is summed anywhere.
std::optional<UpdatePlan> first_update(const PlanOptions& options, const Job& job) {
  if (!options.optimizer) {
    return std::nullopt;
  }
  const bool alone = job.workers.size() == 1;
  return UpdatePlan{*options.optimizer,
                    options.update_at.value_or(alone ? UpdatePlace::worker : UpdatePlace::server)};
}

/// What the other planners have for the same inputs.
std::vector<Candidate> other_candidates(const PlanInputs& inputs, const PlanOptions& options,
                                        const std::vector<PlanRank>& places, bool gpu_direct) {
  if (places.size() > k_few_ranks) {
    return {}; // trees between so many take minutes
  }
  if (!places.empty()) { // the best of all trees
    InsidePlanOptions trees;
    open_machines(trees, machines_of(places, gpu_direct));
    const Plan best = plan_inside({inputs.profile, inputs.workload, inputs.profile_link,
                                   inputs.workload_link, inputs.roles_link},
                                  trees);
    return {{best.strategy, best.prediction, ""}};
  }
  PlanOptions others = options;
  others.strategy = "auto";
  others.part_bytes.reset();
  others.window_parts.reset();
  if (options.progress) {
    others.progress = [&](std::string_view step, double done) {
      options.progress(step, k_own_part + (1 - k_own_part) * done);
    };
  }
  return make_plan(inputs, others).candidates;
}

/// What the planner came to beside the plan itself.
struct ProxyFindings {
  const RoutingTables& routing;
  const DualSolutions& dual;
  double partition_bytes = 0; ///< S' of all clients, or as asked for
  double shard_bytes = 0;     ///< least length of a shard that was chosen
  bool lanes_given = false;
};

std::string transport_of(const PlanInputs& inputs, const PlanOptions& options, const Ways& ways) {
  return ways.has_model()             ? ways.model().transport()
         : !options.transport.empty() ? options.transport
                                      : transport_between(inputs.profile, *ways.places()->network);
}

/// What of the profile the ways are, and what it does not know.
void add_sources(Plan& plan, const Profile& profile, const Ways& ways) {
  if (ways.has_model()) {
    add_sources(plan.quantities, ways.model().sources());
    plan.assumed = ways.model().assumed();
    return;
  }
  add_sources(plan.quantities, ways.places()->network->pair_sources);
  plan.assumed = unknown_rates(profile, *ways.places());
}

/// What was asked for.
void add_requests(Plan& plan, const PlanInputs& inputs, const ProxyOptions& proxies, const Job& job,
                  const Ways& ways, bool lanes_given) {
  plan.options["workers"] = std::to_string(job.workers.size());
  plan.options["servers"] = std::to_string(job.devices.size());
  plan.options["bandwidth_slack"] = fmt::format("{}", proxies.tolerance);
  plan.options["proxy_bytes"] = !proxies.proxy_bytes ? "auto"
                                : *proxies.proxy_bytes >= job.bytes()
                                    ? "all"
                                    : fmt::format("{}", *proxies.proxy_bytes);
  if (plan.one_queue) {
    plan.options["queues"] = "fcfs";
  }
  if (lanes_given && !inputs.roles_link) {
    plan.options["lanes"] = std::to_string(ways.lanes());
  }
  if (proxies.paper_shards) {
    plan.options["shards"] = "paper";
  }
  if (proxies.ring_directions) {
    plan.options["ring_directions"] = std::to_string(*proxies.ring_directions);
  }
}

/// Where the boundary of the dual synchronization is by the equations.
void add_dual(Plan& plan, const DualSolutions& dual) {
  const auto add = [&](const char* name, const std::optional<DualSplit>& solved,
                       const char* equation) {
    if (solved) {
      plan.quantities.push_back({name,
                                 solved->proxy_bytes,
                                 equation,
                                 {{"n", dual.inputs.bytes},
                                  {"p", static_cast<double>(dual.inputs.workers)},
                                  {"q", static_cast<double>(dual.inputs.devices)},
                                  {"B_proxy", dual.inputs.proxy_bytes_per_s},
                                  {"B_worker", dual.inputs.gpu_bytes_per_s},
                                  {"B_client", *dual.inputs.client_bytes_per_s}}});
    }
  };
  add("paper_proxy_bytes", dual.paper, "equation 32: COARSE III-F as printed");
  add("corrected_proxy_bytes", dual.corrected, "equation 33: with the clients' push and pull");
}

/// Writes into a plan what it was made from, what was asked for, and the quantities behind it.
void describe(Plan& plan, const PlanInputs& inputs, const PlanOptions& options,
              const ProxyOptions& proxies, const Job& job, const Ways& ways,
              const ProxyFindings& found) {
  const auto add = [&](std::string name, double value, std::string equation,
                       std::map<std::string, double> of = {}) {
    plan.quantities.push_back({std::move(name), value, std::move(equation), std::move(of)});
  };
  add_provenance(plan, inputs, options);
  plan.transport = transport_of(inputs, options, ways);
  add_requests(plan, inputs, proxies, job, ways, found.lanes_given);
  if (plan.update) {
    if (const auto cost = checkpoint_cost(plan, job, ways)) {
      plan.quantities.push_back(*cost);
    }
  }
  if (job.passes) {
    add_pass_times(plan, job.forward_s, job.backward_s);
    add_order(plan, options.order);
    plan.quantities.push_back(exposed_quantity(plan, options.order, job.forward_s, job.backward_s));
  }
  double by_proxies = 0;
  for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
    by_proxies +=
        plan.tensors[t].by_workers ? 0 : static_cast<double>(job.workload.tensors[t].bytes());
  }
  add("proxy_bytes", by_proxies, "of the tensors that go through the proxies");
  add("worker_ring_bytes", job.bytes() - by_proxies, "of those that the workers sum");
  if (options.strategy != "dense") {
    add_dual(plan, found.dual);
  }
  add("partition_bytes", found.partition_bytes,
      options.part_bytes ? "as given"
                         : fmt::format("equation 30: the least size within {:g} % of the full "
                                       "bandwidth, of all clients the greatest",
                                       100 * proxies.tolerance));
  add("shard_bytes", found.shard_bytes,
      found.shard_bytes == found.partition_bytes
          ? "least length of a shard"
          : "least length of a shard, by the predicted time: several are under way at once",
      {{"parts", static_cast<double>(plan.parts.size())}});
  add_sources(plan.quantities, found.routing.sources);
  add_sources(plan, inputs.profile, ways);
  for (const std::string& text : found.routing.ambiguous) {
    add("several_crossings", 1, text);
  }
}

} // namespace

bool is_proxy_strategy(std::string_view name) {
  return name == "coarse" || name == "dense";
}

Plan plan_proxies(const PlanInputs& inputs, const PlanOptions& options,
                  const ProxyOptions& proxies) {
  const std::vector<PlanRank> places = proxies.ranks.empty() && inputs.roles.names_endpoints()
                                           ? ranks_of(inputs.roles)
                                           : proxies.ranks;
  Ways ways = places.empty()
                  ? Ways(inputs, options)
                  : Ways(inputs.profile,
                         places_of(places, inputs.profile, options.transport, proxies.gpu_direct),
                         static_cast<double>(inputs.workload.bytes()));
  const Job job = job_between(inputs, options, ways);
  check_options(inputs, options, proxies, job);
  const int given = places.empty() ? given_lanes(inputs.roles) : places.front().lanes;
  const bool lanes_given = given > 0;
  ways.set_lanes(std::max(1, given));
  const RoutingTables routing = routing_of(inputs, options, proxies, job, ways);
  double partition = 0;
  for (const ProxyRoute& r : routing.routes) {
    partition = std::max(partition, r.partition_bytes);
  }
  if (!lanes_given && !ways.one_machine()) {
    ways.set_lanes(needed_lanes(job, ways, routing.routes, partition));
  }
  const DualSolutions dual =
      options.strategy == "dense" ? DualSolutions() : solve_dual(job, ways, routing.routes);
  ProxySearch search(job, ways, routing.routes, options, proxies, dual);
  const ProxyPlans found = search.search(partition, first_update(options, job));
  Plan plan = found.dual ? *found.dual : found.dense;
  choose_update_place(plan, job, ways, options.update_at, k_thorough);
  plan.strategy = options.strategy;
  if (proxies.one_queue) {
    plan.one_queue = true;
    plan.window_parts = plan.parts.size(); // a queue has room for all
  }
  if (found.dual) {
    plan.candidates.push_back({"coarse", found.dual->prediction, ""});
  }
  plan.candidates.push_back({"coarse_without_ring", found.whole.prediction, ""});
  plan.candidates.push_back({"dense", found.dense.prediction, ""});
  if (proxies.all_candidates) {
    for (Candidate& c : other_candidates(inputs, options, places, proxies.gpu_direct)) {
      plan.candidates.push_back(std::move(c));
    }
  }
  compare_with_candidates(plan);
  describe(plan, inputs, options, proxies, job, ways,
           {routing, dual, partition, search.shard_bytes(), lanes_given});
  return plan;
}

Prediction predict_proxies(const PlanInputs& inputs, const PlanOptions& options, const Plan& plan) {
  Ways ways(inputs, options);
  const Job job = job_between(inputs, options, ways);
  const bool dual =
      std::any_of(plan.tensors.begin(), plan.tensors.end(),
                  [&](const TensorRoute& t) { return t.by_workers != plan.tensors[0].by_workers; });
  ways.set_lanes(plan.ranks.front().lanes / (dual ? 2 : 1)); // each ring has its own
  Plan again = plan;
  predict(again, job, ways, plan.window_parts, k_thorough);
  return again.prediction;
}

} // namespace reckon
