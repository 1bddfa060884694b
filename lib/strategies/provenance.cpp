// SPDX-License-Identifier: Apache-2.0
#include "strategies/provenance.hpp"

#include "core/units.hpp"
#include "documents/cells.hpp"
#include "strategies/parts.hpp"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

namespace reckon {
namespace {

std::string text_or_auto(const std::optional<std::uint64_t>& asked) {
  return asked ? std::to_string(*asked) : "auto";
}

std::optional<MeasuredMachine> measured_on(const Profile& profile) {
  const auto host = profile.context.find("host"), cpu = profile.context.find("cpu");
  const auto& machines = profile.machines;
  if (host == profile.context.end() || cpu == profile.context.end() || machines.size() != 1 ||
      machines[0].count != 1 || machines[0].cores == 0) {
    return std::nullopt;
  }
  return MeasuredMachine{host->second, cpu->second, machines[0].cores};
}

} // namespace

void add_provenance(Plan& plan, const PlanInputs& inputs, const PlanOptions& options) {
  plan.profile = inputs.profile_link;
  plan.measured_on = measured_on(inputs.profile);
  plan.workload = inputs.workload_link;
  plan.roles = inputs.roles_link;
  plan.options["strategy"] = options.strategy;
  plan.options["transport"] = options.transport.empty() ? "auto" : options.transport;
  plan.options["part_bytes"] = text_or_auto(options.part_bytes);
  plan.options["window_parts"] = text_or_auto(options.window_parts);
  if (options.zero_compute) {
    plan.options["zero_compute"] = "yes";
  }
  if (options.optimizer) {
    plan.options["optimizer"] = name_of(*options.optimizer);
    plan.options["update"] = options.update_at ? name_of(*options.update_at) : "auto";
  }
  for (const auto& [name, port] :
       {std::pair(k_port_bandwidth, options.what_if.worker_port_bytes_per_s),
        std::pair("server_port_bandwidth", options.what_if.server_port_bytes_per_s)}) {
    if (port) {
      plan.options[name] = fmt::format("{} B/s", *port);
    }
  }
}

void add_order(Plan& plan, Order asked) {
  plan.options["order"] = asked == Order::priority ? "priority" : "gradient";
}

void add_pass_times(Plan& plan, double forward_s, double backward_s) {
  plan.options["forward"] = fmt::format("{} s", forward_s);
  plan.options["backward"] = fmt::format("{} s", backward_s);
}

void add_sources(std::vector<Quantity>& quantities, const std::vector<std::string>& sources) {
  for (const std::string& source : sources) {
    quantities.push_back({"profile", 0, source, {}});
  }
}

void compare_with_candidates(Plan& plan) {
  const Candidate* second = nullptr;
  for (const Candidate& c : plan.candidates) {
    if (c.strategy != plan.strategy && c.prediction &&
        (second == nullptr || c.prediction->mid_seconds < second->prediction->mid_seconds)) {
      second = &c;
    }
  }
  if (second == nullptr) {
    return;
  }
  plan.runner_up = second->strategy;
  if (plan.prediction.mid_seconds > 0) {
    plan.margin = second->prediction->mid_seconds / plan.prediction.mid_seconds - 1;
  }
  if (plan.margin < -k_alike) {
    plan.margin_text = fmt::format("{} is predicted {}; this strategy was asked for",
                                   plan.runner_up, faster_text(1 + plan.margin));
  }
}

Quantity exposed_quantity(const Plan& plan, Order asked, double forward_s, double backward_s) {
  Quantity exposed{"exposed_seconds",
                   plan.prediction.mid_seconds - plan.passes->total_seconds(),
                   !in_gradient_order(plan.parts) ? "equation 18, parts by priority"
                   : asked == Order::priority
                       ? "equation 18, parts by priority, which is gradient order: each is on its "
                         "way before the next one is ready"
                       : "equation 18, parts in gradient order",
                   {{"forward", forward_s}, {"backward", backward_s}}};
  if (const double lost = contention_seconds(plan.prediction); lost > 0 && plan.passes->threads) {
    exposed.equation += "; equation 56: passes and traffic take turns on the processors";
    exposed.inputs["threads"] = static_cast<double>(*plan.passes->threads);
  }
  return exposed;
}

} // namespace reckon
