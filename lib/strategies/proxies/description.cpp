// SPDX-License-Identifier: Apache-2.0
#include "strategies/proxies/description.hpp"

#include "core/units.hpp"
#include "strategies/provenance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace reckon {
namespace {

std::string transport_of(const Plan& plan, const PlanOptions& options, const Ways& ways) {
  if (ways.places() == nullptr || !options.transport.empty()) {
    return ways.model().transport();
  }
  const bool gpu = std::any_of(plan.ranks.begin(), plan.ranks.end(),
                               [](const PlanRank& r) { return r.endpoint_kind == "gpu"; });
  return gpu ? "cuda" : "host";
}

} // namespace

void describe(Plan& plan, const PlanInputs& inputs, const PlanOptions& options,
              const ProxyOptions& proxies, const Job& job, const Ways& ways,
              const ProxyFindings& found) {
  add_provenance(plan, inputs, options);
  plan.transport = transport_of(plan, options, ways);
  plan.options["workers"] = std::to_string(job.workers.size());
  plan.options["servers"] = std::to_string(job.devices.size());
  plan.options["tolerance"] = fmt::format("{}", proxies.tolerance);
  plan.options["proxy_bytes"] = !proxies.proxy_bytes ? "auto"
                                : *proxies.proxy_bytes >= job.bytes()
                                    ? "all"
                                    : fmt::format("{}", *proxies.proxy_bytes);
  if (plan.one_queue) {
    plan.options["queues"] = "fcfs";
  }
  if (found.lanes_given && !inputs.roles_link) {
    plan.options["lanes"] = std::to_string(inputs.roles.groups.front().lanes);
  }
  if (proxies.paper_shards) {
    plan.options["shards"] = "paper";
  }
  if (proxies.ring_directions) {
    plan.options["ring_directions"] = std::to_string(*proxies.ring_directions);
  }
  add_made_up_ports(plan, options.what_if);
  if (plan.update) {
    plan.options["optimizer"] = name_of(plan.update->optimizer);
    plan.options["update"] = options.update_at ? name_of(*options.update_at) : "auto";
    if (const auto cost = checkpoint_cost(plan, job, ways)) {
      plan.quantities.push_back(*cost);
    }
  }
  if (job.passes) {
    plan.options["forward"] = fmt::format("{} s", job.forward_s);
    plan.options["backward"] = fmt::format("{} s", job.backward_s);
    add_order(plan, options.order);
    plan.quantities.push_back(exposed_quantity(plan, job.forward_s, job.backward_s));
  }
  double by_proxies = 0;
  for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
    by_proxies +=
        plan.tensors[t].by_workers ? 0 : static_cast<double>(job.workload.tensors[t].bytes());
  }
  plan.quantities.push_back(
      {"proxy_bytes", by_proxies, "of the tensors that go through the proxies", {}});
  plan.quantities.push_back(
      {"worker_ring_bytes", job.bytes() - by_proxies, "of those that the workers sum", {}});
  const auto add_dual = [&](const char* name, const std::optional<DualSplit>& solved,
                            const char* equation) {
    if (solved) {
      plan.quantities.push_back({name,
                                 solved->proxy_bytes,
                                 equation,
                                 {{"n", found.dual.inputs.bytes},
                                  {"p", static_cast<double>(found.dual.inputs.workers)},
                                  {"q", static_cast<double>(found.dual.inputs.devices)},
                                  {"B_proxy", found.dual.inputs.proxy_bytes_per_s},
                                  {"B_worker", found.dual.inputs.gpu_bytes_per_s},
                                  {"B_client", *found.dual.inputs.client_bytes_per_s}}});
    }
  };
  if (options.strategy != "dense") {
    add_dual("paper_proxy_bytes", found.dual.paper, "equation 32: COARSE III-F as printed");
    add_dual("corrected_proxy_bytes", found.dual.corrected,
             "equation 33: with the clients' push and pull");
  }
  plan.quantities.push_back(
      {"partition_bytes",
       found.partition_bytes,
       options.part_bytes ? "as given"
                          : fmt::format("equation 30: the least size within {:g} % of the full "
                                        "bandwidth, of all clients the greatest",
                                        100 * proxies.tolerance),
       {}});
  plan.quantities.push_back({"shard_bytes",
                             found.shard_bytes,
                             found.shard_bytes == found.partition_bytes
                                 ? "least length of a shard"
                                 : "least length of a shard, by the predicted time: several are "
                                   "under way at once",
                             {{"parts", static_cast<double>(plan.parts.size())}}});
  for (const std::string& source : found.routing.sources) {
    plan.quantities.push_back({"profile", 0, source, {}});
  }
  for (const std::string& source : ways.model().sources()) {
    plan.quantities.push_back({"profile", 0, source, {}});
  }
  plan.assumed = ways.model().assumed();
  for (const std::string& text : found.routing.ambiguous) {
    plan.quantities.push_back({"several_crossings", 1, text, {}});
  }
}

void compare_with_candidates(Plan& plan) {
  double second = std::numeric_limits<double>::infinity();
  for (const Candidate& c : plan.candidates) {
    if (c.strategy != plan.strategy && c.prediction && c.prediction->mid_seconds < second) {
      second = c.prediction->mid_seconds;
      plan.runner_up = c.strategy;
    }
  }
  if (!plan.runner_up.empty() && plan.prediction.mid_seconds > 0) {
    plan.margin = second / plan.prediction.mid_seconds - 1;
    if (plan.margin < -k_worth_searching) {
      plan.margin_text = fmt::format("{} is predicted {}; this strategy was asked for",
                                     plan.runner_up, faster_text(1 + plan.margin));
    }
  }
}

} // namespace reckon
