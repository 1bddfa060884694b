// SPDX-License-Identifier: Apache-2.0
#include "core/clock.hpp"
#include "discover/cuda.hpp"
#include "documents/cells.hpp"
#include "movers/mover.hpp"
#include "probe/gpu_pairs.hpp"
#include "support/ranks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <sched.h>
#include <span>
#include <string>
#include <utility>
#include <vector>

using namespace std::chrono_literals;

namespace reckon {
namespace {

constexpr std::uint64_t k_bytes = 4U << 20U;

/// Ranks are processes that CUDA must not have seen before they are made: only the driver's
/// presence is looked at here.
class GpuRanks : public testing::Test {
protected:
  void SetUp() override {
    std::vector<std::string> why_not;
    if (gpu_transport(&why_not).empty()) {
      GTEST_SKIP() << why_not.front();
    }
  }
};

void wait_for(MoverLane& lane, Completion::Kind kind, std::size_t wanted) {
  std::array<Completion, 8> some;
  for (std::size_t had = 0; had < wanted;) {
    const std::size_t count = lane.poll(some);
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_NE(some[i].kind, Completion::Kind::failed) << lane.error();
      had += some[i].kind == kind ? 1U : 0U;
    }
    if (count == 0) {
      lane.wait(20ms);
    }
  }
}

/// Rank 0 writes its buffer to rank 1, which adds its own to it, on the GPU, and checks the sum.
void write_and_add(support::RankProcess& self, const std::array<MoverPlace, 2>& places) {
  const auto rank = static_cast<std::size_t>(self.rank());
  const auto mover = make_mover("cuda", {}, places[rank]);
  const std::array<std::span<std::byte>, 2> buffers{mover->allocate(k_bytes),
                                                    mover->allocate(k_bytes)};
  mover->open(1);
  mover->connect(self.rank(), self.exchange(mover->address()));
  const std::span<std::byte> view = mover->view(buffers[0]);
  for (std::uint64_t i = 0; i < k_bytes / 4; ++i) {
    const float value = static_cast<float>(i % 4096) * (rank == 0 ? 1.0F : 2.0F);
    std::memcpy(view.data() + 4 * i, &value, 4);
  }
  mover->push(buffers[0]);
  self.barrier();
  MoverLane& lane = mover->lane(0);
  if (rank == 0) {
    ASSERT_TRUE(lane.write(1, {0, 0}, {1, 0}, k_bytes, 7, 1));
    wait_for(lane, Completion::Kind::sent, 1);
  } else {
    wait_for(lane, Completion::Kind::arrived, 1);
    LocalOp op;
    op.kind = LocalOp::Kind::sum;
    op.to = buffers[0].data();
    const std::array<const void*, 2> sources{buffers[0].data(), buffers[1].data()};
    op.sources = sources;
    op.bytes = k_bytes;
    const Engine::Started started = lane.engine().start(op, 2);
    ASSERT_NE(started, Engine::Started::failed) << lane.error();
    if (started == Engine::Started::pending) {
      wait_for(lane, Completion::Kind::computed, 1);
    }
    mover->pull(buffers[0]);
    for (std::uint64_t i = 0; i < k_bytes / 4; ++i) {
      float value = 0;
      std::memcpy(&value, view.data() + 4 * i, 4);
      ASSERT_EQ(value, 3.0F * static_cast<float>(i % 4096)) << "element " << i;
    }
  }
  mover->disconnect([&] { self.barrier(); });
}

TEST_F(GpuRanks, WriteIntoEachOthersGpuMemoryAndAddThere) {
  support::run_ranks(2, 120s, [](support::RankProcess& self) {
    write_and_add(self, {MoverPlace{0, false}, MoverPlace{1, false}});
  });
}
TEST_F(GpuRanks, WriteFromAGpuIntoAMemoryDevice) {
  support::run_ranks(2, 120s, [](support::RankProcess& self) {
    write_and_add(self, {MoverPlace{0, false}, MoverPlace{0, true}});
  });
}
TEST_F(GpuRanks, WriteFromAMemoryDeviceIntoAGpu) {
  support::run_ranks(2, 120s, [](support::RankProcess& self) {
    write_and_add(self, {MoverPlace{0, true}, MoverPlace{0, false}});
  });
}

TEST_F(GpuRanks, AreMeasuredByTheProbeWithTheRightData) {
  const CudaGpus found = list_cuda_gpus();
  ASSERT_FALSE(found.gpus.empty()) << found.why_none;
  const int cpu = ::sched_getcpu();
  std::vector<PairPlace> places{{"m0/gpu0", {.pci_address = found.gpus[0].pci_address}, 0, cpu},
                                {"m0/numa0", {.host_memory = true}, 0, cpu}};
  const RunClock clock;
  const auto pairs = std::make_shared<GpuPairs>(std::move(places), GpuPairOptions{}, clock);
  pairs->start();
  for (const CellPlan& plan : gpu_pairs_campaign(pairs).plans) {
    Cell cell = empty_cell(plan);
    plan.measure(cell, Seconds(0.05));
    EXPECT_TRUE(cell.has_value()) << plan.key.text() << ": " << cell.reason;
    // Bounds for units gone wrong, not a judgement.
    const double seconds = cell.unit == k_seconds
                               ? cell.p50
                               : static_cast<double>(plan.key.bytes) / std::max(cell.p50, 1.0);
    EXPECT_GT(seconds, 0.1e-6) << plan.key.text();
    EXPECT_LT(seconds, 1) << plan.key.text();
  }
}

} // namespace
} // namespace reckon
