// SPDX-License-Identifier: Apache-2.0
#include "expect/ceilings.hpp"

#include "core/error.hpp"
#include "expect/routes.hpp"
#include "strategies/forest/switch_sums.hpp"
#include "support/gpu_machines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

namespace reckon {
namespace {

using test::ceiling;
using test::expected;
using test::GpuMachine;

constexpr PcieLink k_gen5_x16{32e9, 16}, k_gen5_x4{32e9, 4};

/// Eight GPUs of 450 GB/s on a switch that sums, and eight NICs of 50 GB/s.
GpuMachine hopper() {
  return {.gpus = 8,
          .nvlink = 450e9,
          .sums = true,
          .pcie = k_gen5_x16,
          .nics = 8,
          .nic = 50e9,
          .nic_pcie = k_gen5_x16};
}

TEST(Ceilings, OfOneMachineWithASwitchThatSums) {
  const Expected reduce = expected(hopper(), 1);
  // A ring: 2 (n - 1) / n gradients leave each GPU, which is the bus bandwidth's factor.
  EXPECT_NEAR(ceiling(reduce, "ring"), 450, 1e-6);
  // 1 + 1/8 gradients leave each GPU: 450 / 1.125 = 400, times 2 * 7/8.
  EXPECT_NEAR(ceiling(reduce, "nvls"), 700, 1e-6);
  EXPECT_NEAR(ceiling(reduce, "any"), 700, 1e-6);
  EXPECT_EQ(ceiling(reduce, "tree"), 0);
  // Each GPU gives all it has once to be summed, or takes all once: 450 * 7/8.
  EXPECT_NEAR(ceiling(expected(hopper(), 1, "reduce_scatter"), "nvls"), 393.75, 1e-6);
  EXPECT_NEAR(ceiling(expected(hopper(), 1, "all_gather"), "nvls"), 393.75, 1e-6);
  EXPECT_NEAR(ceiling(expected(hopper(), 1, "all_gather"), "any"), 450, 1e-6);
  EXPECT_EQ(ceiling(expected(hopper(), 1, "broadcast"), "nvls"), 0);
  // 1/8 to each of 7 others: 450 / (7/8) times 7/8.
  EXPECT_NEAR(ceiling(expected(hopper(), 1, "alltoall"), "direct"), 450, 1e-6);
  EXPECT_NEAR(ceiling(expected(hopper(), 1, "sendrecv"), "direct"), 450, 1e-6);
  // The root takes 1/8 from each of 7.
  EXPECT_NEAR(ceiling(expected(hopper(), 1, "gather"), "direct"), 450, 1e-6);
  GpuMachine no_sums = hopper();
  no_sums.sums = false;
  EXPECT_EQ(ceiling(expected(no_sums, 1), "nvls"), 0);
  EXPECT_NEAR(ceiling(expected(no_sums, 1), "any"), 450, 1e-6);
}

TEST(Ceilings, OfTwoMachinesATreeHasNoRingsFactor) {
  const Expected reduce = expected(hopper(), 2);
  // By a ring 2 * 15/16 gradients leave a machine through 400 GB/s; by a tree one does, and the bus
  // bandwidth counts 2 * 15/16 of it.
  EXPECT_NEAR(ceiling(reduce, "ring"), 400, 1e-6);
  EXPECT_NEAR(ceiling(reduce, "nvls_tree"), 750, 1e-6);
  // A chain inside passes 7 of 8 GPUs up and down: 450 / (2 * 7/8) * 2 * 15/16.
  EXPECT_NEAR(ceiling(reduce, "tree"), 450 / 1.75 * 1.875, 1e-3);
  // 1/16 to each of 8 GPUs in the other machine, from each of 8: 400 / 4 * 15/16.
  EXPECT_NEAR(ceiling(expected(hopper(), 2, "alltoall"), "direct"), 93.75, 1e-6);
  // One GPU of each sends to the other machine, by its own NIC.
  EXPECT_NEAR(ceiling(expected(hopper(), 2, "sendrecv"), "direct"), 50, 1e-6);
  // Each GPU takes 15/16 by its NVLinks and by PCIe, from any NIC: 450 + 63.0.
  EXPECT_NEAR(ceiling(expected(hopper(), 2, "all_gather"), "any"), 450 + 63.015, 1e-2);
  EXPECT_EQ(ceiling(reduce, "sharp"), 0);
}

TEST(Ceilings, OfThreeRacksOfFourWithoutSums) {
  const GpuMachine rack{.gpus = 4, .nvlink = 900e9, .nics = 4, .nic = 50e9};
  const Expected reduce = expected(rack, 3);
  EXPECT_NEAR(ceiling(reduce, "ring"), 200, 1e-6);
  // Published: 234.43 of it. One rack sends 1.5 gradients: 200 / 1.5 * 2 * 11/12.
  EXPECT_NEAR(ceiling(reduce, "tree"), 244.44, 0.01);
  // The best of all trees: 4/3 gradients: 200 / (4/3) * 2 * 11/12.
  EXPECT_NEAR(ceiling(reduce, "any"), 275, 0.01);
  // Switches that sum: one gradient leaves each: 200 * 2 * 11/12.
  EXPECT_NEAR(ceiling(expected(rack, 3, "all_reduce", true), "sharp"), 366.67, 0.01);
}

TEST(Ceilings, BeginAtTheRanksAndNotAtTheMachinesPorts) {
  // One GPU at PCIe 5.0 x16 (63.0 GB/s) and four ports of 50 GB/s, of which one is beside it.
  Profile box = test::profile_of(
      {.gpus = 1, .pcie = k_gen5_x16, .nics = 4, .nic = 50e9, .nic_pcie = k_gen5_x16});
  for (std::size_t i = 1; i < 4; ++i) {
    TopologyObject& nic = box.topology.objects[4 + i];
    ASSERT_EQ(nic.kind, ObjectKind::nic);
    nic.parent = "m0/numa0";
  }
  const Expected two = expected_of(box, {.machine = "m0", .gpus = {"m0/gpu0"}, .machines = 2},
                                   {&asked_collective("all_reduce", "")})
                           .front();
  EXPECT_NEAR(ceiling(two, "ring"), 50, 1e-6);
  EXPECT_NEAR(ceiling(two, "any"), 32e9 * 16 / 8 * 128 / 130 / 1e9, 1e-6);
  EXPECT_THAT(two.ways.front().by, ::testing::Contains("port nic0"));
}

TEST(Ceilings, AGpuFarFromTheNicReachesItByOneThatIsNear) {
  // GPU 1 has PCIe 3.0 x1 (0.98 GB/s) to the processor and NVLinks to GPU 0, which is beside the
  // NIC: a ring that leaves the machine from GPU 1 goes by GPU 0.
  Profile box = test::profile_of({.gpus = 2,
                                  .nvlink = 100e9,
                                  .switched = false,
                                  .pcie = k_gen5_x16,
                                  .nics = 1,
                                  .nic = 50e9,
                                  .nic_pcie = k_gen5_x16});
  TopologyObject& far = box.topology.objects[4];
  ASSERT_EQ(far.id, "m0/gpu1");
  far.parent = "m0/numa0";
  far.pcie = PcieLink{8e9, 1};
  const Expected two =
      expected_of(box, {.machine = "m0", .gpus = {"m0/gpu0", "m0/gpu1"}, .machines = 2},
                  {&asked_collective("all_reduce", "")})
          .front();
  EXPECT_NEAR(ceiling(two, "ring"), 50, 1e-6);
}

TEST(Ceilings, FunctionsOfOnePortShareItsCable) {
  // Two functions at PCIe 5.0 x4 (15.75 GB/s each) with 25 GB/s: a cable each, or one for both.
  GpuMachine spark{.gpus = 1, .pcie = k_gen5_x16, .nics = 2, .nic = 25e9, .nic_pcie = k_gen5_x4};
  EXPECT_NEAR(ceiling(expected(spark, 2, "all_gather"), "ring"), 31.508, 1e-3);
  EXPECT_EQ(expected(spark, 2, "all_gather").ways.front().usual.value().share.through, "pcie");
  spark.cable = "qsfp0";
  EXPECT_NEAR(ceiling(expected(spark, 2, "all_gather"), "ring"), 25, 1e-6);
  EXPECT_NEAR(ceiling(expected(spark, 2, "all_gather"), "any"), 25, 1e-6);
  EXPECT_EQ(name_of(judged(expected(spark, 2, "all_gather"), 23.74e9)), "normal");
}

TEST(Ceilings, AMeasuredMachineCountsBesideItsPorts) {
  Profile box = test::profile_of(hopper());
  Cell& cell = box.cells.emplace_back();
  cell.key.test = "port_bandwidth";
  cell.key.from = "m0";
  cell.unit = "bytes_per_second";
  cell.status = CellStatus::published;
  cell.p50 = cell.min = cell.max = cell.p99 = 4e9;
  const Expected two =
      expected_of(
          box, {.machine = "m0", .gpus = box.topology.ids_in("m0", ObjectKind::gpu), .machines = 2},
          {&asked_collective("all_reduce", "")})
          .front();
  EXPECT_NEAR(ceiling(two, "ring"), 4, 1e-6);
}

TEST(Ceilings, OfAMeshAreThoseOfAllItsRings) {
  // Seven links of 64 GB/s each: rings over all of them, each in both directions, fill every link.
  const GpuMachine mesh{.gpus = 8, .nvlink = 448e9, .switched = false};
  EXPECT_NEAR(ceiling(expected(mesh, 1), "ring"), 448, 1e-3);
  EXPECT_NEAR(ceiling(expected(mesh, 1, "alltoall"), "direct"), 448, 1e-3);
}

TEST(Ceilings, GrowNeverWhenALinkGetsSlower) {
  std::mt19937_64 random(20261129);
  for (int i = 0; i < 200; ++i) {
    SCOPED_TRACE(i);
    const auto of = [&](int least, int most) {
      return std::uniform_int_distribution<int>(least, most)(random);
    };
    GpuMachine machine{.gpus = of(1, 6),
                       .nvlink = of(0, 1) * of(50, 900) * 1e9,
                       .switched = of(0, 1) == 1,
                       .sums = of(0, 1) == 1,
                       .pcie = k_gen5_x16,
                       .nics = of(1, 6),
                       .nic = of(10, 60) * 1e9,
                       .nic_pcie = k_gen5_x16};
    const std::vector<const char*> names{"all_reduce", "all_gather", "alltoall", "broadcast"};
    const std::string collective = names[static_cast<std::size_t>(of(0, 3))];
    const auto machines = static_cast<std::size_t>(of(2, 5));
    const Expected before = expected(machine, machines, collective);
    machine.nic *= 0.5;
    machine.nvlink *= of(0, 1) == 1 ? 0.5 : 1;
    const Expected after = expected(machine, machines, collective);
    ASSERT_EQ(before.ways.size(), after.ways.size());
    for (const WayCeiling& way : before.ways) {
      EXPECT_LE(ceiling(after, way.way), ceiling(before, way.way) * (1 + 1e-6));
      EXPECT_LE(ceiling(before, way.way), before.most() / 1e9 * (1 + 1e-6)) << way.way;
    }
  }
}

TEST(Ceilings, AreNeverAboveTheBoundThatAPlanSays) {
  std::mt19937_64 random(20261130);
  for (int i = 0; i < 200; ++i) {
    SCOPED_TRACE(i);
    const auto of = [&](int least, int most) {
      return std::uniform_int_distribution<int>(least, most)(random);
    };
    const GpuMachine machine{.gpus = of(4, 8), .nvlink = of(50, 900) * 1e9, .sums = true};
    Prediction trees; // a bound that any saves something of
    trees.bound_seconds = 1;
    const std::optional<SwitchSums> sums = switch_sums(
        network_inside_machine(test::profile_of(machine), "m0",
                               {.relays = std::vector<std::string>(), .switches = true}),
        1, trees);
    ASSERT_TRUE(sums);
    const Expected reduce = expected(machine, 1);
    EXPECT_NEAR(reduce.bus_factor / sums->bound_seconds, reduce.most(), 1e-6 * reduce.most());
    EXPECT_LE(1e9 * ceiling(reduce, "nvls"), reduce.most() * (1 + 1e-6));
  }
}

TEST(TwoTrees, AreNcclsOfSomeMachines) {
  // By hand: 2: each is a leaf once and a root once. 3: 0 <- 2 <- 1 and 1 <- 0 <- 2: machines 0 and
  // 2 are in the middle once (2 sends) and at an end once. 4: 2 has 1 and 3 below and 0 above, and
  // is 1 in the other tree: (3 + 1) / 2.
  EXPECT_DOUBLE_EQ(two_trees(2).out, 1);
  EXPECT_DOUBLE_EQ(two_trees(3).out, 1.5);
  EXPECT_DOUBLE_EQ(two_trees(4).out, 2);
  for (const std::size_t machines : {5U, 8U, 16U, 33U, 128U}) {
    EXPECT_GE(two_trees(machines).out, 2 - 1.0 / static_cast<double>(machines)) << machines;
    EXPECT_LE(two_trees(machines).out, 2.5) << machines;
  }
}

TEST(CheapestOrder, IsThatOfAllOrders) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 200; ++i) {
    const std::size_t n = 3 + static_cast<std::size_t>(i) % 4;
    const bool closed = i % 2 == 0;
    std::vector<std::vector<double>> cost(n, std::vector<double>(n, 0));
    for (auto& row : cost) {
      for (double& c : row) {
        c = std::uniform_real_distribution<double>(0, 1)(random);
      }
    }
    const auto length = [&](const std::vector<std::size_t>& order) {
      double sum = closed ? cost[order.back()][order.front()] : 0;
      for (std::size_t k = 1; k < order.size(); ++k) {
        sum += cost[order[k - 1]][order[k]];
      }
      return sum;
    };
    std::vector<std::size_t> order(n);
    for (std::size_t k = 0; k < n; ++k) {
      order[k] = k;
    }
    double least = length(order);
    while (std::next_permutation(order.begin() + 1, order.end())) {
      least = std::min(least, length(order));
    }
    EXPECT_NEAR(length(expect_detail::cheapest_order(cost, closed)), least, 1e-12) << i;
  }
}

} // namespace
} // namespace reckon
