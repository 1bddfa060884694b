// SPDX-License-Identifier: Apache-2.0
#include "documents/own_machines.hpp"

#include "core/name_ranges.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <tuple>

namespace reckon {
namespace {

/// By rank: the machine that it is predicted on; equal where that is the same.
std::vector<std::size_t> predicted_machines(const Plan& plan) {
  const bool nodes = std::ranges::count(plan.quantities, k_endpoint_links, &Quantity::equation) > 0;
  using Machine = std::tuple<std::string, std::optional<std::uint64_t>, std::size_t>;
  std::map<Machine, std::size_t> numbers;
  std::vector<std::size_t> machines;
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    const PlanRank& rank = plan.ranks[r];
    const bool alone = !rank.machine_number && (nodes || rank.port_bytes_per_second > 0);
    machines.push_back(
        numbers.try_emplace({rank.machine, rank.machine_number, alone ? r + 1 : 0}, numbers.size())
            .first->second);
  }
  return machines;
}

} // namespace

bool predicts_own_machines(const Plan& plan) {
  const std::vector<std::size_t> machines = predicted_machines(plan);
  return std::ranges::any_of(machines, [](std::size_t machine) { return machine > 0; });
}

std::string shared_hosts(const Plan& plan, const std::vector<std::string>& hosts) {
  const std::vector<std::size_t> machines = predicted_machines(plan);
  std::map<std::string, std::set<std::size_t>> on_host;
  std::map<std::string, std::vector<std::string>> names;
  const bool numbered = !plan.ranks.empty() && plan.ranks.front().machine_number;
  for (std::size_t r = 0; r < machines.size(); ++r) {
    if (on_host[hosts[r]].insert(machines[r]).second) {
      names[hosts[r]].push_back(numbered ? plan.ranks[r].machine_name() : fmt::format("{}", r));
    }
  }
  std::vector<std::string> out;
  for (const auto& [host, theirs] : names) {
    if (theirs.size() > 1) {
      out.push_back(fmt::format("{} {} shared {}", numbered ? "machines" : "ranks",
                                first_names(name_ranges(theirs), 4), host));
    }
  }
  return fmt::format("{}", fmt::join(out, "; "));
}

} // namespace reckon
