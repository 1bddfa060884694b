// SPDX-License-Identifier: Apache-2.0
//
// Same input, same bytes: whatever a plan took from an address, a clock, a process or a random
// number would differ from process to process.
#include "fixtures.hpp"

#include "strategies/forest/planner.hpp"
#include "strategies/proxies/planner.hpp"
#include "strategies/proxies/replan.hpp"
#include "strategies/torus/planner.hpp"
#include "support/ranks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <random>

namespace reckon {
namespace {

using namespace test;

/// Allocates blocks of all sizes and frees half of them in random order: what is allocated while
/// the others live has addresses in an order that depends on the seed.
std::vector<std::unique_ptr<char[]>> shuffle_heap(int seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  std::vector<std::unique_ptr<char[]>> blocks(40'000);
  for (auto& block : blocks) {
    block = std::make_unique<char[]>(1 + random() % 600);
  }
  std::shuffle(blocks.begin(), blocks.end(), random);
  blocks.resize(blocks.size() / 2);
  return blocks;
}

void expect_same_in_every_process(const std::function<Plan()>& make) {
  support::run_ranks(3, std::chrono::seconds(240), [&](support::RankProcess& self) {
    const auto blocks = shuffle_heap(self.rank());
    const std::vector<std::string> texts = self.exchange(canonical_text(make()));
    EXPECT_EQ(texts[0], texts[1]);
    EXPECT_EQ(texts[0], texts[2]);
  });
}

const Workload k_model = workload({{"a", 1U << 20U, DType::fp32}, {"b", 77, DType::fp16}});

TEST(SameBytes, OfAPlanOfACluster) {
  expect_same_in_every_process([] { return plan_for(cluster(1e9, 7e8), k_model, 5, 3, {}); });
}

TEST(SameBytes, OfAPlanInsideAMachine) {
  expect_same_in_every_process([] {
    return plan_inside({shipped_profile("byteps-nvlink"), k_model, {}, {}},
                       {.inside = {.network = 1}});
  });
}

TEST(SameBytes, OfAPlanOfATorus) {
  expect_same_in_every_process([] {
    const Profile profile = cluster(1e9, 1e9);
    return plan_torus(inputs_of(profile, k_model, default_roles(profile, 8, 0, 2)),
                      {.strategy = "torus"}, {2, 2, 2});
  });
}

TEST(SameBytes, OfAPlanOverMemoryDevicesAndOfTheOneThatReplacesIt) {
  expect_same_in_every_process([] {
    Profile profile = shipped_profile("coarse-v100");
    Roles roles;
    roles.groups = {{"gpu0", 1, true, false, 1},
                    {"gpu1", 1, true, false, 1},
                    {"dev0", 1, false, true, 1},
                    {"dev1", 1, false, true, 1}};
    const PlanInputs inputs = inputs_of(profile, k_model, roles);
    const Plan plan = plan_proxies(inputs, {.strategy = "coarse"}, {});
    const ProxyRequest request = proxy_request_of(plan, profile, {});
    for (Cell& cell : profile.cells) {
      if (cell.key.to == "dev1" && cell.unit == "bytes_per_second") {
        cell.min = cell.p50 = cell.p99 = cell.max = cell.p50 / 8;
      }
    }
    return replan(plan, inputs, request).plan;
  });
}

} // namespace
} // namespace reckon
