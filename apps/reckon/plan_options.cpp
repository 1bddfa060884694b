// SPDX-License-Identifier: Apache-2.0
#include "plan_options.hpp"

#include "core/error.hpp"
#include "core/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {
namespace {

/// Throws Error{usage} unless the value of an option is one of those that it has.
void check_is_one_of(std::string_view option, const std::string& value,
                     const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), value) == known.end()) {
    const std::vector<std::string> first(known.begin(), known.end() - 1);
    fail(ErrorKind::usage,
         fmt::format("{} {}: use {} or {}", option, value, fmt::join(first, ", "), known.back()));
  }
}

double parse_gradients(const std::string& text, std::string_view flag) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !(value >= 0) || value > 1e6) {
    fail(ErrorKind::usage,
         fmt::format("{} '{}': say how many gradients pass in an iteration, e.g. 1", flag, text));
  }
  return value;
}

FixedPointRequest fixed_point_of(const PlanArguments& a) {
  FixedPointRequest request;
  constexpr std::string_view k_prefix = "fixed:";
  const std::uint64_t bits = a.reduction.starts_with(k_prefix)
                                 ? parse_count(a.reduction.substr(k_prefix.size()), "--reduction")
                                 : 0;
  if (bits < 2 || bits > 32) {
    fail(ErrorKind::usage,
         fmt::format("--reduction {}: use sum, or fixed:BITS with 2 to 32 bits", a.reduction));
  }
  request.bits = static_cast<int>(bits);
  const char* const end = a.gradient_bound.data() + a.gradient_bound.size();
  const auto [stop, error] = std::from_chars(a.gradient_bound.data(), end, request.gradient_bound);
  constexpr double k_least = 1e-30, k_most = 1e30; // what fp32 can be scaled by
  if (error != std::errc{} || stop != end || !(request.gradient_bound >= k_least) ||
      request.gradient_bound > k_most) {
    fail(ErrorKind::usage,
         fmt::format("--gradient-bound {}: use a number from 1e-30 to 1e30", a.gradient_bound));
  }
  return request;
}

/// What a plan inside a machine has no place for.
void refuse_beside_inside(const PlanArguments& a) {
  const PlanArguments plain;
  const auto refuse = [](bool given, const char* option, const char* instead) {
    if (given) {
      fail(ErrorKind::usage, fmt::format("{} with --inside: {}", option, instead));
    }
  };
  const char* const roles_instead =
      "leave out --workers and --servers; a file for --roles names GPUs and NUMA nodes";
  refuse(!a.workers.empty(), "--workers", roles_instead);
  refuse(!a.servers.empty(), "--servers", roles_instead);
  refuse(a.strategy != plain.strategy, "--strategy",
         "all schemes are solved at once; --roles limits who may sum");
  const char* const sums_instead = "such a plan ends with the sums; plan without --inside, with "
                                   "--workers and --servers, to have more in it";
  refuse(!a.forward.empty() || !a.backward.empty() || a.order != plain.order,
         "--forward, --backward or --order", sums_instead);
  refuse(!a.contention.empty(), "--contention", sums_instead);
  refuse(a.optimizer != plain.optimizer || a.update != plain.update, "--optimizer", sums_instead);
  refuse(a.async, "--async",
         "no rank of a tree keeps the latest parameters; plan without --inside, "
         "with --workers and --servers");
  refuse(a.reduction != plain.reduction, "--reduction", sums_instead);
  refuse(
      !a.port_bandwidth.empty(), "--port-bandwidth",
      "the NICs' rates are the profile's (port_bandwidth cells); --network says what passes them");
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
           fmt::format("roles '{}': groups on {} and {}; inside a machine all are on one",
                       roles.name, options.machine, group.machine));
    }
    options.lanes = static_cast<std::uint64_t>(group.lanes);
    for (const std::string& id : group.endpoints) {
      if (group.worker) {
        options.inside.workers.push_back(id);
      } else {
        options.inside.relays = options.inside.relays.value_or(std::vector<std::string>());
        options.inside.relays->push_back(id);
      }
    }
  }
}

} // namespace

PlanOptions plan_options_of(const PlanArguments& a) {
  PlanOptions options;
  options.strategy = a.strategy;
  options.transport = a.transport;
  if (!a.part_bytes.empty() && a.part_bytes != "auto") {
    options.part_bytes = parse_bytes(a.part_bytes, "--part-bytes").count();
  }
  if (!a.window.empty() && a.window != "auto") {
    options.window_parts = parse_count(a.window, "--window");
    if (*options.window_parts == 0) {
      fail(ErrorKind::usage, "--window: at least one part must be under way");
    }
  }
  check_is_one_of("--cutting", a.cutting, {"fused", "tensors"});
  options.cutting = a.cutting == "fused" ? Cutting::fused : Cutting::tensors;
  if (!a.forward.empty()) {
    options.forward_seconds = parse_seconds(a.forward, "--forward").count();
  }
  if (!a.backward.empty()) {
    options.backward_seconds = parse_seconds(a.backward, "--backward").count();
  }
  options.zero_compute = a.zero_compute;
  check_is_one_of("--order", a.order, {"auto", "gradient", "priority"});
  options.order = a.order == "gradient"   ? Order::gradient
                  : a.order == "priority" ? Order::priority
                                          : Order::automatic;
  check_is_one_of("--cores", a.cores, {"dedicated", "shared"});
  if (!a.contention.empty()) {
    options.contention = ContentionRequest{a.contention, a.cores == "dedicated"};
  } else if (a.cores == "shared") {
    fail(ErrorKind::usage, "--cores: says where the computation of --contention works; give both");
  }
  if (a.optimizer != "none") {
    options.optimizer = optimizer_named(a.optimizer);
    if (!options.optimizer) {
      fail(ErrorKind::usage,
           fmt::format("--optimizer {}: use none, sgd, momentum, rmsprop or adam", a.optimizer));
    }
  }
  if (a.async) {
    if (a.optimizer == "none") {
      options.optimizer = Optimizer::sgd;
    }
    options.async_steps = parse_count(a.async_steps, "--async-steps");
    if (*options.async_steps < 1 || *options.async_steps > 1000) {
      fail(ErrorKind::usage, "--async-steps: 1 to 1000");
    }
  }
  const PlanArguments defaults;
  if (!a.async && a.async_steps != defaults.async_steps) {
    fail(ErrorKind::usage, "--async-steps counts the steps of --async: give --async");
  }
  if (a.reduction == "sum" && a.gradient_bound != defaults.gradient_bound) {
    fail(ErrorKind::usage, "--gradient-bound is for whole numbers: give --reduction fixed:BITS");
  }
  if (a.reduction != "sum") {
    options.fixed_point = fixed_point_of(a);
  }
  check_is_one_of("--update", a.update, {"auto", "server", "worker"});
  if (a.update != "auto") {
    if (!options.optimizer) {
      fail(ErrorKind::usage, "--update says where the optimizer's step is made: give --optimizer");
    }
    options.update_at = a.update == "server" ? UpdatePlace::server : UpdatePlace::worker;
  }
  if (!a.port_bandwidth.empty()) {
    options.what_if.worker_port_bytes_per_s =
        parse_bandwidth(a.port_bandwidth, "--port-bandwidth").as_bytes_per_s();
  }
  if (!a.server_port_bandwidth.empty()) {
    if (a.port_bandwidth.empty()) {
      fail(ErrorKind::usage, "--server-port-bandwidth needs --port-bandwidth");
    }
    options.what_if.server_port_bytes_per_s =
        parse_bandwidth(a.server_port_bandwidth, "--server-port-bandwidth").as_bytes_per_s();
  }
  return options;
}

InsidePlanOptions inside_options_of(const PlanArguments& a, const std::optional<Roles>& roles) {
  refuse_beside_inside(a);
  const PlanOptions common = plan_options_of(a);
  InsidePlanOptions options;
  options.machine = a.machine;
  options.transport = a.transport;
  options.part_bytes = common.part_bytes;
  options.window_parts = common.window_parts;
  options.cutting = common.cutting;
  options.inside.network = parse_gradients(a.network, "--network");
  options.inside.service = parse_gradients(a.service, "--service");
  options.inside.gpu_direct = a.gpu_direct;
  if (!a.lanes.empty() && a.lanes != "auto") {
    options.lanes = parse_count(a.lanes, "--lanes");
    if (options.lanes < 1 || options.lanes > 1024) {
      fail(ErrorKind::usage, "--lanes: 1 to 1024");
    }
  }
  if (roles) {
    take_roles(options, *roles);
  }
  return options;
}

ProxyOptions proxy_options_of(const PlanArguments& a) {
  ProxyOptions options;
  if (a.proxy_bytes != "auto") {
    options.proxy_bytes =
        a.proxy_bytes == "0" || a.proxy_bytes == "all"
            ? (a.proxy_bytes == "0" ? 0 : k_all_proxy_bytes)
            : static_cast<double>(parse_bytes(a.proxy_bytes, "--proxy-bytes").count());
  }
  options.tolerance = parse_fraction(a.tolerance, "--tolerance");
  if (!(options.tolerance < 1)) {
    fail(ErrorKind::usage, fmt::format("--tolerance {}: below 100%", a.tolerance));
  }
  check_is_one_of("--ring-directions", a.ring_directions, {"auto", "1", "2"});
  if (a.ring_directions != "auto") {
    options.ring_directions = a.ring_directions == "1" ? 1 : 2;
  }
  check_is_one_of("--queues", a.queues, {"client", "fcfs"});
  options.one_queue = a.queues == "fcfs";
  check_is_one_of("--shards", a.shards, {"auto", "paper"});
  options.paper_shards = a.shards == "paper";
  return options;
}

} // namespace reckon
