// SPDX-License-Identifier: Apache-2.0
#include "documents/own_machines.hpp"

#include <algorithm>

namespace reckon {

bool predicts_own_machines(const Plan& plan) {
  return std::any_of(plan.ranks.begin(), plan.ranks.end(),
                     [](const PlanRank& r) { return r.port_bytes_per_second > 0; }) ||
         std::any_of(plan.quantities.begin(), plan.quantities.end(),
                     [](const Quantity& q) { return q.equation == k_endpoint_links; }) ||
         std::any_of(plan.ranks.begin(), plan.ranks.end(), [&](const PlanRank& r) {
           return r.machine != plan.ranks.front().machine ||
                  r.machine_number != plan.ranks.front().machine_number;
         });
}

} // namespace reckon
