// SPDX-License-Identifier: Apache-2.0
#include "expect/nvlink_domain.hpp"

#include "core/error.hpp"
#include "expect/judged_log.hpp"
#include "support/gpu_machines.hpp"
#include "support/messages.hpp"

#include <gmock/gmock.h>

namespace reckon {
namespace {

using test::ceiling;

/// Four GPUs with 900 GB/s each to switches that sum, and four NICs of 50 GB/s.
Profile tray() {
  return test::profile_of({.gpus = 4,
                           .nvlink = 900e9,
                           .sums = true,
                           .pcie = PcieLink{32e9, 16},
                           .nics = 4,
                           .nic = 50e9});
}

Expected all_reduce(const Profile& profile, std::size_t machines) {
  return expected_of(profile,
                     {.machine = "m0",
                      .gpus = profile.topology.ids_in("m0", ObjectKind::gpu),
                      .machines = machines},
                     {&asked_collective("all_reduce", "")})
      .front();
}

TEST(NvlinkDomain, RanksOfSeveralHostsSendOverTheirNvlinks) {
  const Expected apart = all_reduce(tray(), 2),
                 joined = all_reduce(joined_by_nvlink(tray(), "m0", 2), 1);
  EXPECT_EQ(joined.ranks, 8U);
  EXPECT_NEAR(ceiling(apart, "ring"), 200, 1e-6); // 4 x 50
  EXPECT_NEAR(ceiling(joined, "ring"), 900, 1e-6);
  // 1 + 1/8 gradients leave each GPU: 900 / 1.125 = 800, times 2 * 7/8.
  EXPECT_NEAR(ceiling(joined, "nvls"), 1400, 1e-6);
}

TEST(NvlinkDomain, SeveralOfThemAreJoinedByTheNicsOfAllTheirHosts) {
  EXPECT_NEAR(ceiling(all_reduce(joined_by_nvlink(tray(), "m0", 2), 2), "ring"), 400, 1e-6);
  EXPECT_NEAR(ceiling(all_reduce(joined_by_nvlink(tray(), "m0", 3), 2), "ring"), 600, 1e-6);
}

/// Hosts with GPUs 0, 1, ... at the same addresses each; 1 GB in 2 ms.
Profile log_of(std::size_t hosts, int gpus) {
  Profile log;
  for (std::size_t h = 0; h < hosts; ++h) {
    const std::string id = fmt::format("m{}", h);
    log.machines.push_back({.id = id});
    log.topology.objects.push_back({.id = id});
    for (int i = 0; i < gpus; ++i) {
      log.topology.objects.push_back({.id = fmt::format("{}/gpu{}", id, i),
                                      .kind = ObjectKind::gpu,
                                      .parent = id,
                                      .pci_address = fmt::format("0000:0{}:00.0", i)});
    }
  }
  Cell& cell = log.cells.emplace_back();
  cell.key.test = "nccl_all_reduce";
  cell.key.bytes = 1'000'000'000;
  cell.unit = "seconds";
  cell.status = CellStatus::published;
  cell.p50 = 0.002;
  return log;
}

TEST(NvlinkDomain, ALogsHostsAreGroupedInTheirOrder) {
  const Profile joined = joined_log(log_of(4, 2), 2, 4);
  ASSERT_EQ(joined.machines.size(), 2U);
  EXPECT_EQ(joined.machines[1].id, "m2");
  // GPUs 0 and 1 of a second host of four are GPUs 4 and 5.
  EXPECT_THAT(joined.topology.ids_in("m2", ObjectKind::gpu),
              ::testing::ElementsAre("m2/gpu0", "m2/gpu1", "m2/gpu4", "m2/gpu5"));
}

TEST(NvlinkDomain, ALogIsJudgedByTheGpusOfAllItsHosts) {
  Profile box = tray();
  for (int i = 0; i < 4; ++i) { // known by their addresses, which both hosts have
    TopologyObject& gpu = box.topology.objects[static_cast<std::size_t>(6 + i)];
    ASSERT_EQ(gpu.kind, ObjectKind::gpu);
    gpu.pci_address = fmt::format("0000:0{}:00.0", i);
  }
  const JudgedLog log = judged_log(joined_by_nvlink(box, "m0", 2), joined_log(log_of(2, 4), 2, 4));
  ASSERT_EQ(log.collectives.size(), 1U);
  EXPECT_EQ(log.collectives[0].expected.ranks, 8U);
  EXPECT_EQ(log.collectives[0].judgement, Judgement::normal); // 875 of 1400 GB/s
  EXPECT_EQ(judged_log(box, log_of(2, 4)).collectives[0].judgement, Judgement::description);
}

TEST(NvlinkDomain, IsRefusedWhereNothingCouldJoinHosts) {
  Profile none = test::profile_of({.gpus = 2, .nvlink = 100e9, .switched = false});
  EXPECT_THROW(static_cast<void>(joined_by_nvlink(none, "m0", 2)), Error);
  Profile measured = tray();
  measured.cells.emplace_back();
  EXPECT_THROW(static_cast<void>(joined_by_nvlink(measured, "m0", 2)), Error);
  EXPECT_THROW(static_cast<void>(joined_log(log_of(4, 2), 3, 4)), Error);
}

} // namespace
} // namespace reckon
