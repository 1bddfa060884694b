// SPDX-License-Identifier: Apache-2.0
#include "equations/aggregation.hpp"

#include "core/error.hpp"
#include "equations/checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace reckon {

using equations::check_positive;
using equations::k_tie;

namespace {

void check(const SwitchTree& tree) {
  if (tree.gpus_per_switch == 0 || tree.switches == 0) {
    fail(ErrorKind::usage,
         fmt::format("aggregation: {} switches with {} GPUs each: at least one of both is needed",
                     tree.switches, tree.gpus_per_switch));
  }
  equations::check_amount(tree.model_bytes, "aggregation: bytes");
  check_positive(tree.gpu_bytes_per_s, "aggregation: a GPU link's bandwidth");
  check_positive(tree.switch_bytes_per_s, "aggregation: a switch link's bandwidth");
}

double gpu_links_s(const SwitchTree& tree, double x) {
  const double n = static_cast<double>(tree.gpus_per_switch);
  return ((2 * n - 1) / n * (1 - x) + x) * tree.model_bytes / tree.gpu_bytes_per_s;
}

double switch_links_s(const SwitchTree& tree, double x) {
  const double n = static_cast<double>(tree.gpus_per_switch);
  return (n * x + 1 - x) * tree.model_bytes / tree.switch_bytes_per_s;
}

} // namespace

double aggregation_s(const SwitchTree& tree, double brute_force_fraction) {
  check(tree);
  if (!(brute_force_fraction >= 0 && brute_force_fraction <= 1)) {
    fail(ErrorKind::usage, fmt::format("aggregation: brute force for {} of the bytes: must be "
                                       "between 0 and 1",
                                       brute_force_fraction));
  }
  return std::max(gpu_links_s(tree, brute_force_fraction),
                  switch_links_s(tree, brute_force_fraction));
}

AggregationMix solve_aggregation(const SwitchTree& tree) {
  check(tree);
  const double n = static_cast<double>(tree.gpus_per_switch);
  const double gpu = tree.gpu_bytes_per_s;
  const double uplink = tree.switch_bytes_per_s;
  AggregationMix mix;
  if (tree.gpus_per_switch > 1) {
    // The GPU links' time falls with x and the switch links' rises: the least maximum is where they
    // meet.
    const double meet = ((2 * n - 1) * uplink - n * gpu) / ((n - 1) * (n * gpu + uplink));
    mix.brute_force_fraction = std::clamp(meet, 0.0, 1.0);
  }
  const double gpu_s = gpu_links_s(tree, mix.brute_force_fraction);
  const double switch_s = switch_links_s(tree, mix.brute_force_fraction);
  mix.time_s = std::max(gpu_s, switch_s);
  if (std::abs(gpu_s - switch_s) > k_tie * mix.time_s) {
    mix.limit = gpu_s > switch_s ? SwitchTreeLimit::gpu_links : SwitchTreeLimit::switch_links;
  }
  return mix;
}

double cpu_assisted_s(const SwitchTree& tree) {
  check(tree);
  const double n = static_cast<double>(tree.gpus_per_switch);
  const double k = tree.gpu_bytes_per_s / tree.switch_bytes_per_s;
  return tree.model_bytes / tree.switch_bytes_per_s * std::max(1.0, (2 * n - 1) / (k * n));
}

double ring_aggregation_s(const SwitchTree& tree, double bottleneck_bytes_per_s) {
  check(tree);
  check_positive(bottleneck_bytes_per_s, "aggregation: the ring's bandwidth");
  const double gpus =
      static_cast<double>(tree.gpus_per_switch) * static_cast<double>(tree.switches);
  return 2 * (gpus - 1) * tree.model_bytes / (gpus * bottleneck_bytes_per_s);
}

} // namespace reckon
