// SPDX-License-Identifier: Apache-2.0
#include "planning/wire.hpp"

#include "core/error.hpp"
#include "equations/rounding.hpp"
#include "planning/refusals.hpp"
#include "strategies/part_trees.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace reckon {
namespace {

/// The most sums that a gradient passes in turn on its way up a tree.
std::size_t height(const PartTrees& trees, std::size_t tree, std::size_t ranks) {
  constexpr std::size_t k_unknown = SIZE_MAX;
  std::vector<std::size_t> steps(ranks, k_unknown);
  std::vector<std::uint32_t> way; // up to a rank whose steps are known
  std::size_t most = 0;
  for (std::uint32_t r = 0; r < ranks; ++r) {
    std::uint32_t at = r;
    for (way.clear(); steps[at] == k_unknown; at = static_cast<std::uint32_t>(trees.up(at, tree))) {
      const std::int64_t above = trees.up(at, tree);
      if (above < 0 || above == at) {
        steps[at] = 0;
        break;
      }
      way.push_back(at);
    }
    for (std::size_t known = steps[at]; !way.empty(); way.pop_back()) {
      steps[way.back()] = ++known;
    }
    most = std::max(most, steps[r]);
  }
  return most;
}

} // namespace

void check_wire(const PlanRequest& request) {
  const PlanOptions& asked = request.options;
  refuse_with(
      fmt::format("--wire {}", name_of(*asked.wire)),
      {{"--async", asked.async_steps.has_value(), "steps are of fp32"},
       {"--optimizer", asked.optimizer.has_value(), "steps are of fp32"},
       {"--reduction", asked.fixed_point.has_value(), "whole numbers travel as int32"},
       {"--sums in-place", asked.sums_in_place.value_or(false), "no gradient travels"},
       {"--collective", request.collective != Collective::all_reduce, "only an all-reduce rounds"},
       {"--shape", !request.shape.empty(), "no node of a torus rounds"},
       {"--queues", request.proxies.one_queue, "it is to show a deadlock"}});
}

void add_wire(Plan& plan) {
  if (std::ranges::any_of(plan.ranks, [](auto& rank) { return rank.endpoint_kind == "gpu"; })) {
    fail(ErrorKind::usage, fmt::format("--wire {}: only processors round gradients, and ranks of "
                                       "this plan are GPUs; plan with --places machine",
                                       name_of(*plan.wire)));
  }
  const PartTrees trees(plan);
  std::set<std::size_t> used;
  for (std::size_t p = 0; p < plan.parts.size(); ++p) {
    used.insert(trees.of(p));
  }
  std::size_t sums = 0;
  for (const std::size_t tree : used) {
    sums = std::max(sums, height(trees, tree, plan.ranks.size()));
  }
  const auto workers =
      static_cast<std::size_t>(std::ranges::count_if(plan.ranks, &PlanRank::worker));
  plan.options["wire"] = name_of(*plan.wire);
  plan.assumed.emplace_back("a worker rounds a part, and widens its sum, in the time of adding two "
                            "parts of what is sent");
  if (plan.wire == DType::fp16) {
    plan.assumed.emplace_back(
        "gradients and sums stay within fp16's range: above 65504 they become "
        "infinite, below 6e-5 they lose precision; scale the loss, or travel "
        "as bf16");
  }
  plan.quantities.push_back(
      {std::string(k_wire_error_quantity),
       rounding_error(*plan.wire, sums + 1, workers),
       "equation 22a: how far a sum may be off, of the sum of magnitudes",
       {{"n", static_cast<double>(workers)}, {"roundings", static_cast<double>(sums + 1)}}});
}

} // namespace reckon
