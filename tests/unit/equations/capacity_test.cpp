// SPDX-License-Identifier: Apache-2.0
#include "equations/capacity.hpp"

#include "support/random_cases.hpp"
#include "support/refusals.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

namespace reckon {
namespace {

/// PBox: ten interfaces of 56 Gb/s; ResNet-50, a batch of 32 at 190 images a second (PHub table 1).
constexpr double k_resnet50_bytes = 102'228'128;
ServerBox pbox() {
  ServerBox box;
  box.interfaces = 10;
  box.interface_bytes_per_s = 7e9;
  return box;
}
WorkerDemand resnet50() {
  return {k_resnet50_bytes, 32.0 / 190};
}

TEST(Capacity, OfPbox) {
  // 70e9 B/s x 0.16842 s / 102.228 MB = 115.3: below the 120 of the paper.
  const BoxCapacity capacity = box_capacity(pbox(), resnet50());
  EXPECT_EQ(capacity.interface_limit, 115U);
  EXPECT_EQ(capacity.workers, 115U);
  EXPECT_FALSE(capacity.memory_limit);
  EXPECT_FALSE(capacity.sum_limit);
  // 120 need 182.6 images a second or fewer: 7e10 x 32 / (120 x 102.228e6) = 182.60.
  EXPECT_EQ(box_capacity(pbox(), {k_resnet50_bytes, 32.0 / 182.5}).workers, 120U);
  EXPECT_EQ(box_capacity(pbox(), {k_resnet50_bytes, 32.0 / 182.7}).workers, 119U);
}

TEST(Capacity, IsThatOfTheNarrowestPlace) {
  ServerBox box = pbox();
  const WorkerDemand demand{1e9, 1};
  EXPECT_EQ(box_capacity(box, demand).workers, 70U);
  box.memory_bytes_per_s = 100e9; // each worker's 1 GB is written and read: 50
  BoxCapacity capacity = box_capacity(box, demand);
  EXPECT_EQ(capacity.memory_limit, 50U);
  EXPECT_EQ(capacity.limited_by, BoxLimit::memory);
  box.sum_bytes_per_s = 40e9;
  capacity = box_capacity(box, demand);
  EXPECT_EQ(capacity.sum_limit, 40U);
  EXPECT_EQ(capacity.workers, 40U);
  EXPECT_EQ(capacity.limited_by, BoxLimit::sums);
  box.step_bytes_per_s = 4e9; // a step takes a quarter of the second: 30 are left
  EXPECT_EQ(box_capacity(box, demand).sum_limit, 30U);
  box.step_bytes_per_s = 0.5e9; // two seconds: no worker at all
  EXPECT_EQ(box_capacity(box, demand).workers, 0U);
  box.sum_bytes_per_s.reset();
  EXPECT_EQ(box_capacity(box, demand).workers, 0U);
}

TEST(Boxes, AreTheFewestThatKeepTheIteration) {
  test::for_cases(7, 300, [](test::Random& random) {
    const auto rate = [&] { return random.uniform(1e8, 1e11); };
    const auto maybe = [&] { return random.coin() ? std::optional(rate()) : std::nullopt; };
    const ServerBox box{random.whole(1, 10), rate(), maybe(), maybe(), maybe()};
    const WorkerDemand demand{rate() / 100, random.uniform(0.01, 2)};
    const std::uint64_t workers = random.whole(1, 500);
    const double link = 2 * demand.gradient_bytes / demand.iteration_s; // is never the limit
    const std::uint64_t boxes = boxes_needed(box, demand, workers, link);
    EXPECT_LE(iteration_with_boxes_s(box, demand, boxes, workers, link),
              demand.iteration_s * (1 + 1e-8));
    if (boxes > 1) {
      EXPECT_GT(iteration_with_boxes_s(box, demand, boxes - 1, workers, link), demand.iteration_s);
    }
    const BoxCapacity capacity = box_capacity(box, demand);
    EXPECT_EQ(capacity.workers >= workers, boxes == 1);
  });
}

// 1 GB over a link of 1 GB/s takes 1 s, though it computes for 0.1 s: PBox's 70 GB/s serve 70
// workers in that time, and 140 are two boxes. For 0.1 s alone they would be 20.
TEST(Boxes, AreNoMoreThanTheWorkersLinkCanUse) {
  const WorkerDemand demand{1e9, 0.1};
  EXPECT_EQ(boxes_needed(pbox(), demand, 70, 1e9), 1U);
  EXPECT_EQ(boxes_needed(pbox(), demand, 140, 1e9), 2U);
  EXPECT_EQ(boxes_needed(pbox(), demand, 140, 1e11), 20U);
}

TEST(Boxes, AreNoFasterThanTheWorkersLink) {
  EXPECT_DOUBLE_EQ(iteration_with_boxes_s(pbox(), {1e9, 0.1}, 4, 8, 2e9), 0.5);
}

// 20 workers at 3, a box at 10, a server at 2; 1 GB over 1 GB/s takes the second that they compute.
TEST(Placements, CostWhatTheirMachinesCost) {
  const auto placements = server_placements(pbox(), {1e9, 1}, 20, 1e9, BoxPrices{3, 10, 2});
  ASSERT_EQ(placements.size(), 3U);
  EXPECT_EQ(placements[0].servers, 1U);
  EXPECT_DOUBLE_EQ(placements[0].iteration_s, 1);
  EXPECT_DOUBLE_EQ(placements[0].cost, 70);
  EXPECT_DOUBLE_EQ(placements[0].workers_per_cost, 20.0 / 70);
  EXPECT_EQ(placements[1].servers, 0U); // a shard on each worker: 2 x 19/20 s
  EXPECT_DOUBLE_EQ(placements[1].iteration_s, 1.9);
  EXPECT_DOUBLE_EQ(placements[1].cost, 60);
  EXPECT_EQ(placements[2].servers, 20U);
  EXPECT_DOUBLE_EQ(placements[2].iteration_s, 1);
  EXPECT_DOUBLE_EQ(placements[2].cost, 100);
  // A server without a price is not compared by price.
  EXPECT_EQ(server_placements(pbox(), {1e9, 1}, 20, 1e9, BoxPrices{3, 10, {}}).size(), 2U);
}

// 140 GB a second are two of PBox's 70; on one of them an iteration takes two seconds.
TEST(Placements, CompareSeveralBoxesWithOne) {
  const auto placements = server_placements(pbox(), {1e9, 1}, 140, 1e10, std::nullopt);
  ASSERT_EQ(placements.size(), 4U);
  EXPECT_EQ(placements[0].servers, 2U);
  EXPECT_DOUBLE_EQ(placements[0].iteration_s, 1);
  EXPECT_EQ(placements[1].servers, 1U);
  EXPECT_DOUBLE_EQ(placements[1].iteration_s, 2);
  EXPECT_EQ(placements[0].cost, 0);
}

TEST(CapacityInput, IsChecked) {
  EXPECT_ERROR(box_capacity(pbox(), {0, 1}));
  EXPECT_ERROR(box_capacity(pbox(), {1, -1}));
  ServerBox box = pbox();
  box.sum_bytes_per_s = 0;
  EXPECT_ERROR(box_capacity(box, {1, 1}));
  box = pbox();
  box.interfaces = 0;
  EXPECT_ERROR(box_capacity(box, {1, 1}));
}

} // namespace
} // namespace reckon
