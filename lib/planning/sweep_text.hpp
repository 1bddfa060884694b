// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/json_fwd.hpp"
#include "planning/prices.hpp"
#include "planning/sweep.hpp"
#include "present/style.hpp"

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace reckon {

/// What the plans of a sweep are compared by.
struct SweptCost {
  double exposed_seconds = 0; ///< of the traffic: what the passes do not hide; without passes all
  std::optional<double> price, price_of_step{}; ///< as price_of() and price_of_step()
  std::set<double> ports{};                     ///< as priced_ports()
  bool best = false; ///< no other plan has less of one, exposed time or price of a step, and no
                     ///< more of the other
};

/// Plans and what they cost, by combination of values.
struct Sweep {
  std::vector<std::string> names; ///< of the settings
  std::vector<SweptPlan> plans;
  std::vector<SweptCost> costs; ///< of each plan; of a combination without one as it is made
  std::optional<Prices> prices;
};

/// Adds the costs. A plan for which the prices lack something becomes a combination without one,
/// unless all do. Throws Error{input} then.
[[nodiscard]] Sweep weighed(std::vector<std::string> names, std::vector<SweptPlan> plans,
                            std::optional<Prices> prices);

/// One table, the least exposed time first, then the lower price; the best are marked. Of what
/// binds it has what stands before the details.
[[nodiscard]] std::string render(const Sweep& sweep, const Style& style);
/// For programs, in the order of the values: an array of objects.
[[nodiscard]] Json to_json(const Sweep& sweep);

} // namespace reckon
