// SPDX-License-Identifier: Apache-2.0
#include "planning/collective_bound.hpp"

#include "core/error.hpp"
#include "core/json.hpp"
#include "support/messages.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>

namespace reckon {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

/// GPUs with 300 GB/s each to NVSwitches and 20 GB/s to the processor, which copies between
/// GPUs do not pass, and NICs of 12.5 GB/s.
Profile machine(int gpus, int nics) {
  Profile p;
  p.name = "box";
  p.machines = {{.id = "m0"}};
  auto& objects = p.topology.objects;
  objects = {{.id = "m0"}, {.id = "m0/numa0", .kind = ObjectKind::numa_node, .parent = "m0"}};
  for (int i = 0; i < gpus; ++i) {
    objects.push_back({.id = fmt::format("m0/gpu{}", i),
                       .kind = ObjectKind::gpu,
                       .parent = "m0/numa0",
                       .pci_address = fmt::format("0000:{:02x}:00.0", 16 - i),
                       .pcie_bytes_per_second = 20e9});
  }
  for (int i = 0; i < nics; ++i) {
    objects.push_back({.id = fmt::format("m0/nic{}", i),
                       .kind = ObjectKind::nic,
                       .parent = "m0/numa0",
                       .link_bytes_per_second = 12.5e9});
  }
  objects.push_back({.id = "m0/nvswitch0", .kind = ObjectKind::link_switch, .parent = "m0"});
  for (int i = 0; i < gpus; ++i) {
    p.topology.links.push_back({.from = fmt::format("m0/gpu{}", i),
                                .to = "m0/nvswitch0",
                                .count = 12,
                                .bytes_per_second = 300e9});
  }
  return p;
}

/// As imported: so many hosts with so many GPUs each, 1 GB all-reduced in 10 ms.
Profile measured(int hosts, int gpus, const std::string& test = "nccl_all_reduce") {
  Profile p;
  for (int h = 0; h < hosts; ++h) {
    const std::string id = fmt::format("m{}", h);
    p.machines.push_back({.id = id});
    p.topology.objects.push_back({.id = id});
    for (int i = 0; i < gpus; ++i) {
      p.topology.objects.push_back(
          {.id = fmt::format("{}/gpu{}", id, i), .kind = ObjectKind::gpu, .parent = id});
    }
  }
  Cell& cell = p.cells.emplace_back();
  cell.key.test = test;
  cell.key.bytes = 1'000'000'000;
  cell.key.dtype = "fp32";
  cell.unit = "seconds";
  cell.status = CellStatus::published;
  cell.p50 = 0.01;
  return p;
}

TEST(CollectiveBound, IsTheRateOfTheLinksThatAllRanksSendOver) {
  // 2 (n - 1) gradients arrive at n GPUs with 300 GB/s each: bus bandwidth 300 GB/s for every n. In
  // 10 ms, 1 GB is a bus bandwidth of 2 * 7/8 * 100 GB/s.
  const CollectiveBound bound = bound_of_all_reduce(machine(8, 0), measured(1, 8));
  EXPECT_NEAR(bound.bus_bytes_per_second, 300e9, 1);
  ASSERT_THAT(bound.rows, SizeIs(1));
  EXPECT_EQ(bound.rows[0].test, "nccl_all_reduce fp32");
  EXPECT_NEAR(bound.rows[0].bus_bytes_per_second, 175e9, 1);
  EXPECT_NEAR(bound.rows[0].share, 175.0 / 300, 1e-9);
  EXPECT_THAT(bound.links, Each(HasSubstr("nvswitch0")));
  EXPECT_NEAR(bound_of_all_reduce(machine(8, 0), measured(1, 4)).bus_bytes_per_second, 300e9, 1);
}

TEST(CollectiveBound, BetweenHostsIsThatOfTheirPorts) {
  // Of 2 hosts each sends one gradient over 4 x 12.5 GB/s; n is 16: 2 * 15/16 * 50 GB/s.
  const CollectiveBound bound = bound_of_all_reduce(machine(8, 4), measured(2, 8));
  EXPECT_NEAR(bound.bus_bytes_per_second, 93.75e9, 1);
  EXPECT_THAT(bound.by, HasSubstr("4 ports"));
  EXPECT_EQ(bound.ranks, 16U);
  EXPECT_EQ(bound.hosts, 2U);
}

TEST(CollectiveBound, KnowsAGpuByItsAddressBeforeItsNumber) {
  // GPU 3 has half of its links, and took part as number 0: one gradient at least goes into it, at
  // 150 GB/s.
  Profile box = machine(4, 0);
  box.topology.links[3].bytes_per_second = 150e9;
  Profile log = measured(1, 2);
  EXPECT_NEAR(bound_of_all_reduce(box, log).bus_bytes_per_second, 300e9, 1);
  log.topology.objects[1].pci_address = "0000:0d:00.0";
  EXPECT_NEAR(bound_of_all_reduce(box, log).bus_bytes_per_second, 150e9, 1);
}

std::string refusal(const Profile& box, const Profile& log) {
  try {
    static_cast<void>(bound_of_all_reduce(box, log));
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(CollectiveBound, IsRefusedWithoutWhatItNeeds) {
  EXPECT_THAT(refusal(machine(4, 0), measured(1, 8)), test::Says("m0 has"));
  EXPECT_THAT(refusal(machine(8, 0), measured(1, 8, "nccl_all_gather")),
              HasSubstr("no all_reduce_perf"));
  EXPECT_THAT(refusal(machine(8, 0), measured(1, 1)), StartsWith("one rank alone"));
  Profile unknown = machine(8, 0);
  unknown.topology.links.clear();
  for (TopologyObject& object : unknown.topology.objects) {
    object.pcie_bytes_per_second.reset();
  }
  EXPECT_THAT(refusal(unknown, measured(1, 8)), test::Says("known"));
  // Rates of pairs, one at a time, do not say what all reach at once.
  Cell& pair = unknown.cells.emplace_back();
  pair.key = {.test = "device_to_device_memcpy_write_ce", .from = "m0/gpu0", .to = "m0/gpu1"};
  pair.unit = "bytes_per_second";
  pair.p50 = 20e9;
  pair.samples = {20e9};
  EXPECT_THAT(refusal(unknown, measured(1, 8)), test::Says("pairs"));
}

TEST(CollectiveBound, IsShownWithWhatToMakeOfIt) {
  Profile log = measured(1, 8);
  const auto shown = [&](double seconds) {
    log.cells[0].p50 = seconds;
    return render(bound_of_all_reduce(machine(8, 0), log), {});
  };
  EXPECT_THAT(shown(0.0075), HasSubstr("That is normal")); // 78 %
  EXPECT_THAT(shown(0.01), HasSubstr("NCCL_DEBUG=INFO"));  // 58 %
  // 117 %: what is above the bound is told without percentages.
  EXPECT_THAT(shown(0.005),
              AllOf(HasSubstr("more was measured"), HasSubstr("(NVLS)"), Not(HasSubstr(" %"))));
  const CollectiveBound above = bound_of_all_reduce(machine(8, 0), log);
  EXPECT_TRUE(to_json(above)["rows"][0]["share"].is_null());
}

} // namespace
} // namespace reckon
