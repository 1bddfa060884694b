// SPDX-License-Identifier: Apache-2.0
#include "probe/gpu_pairs.hpp"

#include "core/error.hpp"
#include "discover/discover.hpp"
#include "documents/cells.hpp"
#include "fakes.hpp"
#include "movers/cuda.hpp"
#include "support/fake_gpus.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <map>
#include <set>

namespace reckon {
namespace {

using support::FakeGpus;
using testing::HasSubstr;

/// This machine with made-up GPUs below its first NUMA node. Their memory is shared by processes.
struct Machine {
  explicit Machine(int count, bool thorough = false) : gpus(count), topology(discover_topology()) {
    gpus.let_all_be_peers();
    std::erase_if(topology.objects,
                  [](const TopologyObject& o) { return o.kind == ObjectKind::gpu; });
    const std::string node = topology.of_kind(ObjectKind::numa_node).front()->id;
    for (int i = 0; i < count; ++i) {
      ids.push_back("m0/gpu" + std::to_string(i));
      test::add(topology, ids.back(), ObjectKind::gpu, node).pci_address =
          gpus.devices()[static_cast<std::size_t>(i)].pci_address;
    }
    bench.emplace(topology, "m0", clock, 1, std::function<bool()>());
    options.sizes = {4096, 65536};
    options.parts = {16384};
    options.thorough = thorough;
    options.hang_limit = Seconds(60);
    options.started = [this](pid_t pid) { pids.push_back(pid); };
    options.make = [this](const MoverPlace& place) {
      return make_cuda_mover(place.host_memory ? nullptr : &gpus, place);
    };
    if (thorough) {
      bench->measure_thoroughly();
    }
  }
  [[nodiscard]] std::shared_ptr<GpuPairs> pairs() {
    return std::make_shared<GpuPairs>(gpu_pair_places(*bench, topology, ids), options, clock);
  }
  /// On a clock that stands still: each cell is measured once.
  std::vector<Cell> measure(bool start = true) {
    const auto all = pairs();
    if (start) {
      all->start();
    }
    std::vector<Cell> cells;
    for (const CellPlan& plan : gpu_pairs_campaign(all).plans) {
      cells.push_back(test::measured(plan, Seconds(0)));
    }
    return cells;
  }

  FakeGpus gpus;
  Topology topology;
  test::FakeClock clock;
  std::optional<Workbench> bench;
  std::vector<std::string> ids;
  GpuPairOptions options;
  std::vector<pid_t> pids;
};

TEST(GpuPairs, MeasureWritesBetweenGpusAndHostMemoryThatBringTheRightData) {
  Machine machine(2);
  const std::string node = machine.bench->nodes()[0].id;
  std::map<std::string, std::set<std::pair<std::string, std::string>>> pairs; // by case
  const std::vector<Cell> cells = machine.measure();
  for (const Cell& cell : cells) {
    EXPECT_TRUE(cell.has_value()) << cell.key.text() << ": " << cell.reason;
    EXPECT_GT(cell.p50, 0) << cell.key.text();
    EXPECT_EQ(cell.key.transport, "cuda");
    pairs[cell.key.test].emplace(cell.key.from, cell.key.to);
    if (cell.key.test == k_pair_bandwidth) {
      EXPECT_THAT(cell.reason, HasSubstr(" in flight"));
    }
  }
  const std::set<std::pair<std::string, std::string>> all{
      {"m0/gpu0", "m0/gpu1"}, {"m0/gpu1", "m0/gpu0"}, {"m0/gpu0", node},
      {node, "m0/gpu0"},      {"m0/gpu1", node},      {node, "m0/gpu1"}};
  EXPECT_EQ(pairs[k_pair_latency], all);
  EXPECT_EQ(pairs[k_pair_write], all);
  EXPECT_EQ(pairs[k_pair_bandwidth], all);
  EXPECT_EQ(cells.size(), all.size() * (1 + 2 + 2)); // a latency, two sizes, one and two ways
  EXPECT_EQ(machine.pids.size(), 3U);                // one for each place, whatever was measured
}

TEST(GpuPairs, NoticeWritesThatBringNothing) {
  Machine machine(1);
  machine.gpus.lose_copies = true;
  for (const Cell& cell : machine.measure()) {
    const bool data = cell.key.test != k_pair_latency;
    EXPECT_EQ(cell.status == CellStatus::mismatch, data) << cell.key.text() << ": " << cell.reason;
  }
}

TEST(GpuPairs, OfAProcessThatDiedAllCellsThatFollowSaySo) {
  Machine machine(1);
  const auto pairs = machine.pairs();
  pairs->start();
  const std::vector<CellPlan> plans = gpu_pairs_campaign(pairs).plans;
  EXPECT_TRUE(test::measured(plans[0], Seconds(0)).has_value());
  ASSERT_EQ(::kill(machine.pids.front(), SIGKILL), 0);
  for (const std::size_t at : {1U, 2U, 0U}) {
    const Cell cell = test::measured(plans[at], Seconds(0));
    EXPECT_EQ(cell.status, CellStatus::failed);
    EXPECT_EQ(cell.reason.starts_with("given up after this: "), at != 1U) << cell.reason;
  }
  EXPECT_EQ(machine.pids.size(), 2U); // none was started again
}

TEST(GpuPairs, WithoutProcessesHaveTheSameCellsAndSayWhy) {
  Machine machine(1);
  const std::vector<Cell> measured = machine.measure();
  for (const bool start : {false, true}) {
    machine.options.make = [](const MoverPlace&) -> std::unique_ptr<Mover> {
      fail(ErrorKind::unavailable, "no GPU answers");
    };
    const std::vector<Cell> cells = machine.measure(start);
    ASSERT_EQ(cells.size(), measured.size());
    for (std::size_t i = 0; i < cells.size(); ++i) {
      EXPECT_EQ(cells[i].key, measured[i].key);
      EXPECT_EQ(cells[i].status, start ? CellStatus::unsupported : CellStatus::failed);
      EXPECT_THAT(cells[i].reason, HasSubstr(start ? "no GPU answers" : "were not started"));
    }
  }
}

TEST(GpuPairs, OfManyGpusUsuallyAreANeighbourAndOneFarAway) {
  const auto flows = [](int gpus, bool thorough, bool gpu_to_gpu) {
    Machine machine(gpus, thorough);
    machine.options.gpu_to_gpu = gpu_to_gpu;
    std::size_t with_host = 0, between = 0;
    for (const Flow& flow : machine.pairs()->flows()) {
      ++(flow.from < gpus && flow.to < gpus ? between : with_host);
    }
    const std::size_t nodes = thorough ? machine.bench->nodes().size() : 1;
    EXPECT_EQ(with_host, 2 * static_cast<std::size_t>(gpus) * nodes);
    return between;
  };
  EXPECT_EQ(flows(1, true, true), 0U);
  EXPECT_EQ(flows(4, false, true), 12U); // all
  EXPECT_EQ(flows(8, false, true), 24U); // the one before, the one after, the one opposite
  EXPECT_EQ(flows(8, true, true), 56U);
  EXPECT_EQ(flows(8, true, false), 0U);
}

} // namespace
} // namespace reckon
