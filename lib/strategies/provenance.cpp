// SPDX-License-Identifier: Apache-2.0
#include "strategies/provenance.hpp"

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

} // namespace

void add_provenance(Plan& plan, const PlanInputs& inputs, const PlanOptions& options) {
  plan.profile = inputs.profile_link;
  plan.workload = inputs.workload_link;
  plan.roles = inputs.roles_link;
  plan.options["strategy"] = options.strategy;
  plan.options["transport"] = options.transport.empty() ? "auto" : options.transport;
  plan.options["part_bytes"] = text_or_auto(options.part_bytes);
  plan.options["window_parts"] = text_or_auto(options.window_parts);
  if (options.zero_compute) {
    plan.options["zero_compute"] = "yes";
  }
}

void add_made_up_ports(Plan& plan, const CostModel::WhatIf& what_if) {
  for (const auto& [name, port] :
       {std::pair(k_port_bandwidth, what_if.worker_port_bytes_per_s),
        std::pair("server_port_bandwidth", what_if.server_port_bytes_per_s)}) {
    if (port) {
      plan.options[name] = fmt::format("{} B/s", *port);
    }
  }
}

void add_order(Plan& plan, Order asked) {
  plan.options["order"] = asked == Order::gradient   ? "gradient"
                          : asked == Order::priority ? "priority"
                                                     : "auto";
}

Quantity exposed_quantity(const Plan& plan, double forward_s, double backward_s) {
  return {"exposed_seconds",
          plan.prediction.mid_seconds - plan.passes->total_seconds(),
          in_gradient_order(plan.parts) ? "equation 18, parts in gradient order"
                                        : "equation 18, parts by priority",
          {{"forward", forward_s}, {"backward", backward_s}}};
}

} // namespace reckon
