// SPDX-License-Identifier: Apache-2.0
#include "movers/fake.hpp"

#include <gtest/gtest.h>

#include <array>

using namespace std::chrono_literals;

namespace reckon {
namespace {

/// 1 s a write and 1 s for each 100 bytes.
Seconds cost(int, int, std::uint64_t bytes) {
  return Seconds(1.0 + static_cast<double>(bytes) / 100);
}

struct Job {
  FakeNetwork network;
  std::vector<std::unique_ptr<Mover>> movers;
  std::vector<std::span<std::byte>> memory;

  explicit Job(int ranks, std::size_t max_in_flight = 64) : network(ranks, cost, max_in_flight) {
    std::vector<std::string> addresses;
    for (int rank = 0; rank < ranks; ++rank) {
      movers.push_back(network.make_mover(rank));
      memory.push_back(movers.back()->allocate(1000));
      movers.back()->open(1);
      addresses.push_back(movers.back()->address());
    }
    for (int rank = 0; rank < ranks; ++rank) {
      movers[static_cast<std::size_t>(rank)]->connect(rank, addresses);
    }
  }
  MoverLane& lane(std::size_t rank) { return movers[rank]->lane(0); }
  std::vector<Completion> poll(std::size_t rank) {
    std::array<Completion, 64> out;
    const std::size_t count = lane(rank).poll(out);
    return {out.begin(), out.begin() + static_cast<std::ptrdiff_t>(count)};
  }
};

TEST(FakeNetwork, AWriteTakesItsCostAndItsBytesMoveAtTheEnd) {
  Job job(2);
  job.memory[0][5] = std::byte{42};
  ASSERT_TRUE(job.lane(0).write(1, {0, 0}, {0, 500}, 100, 9, 4)); // 1 + 100/100 = 2 s
  EXPECT_TRUE(job.poll(0).empty());
  job.lane(1).wait(1500ms);
  EXPECT_DOUBLE_EQ(job.network.clock().now().count(), 1.5);
  EXPECT_TRUE(job.poll(1).empty());
  EXPECT_EQ(job.memory[1][505], std::byte{0});
  job.lane(1).wait(10s);
  EXPECT_DOUBLE_EQ(job.network.clock().now().count(), 2.0);
  EXPECT_EQ(job.memory[1][505], std::byte{42});
  ASSERT_EQ(job.poll(0).size(), 1U);
  const auto arrived = job.poll(1);
  ASSERT_EQ(arrived.size(), 1U);
  EXPECT_EQ(arrived[0].kind, Completion::Kind::arrived);
  EXPECT_EQ(arrived[0].tag, 9U);
}

TEST(FakeNetwork, PortsCarryOneWriteAtATimeAndBothDirectionsAtOnce) {
  Job job(3);
  // 0->1 2 s: [0, 2]. 0->2 2 s waits for 0's port out: [2, 4]. 1->0 3 s has both its ports free:
  // [0, 3]. 2->1 1 s waits for 1's port in: [2, 3].
  ASSERT_TRUE(job.lane(0).write(1, {0, 0}, {0, 0}, 100, 1, 1));
  ASSERT_TRUE(job.lane(0).write(2, {0, 0}, {0, 0}, 100, 2, 2));
  ASSERT_TRUE(job.lane(1).write(0, {0, 0}, {0, 0}, 200, 3, 3));
  ASSERT_TRUE(job.lane(2).write(1, {0, 0}, {0, 0}, 0, 4, 4));
  while (job.network.step()) {
  }
  std::vector<double> finished;
  for (const FakeWrite& write : job.network.calls()) {
    finished.push_back(write.finished.count());
  }
  EXPECT_EQ(finished, (std::vector<double>{2, 4, 3, 3}));
  EXPECT_DOUBLE_EQ(job.network.clock().now().count(), 4.0);
}

TEST(FakeNetwork, RefusesMoreThanTheLimitInFlight) {
  Job job(2, 2);
  EXPECT_TRUE(job.lane(0).write(1, {0, 0}, {0, 0}, 0, 0, 0));
  EXPECT_TRUE(job.lane(0).write(1, {0, 0}, {0, 0}, 0, 0, 1));
  EXPECT_FALSE(job.lane(0).write(1, {0, 0}, {0, 0}, 0, 0, 2));
  job.lane(0).wait(10s);
  EXPECT_TRUE(job.lane(0).write(1, {0, 0}, {0, 0}, 0, 0, 2));
  EXPECT_EQ(job.network.calls().size(), 3U);
}

TEST(FakeNetwork, InjectsTheFaultsItIsAskedFor) {
  Job job(2);
  const std::array faults{FakeFault::none, FakeFault::lost, FakeFault::corrupted,
                          FakeFault::failed};
  job.network.set_faults([&](const FakeWrite& write) { return faults[write.id]; });
  for (std::uint64_t id = 0; id < 4; ++id) {
    ASSERT_TRUE(job.lane(0).write(1, {0, 0}, {0, id * 10}, 10, static_cast<std::uint32_t>(id), id));
  }
  while (job.network.step()) {
  }
  std::vector<Completion::Kind> kinds;
  for (const Completion& c : job.poll(0)) {
    kinds.push_back(c.kind);
  }
  using Kind = Completion::Kind;
  EXPECT_EQ(kinds, (std::vector<Kind>{Kind::sent, Kind::sent, Kind::sent, Kind::failed}));
  std::vector<std::uint32_t> tags;
  for (const Completion& c : job.poll(1)) {
    tags.push_back(c.tag);
  }
  EXPECT_EQ(tags, (std::vector<std::uint32_t>{0, 2}));
  for (std::size_t i = 0; i < 40;
       ++i) { // only the middle byte of write 2, at 20 + 5, differs from the zeros sent
    EXPECT_EQ(job.memory[1][i], i == 25 ? std::byte{1} : std::byte{0}) << i;
  }
}

TEST(FakeNetwork, AWriteOutsideItsBuffersFails) {
  Job job(2);
  EXPECT_TRUE(job.lane(0).write(1, {0, 990}, {0, 0}, 11, 0, 1));
  EXPECT_TRUE(job.lane(0).write(1, {0, 0}, {1, 0}, 1, 0, 2));
  EXPECT_TRUE(job.lane(0).write(0, {0, 0}, {0, 0}, 1, 0, 3));
  const auto completions = job.poll(0);
  ASSERT_EQ(completions.size(), 3U);
  for (const Completion& c : completions) {
    EXPECT_EQ(c.kind, Completion::Kind::failed);
  }
  EXPECT_TRUE(job.network.calls().empty());
}

TEST(FakeNetwork, ATransferWithNothingUnderWayWaitsItsWholeLimit) {
  Job job(2);
  job.lane(0).wait(250ms);
  EXPECT_DOUBLE_EQ(job.network.clock().now().count(), 0.25);
}

} // namespace
} // namespace reckon
