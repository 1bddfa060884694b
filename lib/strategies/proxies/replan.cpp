// SPDX-License-Identifier: Apache-2.0
#include "strategies/proxies/replan.hpp"

#include "core/error.hpp"
#include "core/units.hpp"
#include "documents/cells.hpp"
#include "strategies/default_roles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace reckon {
namespace {

/// The option's text; empty: it is auto, or was not given.
std::string option(const Plan& plan, const char* name) {
  const auto found = plan.options.find(name);
  return found == plan.options.end() || found->second == "auto" ? "" : found->second;
}

double number(const Plan& plan, const char* name) {
  const std::string text = option(plan, name);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !(value >= 0)) {
    fail(ErrorKind::input,
         fmt::format("the plan's option {} is '{}' and no number; plan again", name, text));
  }
  return value;
}

std::uint64_t whole(const Plan& plan, const char* name) {
  return static_cast<std::uint64_t>(number(plan, name));
}

void refuse(const Plan& plan, const char* name, const char* why) {
  if (plan.options.contains(name)) {
    fail(ErrorKind::input,
         fmt::format("this plan cannot be planned again while it runs: {} ({})", why, name));
  }
}

} // namespace

ProxyRequest proxy_request_of(const Plan& plan, const Profile& profile,
                              const std::optional<Roles>& roles) {
  if (plan.routing.empty()) {
    fail(ErrorKind::input,
         fmt::format("the plan's strategy {} has no routing tables that could follow the links; "
                     "plan with --strategy coarse",
                     plan.strategy));
  }
  if (!plan.ranks.front().endpoint.empty()) {
    fail(ErrorKind::input, "the plan's ranks are places inside a machine, whose links are not "
                           "measured again while it runs; plan over machines");
  }
  refuse(plan, "queues", "with one queue first come, first served it may never end");
  refuse(plan, k_port_bandwidth, "its ports are made up, not measured; plan without them");
  ProxyRequest request;
  request.roles =
      roles ? *roles
            : default_roles(profile, whole(plan, "workers"), whole(plan, "servers"),
                            option(plan, "lanes").empty() ? 0
                                                          : static_cast<int>(whole(plan, "lanes")));
  PlanOptions& options = request.options;
  options.strategy = plan.strategy;
  options.transport = option(plan, "transport");
  if (!option(plan, "part_bytes").empty()) {
    options.part_bytes = whole(plan, "part_bytes");
  }
  if (!option(plan, "window_parts").empty()) {
    options.window_parts = whole(plan, "window_parts");
  }
  for (const auto& [name, seconds] : {std::pair("forward", &options.forward_seconds),
                                      std::pair("backward", &options.backward_seconds)}) {
    if (const std::string text = option(plan, name); !text.empty()) {
      *seconds = parse_seconds(text, name).count();
    }
  }
  if (const std::string order = option(plan, "order"); !order.empty()) {
    options.order = order == "priority" ? Order::priority : Order::gradient;
  }
  if (plan.update) {
    options.optimizer = plan.update->optimizer;
    if (!option(plan, "update").empty()) {
      options.update_at = plan.update->place;
    }
  }
  options.zero_compute = plan.options.contains("zero_compute");
  ProxyOptions& proxies = request.proxies;
  proxies.tolerance = number(plan, "bandwidth_slack");
  if (const std::string bytes = option(plan, "proxy_bytes"); !bytes.empty()) {
    proxies.proxy_bytes = bytes == "all" ? k_all_proxy_bytes : number(plan, "proxy_bytes");
  }
  if (!option(plan, "ring_directions").empty()) {
    proxies.ring_directions = static_cast<int>(whole(plan, "ring_directions"));
  }
  proxies.paper_shards = plan.options.contains("shards");
  proxies.all_candidates = false;
  return request;
}

bool same_traffic(const Plan& a, const Plan& b) {
  const auto same_trees = [](const SumTree& x, const SumTree& y) {
    return x.up == y.up && x.down == y.down;
  };
  const auto same_lanes = [](const PlanRank& x, const PlanRank& y) { return x.lanes == y.lanes; };
  const auto place = [](const Plan& plan) {
    return plan.update ? std::optional(plan.update->place) : std::nullopt;
  };
  return a.parts == b.parts && a.window_parts == b.window_parts && place(a) == place(b) &&
         std::equal(a.trees.begin(), a.trees.end(), b.trees.begin(), b.trees.end(), same_trees) &&
         std::equal(a.ranks.begin(), a.ranks.end(), b.ranks.begin(), b.ranks.end(), same_lanes);
}

Replanned replan(const Plan& running, const PlanInputs& inputs, const ProxyRequest& request,
                 double margin) {
  Replanned out;
  out.plan = plan_proxies(inputs, request.options, request.proxies);
  out.running = predict_proxies(inputs, request.options, running);
  const double now = out.running.mid_seconds, then = out.plan.prediction.mid_seconds;
  const std::string times = fmt::format("{} predicted with it, {} with the best plan",
                                        to_text(Seconds(now)), to_text(Seconds(then)));
  if (same_traffic(running, out.plan)) {
    out.why = "the running plan is still the best";
  } else if (!(then < now * (1 - margin))) {
    out.why = fmt::format("kept the running plan: {}, and a change must save {:g} %", times,
                          100 * margin);
  } else {
    out.change = true;
    out.why = fmt::format("changed the plan: {}", times);
  }
  return out;
}

} // namespace reckon
