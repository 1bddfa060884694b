// SPDX-License-Identifier: Apache-2.0
#include "probe/gpu.hpp"

#include "core/error.hpp"
#include "discover/discover.hpp"
#include "documents/cells.hpp"
#include "documents/contention.hpp"
#include "fakes.hpp"
#include "probe/gpu_places.hpp"
#include "probe/gpu_timer.hpp"
#include "support/fake_gpus.hpp"
#include "support/refusals.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>

namespace reckon {
namespace {

using support::FakeGpus;
using testing::HasSubstr;

constexpr std::uint64_t k_large = 64 * 1024;
constexpr double k_gb = 1e9;

// ---------------------------------------------------------------- the timer

TEST(GpuTimer, DoesNotMeasureTheQueueing) {
  FakeGpus gpus(1);
  gpus.seconds = [](const FakeGpus::Work&) { return 0.1e-6; }; // a tenth of what queueing takes
  std::array<std::byte, 64> from{};
  std::array<std::byte, 64> to{};
  const auto step = [&](GpuStream stream) { return gpus.copy(to.data(), from.data(), 64, stream); };
  GpuTimer gated(gpus, {{0, step}}, true);
  EXPECT_NEAR(gated.time(50).count(), 5e-6, 1e-12);
  EXPECT_NEAR(gated.time(1000).count(), 100e-6, 1e-12); // in several parts
  GpuTimer open(gpus, {{0, step}}, false);
  EXPECT_GT(open.time(50).count(), 49e-6);
}

TEST(GpuTimer, StartsAllFlowsTogetherAndWaitsForTheLast) {
  FakeGpus gpus(2);
  gpus.seconds = [](const FakeGpus::Work& work) { return work.device == 0 ? 10e-6 : 30e-6; };
  std::array<std::byte, 64> memory{};
  const auto step = [&](GpuStream stream) {
    return gpus.copy(memory.data(), memory.data(), 64, stream);
  };
  GpuTimer timer(gpus, {{0, step}, {1, step}}, true);
  EXPECT_NEAR(timer.time(5).count(), 150e-6, 1e-12);
  EXPECT_NEAR(timer.flow_seconds()[0], 50e-6, 1e-12);
  EXPECT_NEAR(timer.flow_seconds()[1], 150e-6, 1e-12);
}

TEST(GpuTimer, VoidsWhatWasTimedBehindAGateThatOpenedByItself) {
  FakeGpus gpus(1);
  gpus.gate_expires = true;
  GpuTimer timer(gpus, {{0, [](GpuStream) { return 0; }}}, true);
  EXPECT_THROW(static_cast<void>(timer.time(1)), Error);
}

TEST(GpuTimer, SaysWhatTheLibrarySaidAndLeavesNothingBehindTheGate) {
  FakeGpus gpus(1);
  GpuTimer timer(gpus, {{0, [](GpuStream) { return 77; }}}, true);
  EXPECT_REFUSED(operation, "made-up error 77", timer.time(3));
  const GpuStream stream = gpus.make_stream(0);
  EXPECT_EQ(gpus.synchronize(stream), 0); // 999 behind a closed gate
  gpus.release(stream);
}

// ---------------------------------------------------------------- the campaigns

/// This machine with made-up GPUs below its first NUMA node.
struct Machine {
  explicit Machine(int count, GpuProbeOptions options = {.nvlink = true, .large_bytes = k_large})
      : gpus(count), topology(discover_topology()) {
    std::string node = "m0";
    for (const TopologyObject* object : topology.of_kind(ObjectKind::numa_node)) {
      node = node == "m0" ? object->id : node;
    }
    std::erase_if(topology.objects,
                  [](const TopologyObject& object) { return object.kind == ObjectKind::gpu; });
    for (int i = 0; i < count; ++i) {
      TopologyObject gpu;
      gpu.id = "m0/gpu" + std::to_string(i);
      gpu.kind = ObjectKind::gpu;
      gpu.parent = node;
      gpu.pci_address = gpus.devices()[static_cast<std::size_t>(i)].pci_address;
      topology.objects.push_back(gpu);
      for (int j = 0; j < count; ++j) {
        gpus.peers.insert({i, j});
      }
    }
    gpus.seconds = [this](const FakeGpus::Work& work) { return seconds_of(work); };
    bench.emplace(topology, "m0", gpus.clock(), 1, std::function<bool()>());
    bench->measure_thoroughly();
    campaigns = gpu_campaigns(gpus, *bench, topology, options);
  }

  /// To a GPU from the host 1 GB/s, back 2, by SM half of it; between GPUs 4 directly and 8 by way
  /// of the host; inside a GPU 16.
  [[nodiscard]] double seconds_of(const FakeGpus::Work& work) const {
    const int from = gpus.device_of(work.from);
    const int to = gpus.device_of(work.to);
    double rate = from < 0 ? 1 * k_gb : 2 * k_gb;
    if (from >= 0 && to >= 0) {
      const bool direct = gpus.has_access(from, to) || gpus.has_access(to, from);
      rate = from == to ? 16 * k_gb : direct ? 4 * k_gb : 8 * k_gb;
    }
    if (work.kind == FakeGpus::Kind::copy_sm) {
      rate = work.blocks > 0 ? std::min(work.blocks, 4) * rate / 8 : rate / 2;
    }
    return work.kind == FakeGpus::Kind::other ? static_cast<double>(work.bytes) * 1e-6
                                              : static_cast<double>(work.bytes) / rate;
  }

  std::vector<Cell> run(std::size_t campaign) {
    std::vector<Cell> cells;
    for (const CellPlan& plan : campaigns[campaign].plans) {
      Cell cell = empty_cell(plan);
      try {
        plan.measure(cell, Seconds(0.005));
      } catch (const Error& error) {
        cell.status =
            error.kind() == ErrorKind::unavailable ? CellStatus::unsupported : CellStatus::failed;
        cell.reason = error.what();
      }
      cells.push_back(std::move(cell));
    }
    campaigns[campaign].end();
    return cells;
  }

  FakeGpus gpus;
  Topology topology;
  std::optional<Workbench> bench;
  std::vector<Campaign> campaigns;
};

const Cell& find(const std::vector<Cell>& cells, const std::string& test, const std::string& from,
                 const std::string& to, const std::string& state) {
  for (const Cell& cell : cells) {
    if (cell.key.test == test && cell.key.from == from && cell.key.to == to &&
        cell.key.state == state) {
      return cell;
    }
  }
  ADD_FAILURE() << "no cell " << test << " " << from << " -> " << to << " " << state;
  return cells.front();
}

TEST(GpuBandwidth, GivesEachWayTheRateThatItHas) {
  Machine machine(2);
  const std::string node = machine.bench->nodes()[0].id;
  const std::vector<Cell> cells = machine.run(0);
  for (const Cell& cell : cells) {
    EXPECT_TRUE(cell.has_value()) << cell.key.text() << ": " << cell.reason;
  }
  const auto rate = [&](const std::string& test, const std::string& from, const std::string& to,
                        const std::string& state) {
    return find(cells, test, from, to, state).p50 / k_gb;
  };
  EXPECT_NEAR(rate(k_host_to_device_ce, node, "m0/gpu0", "pinned"), 1, 1e-3);
  EXPECT_NEAR(rate(k_device_to_host_ce, "m0/gpu1", node, "pinned"), 2, 1e-3);
  EXPECT_NEAR(rate(k_device_to_host_sm, "m0/gpu1", node, "pinned"), 1, 1e-3);
  EXPECT_NEAR(rate(k_device_local_copy, "m0/gpu0", "m0/gpu0", ""), 16, 1e-2);
  // Both are measured, and nothing is assumed about which is faster.
  EXPECT_NEAR(rate(k_device_write_ce, "m0/gpu0", "m0/gpu1", "peer"), 4, 1e-2);
  EXPECT_NEAR(rate(k_device_read_sm, "m0/gpu0", "m0/gpu1", "peer"), 2, 1e-2);
  EXPECT_GT(rate(k_device_write_ce, "m0/gpu0", "m0/gpu1", "staged"), 7); // queueing counts
  // 64 KiB each way at 1 and 2 GB/s: 128 KiB in the time of the slower one, 2 GB/s.
  EXPECT_NEAR(rate(k_host_device_two_way_ce, node, "m0/gpu0", "pinned"), 2, 1e-3);
  EXPECT_THAT(find(cells, k_host_device_two_way_ce, node, "m0/gpu0", "pinned").reason,
              HasSubstr("2.00"));
  EXPECT_EQ(machine.gpus.living(), 0U);
}

TEST(GpuBandwidth, SeesTheCapacityOfALinkThatAllGpusShare) {
  Machine machine(2);
  // One copy at a time between the host and any GPU: 1 GB/s for both together, not 2.
  machine.gpus.needs = [&](const FakeGpus::Work& work) {
    const bool host = machine.gpus.device_of(work.from) < 0 || machine.gpus.device_of(work.to) < 0;
    return host ? std::vector<std::string>{"bridge"} : std::vector<std::string>{};
  };
  const std::vector<Cell> cells = machine.run(0);
  EXPECT_NEAR(find(cells, k_host_to_all_ce, "m0", "m0", "pinned").p50 / k_gb, 1, 1e-3);
  EXPECT_NEAR(find(cells, k_all_to_host_ce, "m0", "m0", "pinned").p50 / k_gb, 2, 1e-3);
}

TEST(GpuBandwidth, NoticesCopiesThatWereNotMade) {
  Machine machine(2);
  machine.gpus.lose_copies = true;
  for (const Cell& cell : machine.run(0)) {
    EXPECT_EQ(cell.status, CellStatus::mismatch) << cell.key.text() << ": " << cell.reason;
  }
}

TEST(GpuBandwidth, SaysWhereGpusCannotReachEachOther) {
  Machine machine(2);
  machine.gpus.peers.clear();
  const std::vector<Cell> cells = machine.run(0);
  for (const char* const test : {k_device_write_ce, k_device_read_ce, k_device_write_sm}) {
    const Cell& cell = find(cells, test, "m0/gpu0", "m0/gpu1", "peer");
    EXPECT_EQ(cell.status, CellStatus::unsupported) << cell.key.text();
    EXPECT_THAT(cell.reason, HasSubstr("cudaDeviceCanAccessPeer"));
  }
  EXPECT_TRUE(find(cells, k_device_write_ce, "m0/gpu0", "m0/gpu1", "staged").has_value());
}

TEST(GpuBandwidth, LeavesNvlinkOutWhenAskedTo) {
  Machine machine(2, {.nvlink = false, .large_bytes = k_large});
  EXPECT_TRUE(find(machine.run(0), k_device_write_ce, "m0/gpu0", "m0/gpu1", "peer").has_value());
  Machine linked(2);
  linked.gpus.atomics = {{0, 1}, {1, 0}};
  linked.campaigns = gpu_campaigns(linked.gpus, *linked.bench, linked.topology,
                                   {.nvlink = false, .large_bytes = k_large});
  const std::vector<Cell> cells = linked.run(0);
  const Cell& cell = find(cells, k_device_write_ce, "m0/gpu0", "m0/gpu1", "peer");
  EXPECT_EQ(cell.status, CellStatus::unsupported);
  EXPECT_THAT(cell.reason, HasSubstr("--no-nvlink"));
  EXPECT_TRUE(find(cells, k_device_write_ce, "m0/gpu0", "m0/gpu1", "staged").has_value());
}

TEST(GpuBandwidth, FailsACellAndNotTheCampaign) {
  Machine machine(1);
  machine.gpus.fail_next_copy = 2;
  const std::vector<Cell> cells = machine.run(0);
  EXPECT_EQ(std::count_if(cells.begin(), cells.end(),
                          [](const Cell& c) { return c.status == CellStatus::failed; }),
            1);
  EXPECT_EQ(machine.gpus.living(), 0U);
}

/// The usual cells of a machine whose GPUs reach each other, or do not.
std::set<CellKey> usual_cells(int gpus, bool peers) {
  Machine machine(gpus);
  if (!peers) {
    machine.gpus.peers.clear();
  }
  Workbench bench(machine.topology, "m0", machine.gpus.clock(), 1, {});
  std::set<CellKey> keys;
  for (const Campaign& campaign :
       gpu_campaigns(machine.gpus, bench, machine.topology, {.large_bytes = k_large})) {
    for (const CellPlan& plan : campaign.plans) {
      EXPECT_TRUE(keys.insert(plan.key).second) << plan.key.text();
    }
  }
  return keys;
}

TEST(GpuCampaigns, UsuallyMeasureEachPairInOneWay) {
  for (const bool peers : {true, false}) {
    std::map<std::string, std::size_t> count;
    for (const CellKey& key : usual_cells(3, peers)) {
      if (key.test == k_device_write_ce) {
        ++count[key.state];
      }
      EXPECT_NE(key.test, k_device_read_sm);
      EXPECT_NE(key.test, k_gpu_copy_blocks);
    }
    EXPECT_EQ(count, (std::map<std::string, std::size_t>{{peers ? "peer" : "staged", 6}}));
  }
}

TEST(GpuCurves, HaveTimesThatGrowWithTheSize) {
  Machine machine(2);
  std::map<CellKey, std::map<std::uint64_t, double>> curves;
  for (const Cell& cell : machine.run(1)) {
    ASSERT_TRUE(cell.has_value()) << cell.key.text() << ": " << cell.reason;
    CellKey key = cell.key;
    key.bytes = 0;
    curves[key][cell.key.bytes] = cell.p50;
  }
  EXPECT_EQ(curves.size(), 8U); // 2 GPUs, down and up; 2 pairs, directly and staged
  for (const auto& [key, curve] : curves) {
    EXPECT_EQ(curve.size(), 5U) << key.text(); // 4, 8, ... 64 KiB
    EXPECT_GT(curve.at(65536), curve.at(16384)) << key.text();
  }
}

TEST(GpuLatency, IsThatOfOneLoadOfAChainThatVisitsEverything) {
  Machine machine(2); // the made-up chase refuses a chain that is not one cycle of all its lines
  for (const Cell& cell : machine.run(2)) {
    ASSERT_TRUE(cell.has_value()) << cell.key.text() << ": " << cell.reason;
    EXPECT_NEAR(cell.p50, 1e-6, 1e-9) << cell.key.text();
  }
}

TEST(GpuKernels, MeasureSumsThatAreRightAndCopiesByTheNumberOfBlocks) {
  Machine machine(2, {.nvlink = true, .large_bytes = 8U << 20U});
  const std::vector<Cell> cells = machine.run(3);
  std::map<int, double> by_blocks;
  std::size_t sums = 0;
  for (const Cell& cell : cells) {
    const bool too_long =
        cell.key.bytes * static_cast<std::uint64_t>(cell.key.sources) > (8U << 20U);
    EXPECT_EQ(cell.has_value(), !too_long) << cell.key.text() << ": " << cell.reason;
    sums += cell.key.test == k_gpu_reduce && cell.has_value() ? 1U : 0U;
    if (cell.key.test == k_gpu_copy_blocks && cell.key.from == "m0/gpu0" &&
        cell.key.to == "m0/gpu0") {
      by_blocks[cell.key.threads] = cell.p50 / k_gb;
    }
  }
  EXPECT_GT(sums, 0U);
  ASSERT_EQ(by_blocks.size(), 4U); // 1, 2, 4, 8
  EXPECT_NEAR(by_blocks.at(1), 2, 1e-2);
  EXPECT_NEAR(by_blocks.at(4), 8, 1e-2);
  EXPECT_NEAR(by_blocks.at(8), 8, 1e-2);
}

TEST(GpuContention, IsSeenInTheTimesOfBoth) {
  Machine machine(1, {.nvlink = true, .large_bytes = 1U << 20U});
  // 1 MiB up at 2 GB/s takes 524 us, and half as long again beside a computation, which is queued
  // after it; the made-up computations take 1 us for each of their size.
  machine.gpus.seconds = [&](const FakeGpus::Work& work) {
    const bool beside = machine.gpus.works.back().kind == FakeGpus::Kind::other;
    return work.kind == FakeGpus::Kind::other ? static_cast<double>(work.bytes) * 1e-9
                                              : machine.seconds_of(work) * (beside ? 1.5 : 1);
  };
  const std::vector<Cell> cells = machine.run(4);
  double alone = 0;
  double together = 0;
  std::size_t measured = 0;
  for (const Cell& cell : cells) {
    measured += cell.has_value() ? 1U : 0U;
    EXPECT_NE(cell.status, CellStatus::failed) << cell.key.text() << ": " << cell.reason;
    if (cell.key.test == k_contention_communication && cell.key.sources == 0) {
      alone = cell.key.operation.empty() ? cell.p50 : alone;
      together = cell.key.operation == "gemm_1000" ? cell.p50 : together;
    }
  }
  EXPECT_GT(measured, cells.size() / 2);
  EXPECT_NEAR(alone, 524e-6, 2e-6);
  EXPECT_NEAR(together, 1.5 * alone, 2e-6);
  EXPECT_EQ(machine.gpus.living(), 0U);
}

TEST(GpuContention, AsksForWhatAceAsksAtEverySize) {
  // Copies and sums of 1, 10 and 100 MiB, under products and lookups of two sizes each, both ways
  // round, and everything alone: 2 x 3 x (1 + 4 + 4) + 4.
  Machine machine(1, {.nvlink = true, .large_bytes = 100U << 20U});
  std::map<std::string, std::size_t> by_operation;
  for (const CellPlan& plan : machine.campaigns[4].plans) {
    ++by_operation[plan.key.operation];
  }
  EXPECT_EQ(by_operation, (std::map<std::string, std::size_t>{{"", 6},
                                                              {"gemm_500", 13},
                                                              {"gemm_1000", 13},
                                                              {"embedding_1000", 13},
                                                              {"embedding_10000", 13}}));
}

TEST(GpuContention, WithoutMatrixProductsSaysSoAndMeasuresTheRest) {
  Machine machine(1, {.nvlink = true, .large_bytes = 1U << 20U});
  machine.gpus.no_gemm = "libcublas.so.13: cannot open shared object file";
  std::size_t others = 0;
  for (const Cell& cell : machine.run(4)) {
    if (cell.key.operation.starts_with("gemm_")) {
      EXPECT_EQ(cell.status, CellStatus::unsupported) << cell.key.text();
      EXPECT_EQ(cell.reason, machine.gpus.no_gemm);
    } else if (cell.has_value()) {
      ++others;
    } else { // the made-up lookups take 1 or 10 s, far longer than a transfer of 1 MiB
      EXPECT_THAT(cell.reason, HasSubstr("too short beside")) << cell.key.text();
    }
  }
  EXPECT_GE(others, 4U); // all that is measured alone
  EXPECT_EQ(machine.gpus.living(), 0U);
}

} // namespace
} // namespace reckon
