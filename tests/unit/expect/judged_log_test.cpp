// SPDX-License-Identifier: Apache-2.0
#include "expect/judged_log.hpp"

#include "core/error.hpp"
#include "core/json.hpp"
#include "support/gpu_machines.hpp"
#include "support/messages.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>

namespace reckon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

/// GPUs with 300 GB/s each to NVSwitches and PCIe 4.0 x16, and NICs of 12.5 GB/s.
Profile machine(int gpus, int nics) {
  Profile p = test::profile_of({.gpus = gpus,
                                .nvlink = 300e9,
                                .pcie = PcieLink{16e9, 16},
                                .nics = nics,
                                .nic = 12.5e9,
                                .nic_pcie = PcieLink{16e9, 16}});
  int address = 16;
  for (TopologyObject& object : p.topology.objects) {
    if (object.kind == ObjectKind::gpu) {
      object.pci_address = fmt::format("0000:{:02x}:00.0", address--);
    }
  }
  return p;
}

/// As imported: so many hosts with so many GPUs each, 1 GB of each test in 10 ms.
Profile measured(int hosts, int gpus, const std::vector<std::string>& tests = {"nccl_all_reduce"}) {
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
  for (const std::string& test : tests) {
    Cell& cell = p.cells.emplace_back();
    cell.key.test = test;
    cell.key.bytes = 1'000'000'000;
    cell.key.dtype = "fp32";
    cell.unit = "seconds";
    cell.status = CellStatus::published;
    cell.p50 = 0.01;
  }
  return p;
}

const JudgedCollective& only(const JudgedLog& log) {
  EXPECT_THAT(log.collectives, SizeIs(1));
  return log.collectives.front();
}

TEST(JudgedLog, HasTheRatesOfTheLinksThatAllRanksSendOver) {
  // A ring's bus bandwidth is that of a GPU's links for every n. In 10 ms, 1 GB is a bus bandwidth
  // of 2 * 7/8 * 100 GB/s.
  const JudgedLog log = judged_log(machine(8, 0), measured(1, 8));
  EXPECT_NEAR(only(log).expected.most(), 300e9, 1);
  ASSERT_THAT(only(log).rows, SizeIs(1));
  EXPECT_EQ(only(log).rows[0].test, "nccl_all_reduce fp32");
  EXPECT_NEAR(only(log).rows[0].bus_bytes_per_second, 175e9, 1);
  EXPECT_NEAR(only(log).rows[0].share, 175.0 / 300, 1e-9);
  EXPECT_NEAR(only(judged_log(machine(8, 0), measured(1, 4))).expected.most(), 300e9, 1);
}

TEST(JudgedLog, OfSeveralHostsIsThatOfTheirPorts) {
  // Of 2 hosts each sends one gradient over 4 x 12.5 GB/s; n is 16: 2 * 15/16 * 50 GB/s.
  const JudgedLog log = judged_log(machine(8, 4), measured(2, 8));
  EXPECT_NEAR(only(log).expected.most(), 93.75e9, 1);
  EXPECT_EQ(only(log).expected.ranks, 16U);
  EXPECT_EQ(only(log).expected.machines, 2U);
}

TEST(JudgedLog, HasEveryCollectiveOfAnOutput) {
  const JudgedLog log =
      judged_log(machine(8, 0), measured(1, 8,
                                         {"nccl_reduce_scatter_in_place", "nccl_all_gather",
                                          "nccl_alltoall", "nccl_sendrecv", "nccl_reduce"}));
  std::vector<std::string> names;
  for (const JudgedCollective& judged : log.collectives) {
    names.push_back(judged.expected.collective);
    EXPECT_NEAR(judged.expected.most(), 300e9, 1) << names.back();
    EXPECT_NEAR(judged.best_bus_bytes_per_second, judged.expected.bus_factor * 100e9, 1);
  }
  EXPECT_THAT(names, ElementsAre("all_gather", "alltoall", "reduce", "reduce_scatter", "sendrecv"));
}

TEST(JudgedLog, KnowsAGpuByItsAddressBeforeItsNumber) {
  // GPU 3 has half of its links, and took part as number 0: one gradient at least goes into it, at
  // 150 GB/s.
  Profile box = machine(4, 0);
  box.topology.links[3].bytes_per_second = 150e9;
  Profile log = measured(1, 2);
  EXPECT_NEAR(only(judged_log(box, log)).expected.most(), 300e9, 1);
  log.topology.objects[1].pci_address = "0000:0d:00.0";
  EXPECT_NEAR(only(judged_log(box, log)).expected.most(), 150e9, 1);
}

std::string refusal(const Profile& box, const Profile& log) {
  try {
    static_cast<void>(judged_log(box, log));
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(JudgedLog, IsRefusedWithoutWhatItNeeds) {
  EXPECT_THAT(refusal(machine(4, 0), measured(1, 8)), test::Says("m0 has"));
  EXPECT_THAT(refusal(machine(8, 0), measured(1, 8, {"stream_copy"})), HasSubstr("nccl-tests"));
  EXPECT_THAT(refusal(machine(8, 0), measured(1, 1)), StartsWith("one rank alone"));
  EXPECT_THAT(refusal(machine(8, 0), measured(2, 8)), test::Says("--nic-rate"));
}

TEST(JudgedLog, SaysWhichFactIsMissingWhereNoRateIsKnown) {
  Profile unknown = machine(8, 0);
  for (PeerLink& link : unknown.topology.links) {
    link.bytes_per_second.reset();
  }
  const JudgedLog log = judged_log(unknown, measured(1, 8));
  EXPECT_EQ(only(log).judgement, Judgement::unknown);
  EXPECT_THAT(render(log, {}), HasSubstr("--gpu"));
  EXPECT_TRUE(to_json(log)["collectives"][0]["measured"][0]["share"].is_null());
}

TEST(JudgedLog, SaysWhatToMakeOfIt) {
  Profile log = measured(1, 8);
  const auto judgement = [&](double seconds) {
    log.cells[0].p50 = seconds;
    return only(judged_log(machine(8, 0), log)).judgement;
  };
  EXPECT_EQ(judgement(0.0075), Judgement::normal);     // 78 %
  EXPECT_EQ(judgement(0.01), Judgement::low);          // 58 %
  EXPECT_EQ(judgement(0.005), Judgement::description); // 117 %
  EXPECT_THAT(render(judged_log(machine(8, 0), log), {}), HasSubstr("sums"));
}

TEST(JudgedLog, OfSeveralRunsJudgesEachByItself) {
  // gpu-2 alone takes twice as long as gpu-0; all three together are 24 ranks on three machines.
  Profile log = measured(3, 8, {"nccl_all_reduce", "nccl_all_reduce", "nccl_all_reduce"});
  for (std::size_t i = 0; i < 3; ++i) {
    log.machines[i].name = fmt::format("gpu-{}", i);
    log.cells[i].key.sources = i == 1 ? 24 : 8;
    log.cells[i].key.from = i == 1 ? "" : log.machines[i].id;
  }
  log.cells[2].p50 *= 2;
  const JudgedLog judged = judged_log(machine(8, 4), log);
  ASSERT_THAT(judged.collectives, SizeIs(3));
  const auto of = [&](const std::vector<std::string>& hosts) {
    return *std::ranges::find(judged.collectives, hosts, &JudgedCollective::hosts);
  };
  EXPECT_NEAR(of({"gpu-0"}).best_bus_bytes_per_second, 175e9, 1);
  EXPECT_NEAR(of({"gpu-2"}).best_bus_bytes_per_second, 87.5e9, 1);
  EXPECT_EQ(of({"gpu-2"}).expected.machines, 1U);
  EXPECT_EQ(of({"gpu-2"}).judgement, Judgement::low);
  const JudgedCollective all = of({"gpu-0", "gpu-1", "gpu-2"});
  EXPECT_EQ(all.expected.ranks, 24U);
  EXPECT_EQ(all.expected.machines, 3U);
}

TEST(JudgedLog, ARunOfFewerRanksThanItsHostHasGpusHasTheFirstOfThese) {
  Profile log = measured(1, 8);
  log.cells[0].key.from = "m0";
  log.cells[0].key.sources = 4;
  EXPECT_EQ(only(judged_log(machine(8, 0), log)).expected.ranks, 4U);
}

TEST(JudgedLog, WrongValuesAreNoRates) {
  Profile log = measured(1, 8, {"nccl_all_reduce", "nccl_all_reduce_in_place"});
  log.cells[1].status = CellStatus::mismatch;
  const JudgedLog judged = judged_log(machine(8, 0), log);
  EXPECT_EQ(only(judged).judgement, Judgement::wrong_values);
  EXPECT_EQ(only(judged).wrong, 1U);
  EXPECT_THAT(only(judged).rows, SizeIs(1));
  EXPECT_EQ(to_json(judged)["collectives"][0]["judgement"], "wrong_values");
}

} // namespace
} // namespace reckon
