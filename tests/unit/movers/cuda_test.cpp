// SPDX-License-Identifier: Apache-2.0
#include "movers/cuda.hpp"

#include "core/json.hpp"
#include "support/fake_gpus.hpp"
#include "support/refusals.hpp"

#include <gmock/gmock.h>

#include <array>
#include <cstring>
#include <memory>
#include <vector>

using namespace std::chrono_literals;

namespace reckon {
namespace {

using support::FakeGpus;
using testing::HasSubstr;

constexpr std::uint64_t k_bytes = 4096;

/// Two ranks of this process, each with one buffer, on GPUs that are made up or in host memory.
struct Pair {
  FakeGpus gpus;
  std::array<std::unique_ptr<Mover>, 2> movers;
  std::array<std::span<std::byte>, 2> memory;
  std::vector<std::string> addresses;

  Pair(int count, MoverPlace first, MoverPlace second) : gpus(count) {
    gpus.let_all_be_peers();
    movers = {make_cuda_mover(library_for(first), first),
              make_cuda_mover(library_for(second), second)};
    for (std::size_t i = 0; i < 2; ++i) {
      memory[i] = movers[i]->allocate(k_bytes);
      movers[i]->open(1);
      addresses.push_back(movers[i]->address());
    }
  }
  GpuLibrary* library_for(const MoverPlace& place) { return place.host_memory ? nullptr : &gpus; }
  void connect() {
    movers[0]->connect(0, addresses);
    movers[1]->connect(1, addresses);
  }
  void fill(std::size_t rank, int value) {
    std::memset(movers[rank]->view(memory[rank]).data(), value, k_bytes);
    movers[rank]->push(memory[rank]);
  }
  [[nodiscard]] int byte_of(std::size_t rank, std::size_t at) {
    movers[rank]->pull(memory[rank]);
    return std::to_integer<int>(movers[rank]->view(memory[rank])[at]);
  }
  /// What a lane says when it is asked `times` times; each time takes a microsecond.
  std::vector<Completion> poll(std::size_t rank, int times) {
    std::vector<Completion> all;
    std::array<Completion, 4> some;
    for (int i = 0; i < times; ++i) {
      const std::size_t count = movers[rank]->lane(0).poll(some);
      all.insert(all.end(), some.begin(), some.begin() + static_cast<std::ptrdiff_t>(count));
    }
    return all;
  }
};

const MoverPlace k_gpu0{0, false};
const MoverPlace k_gpu1{1, false};
const MoverPlace k_host{0, true};

/// Rank 0 writes 1 KiB to the middle of rank 1's buffer.
void expect_a_write(Pair& pair) {
  pair.connect();
  pair.fill(0, 7);
  pair.fill(1, 1);
  ASSERT_TRUE(pair.movers[0]->lane(0).write(1, {0, 0}, {0, 1024}, 1024, 5, 99));
  std::vector<Completion> sent, arrived;
  for (int i = 0; i < 2000; ++i) { // whichever end has work to do
    for (const auto& [rank, told] : {std::pair(0U, &sent), std::pair(1U, &arrived)}) {
      const std::vector<Completion> now = pair.poll(rank, 1);
      told->insert(told->end(), now.begin(), now.end());
    }
  }
  ASSERT_EQ(sent.size(), 1U) << pair.movers[0]->lane(0).error();
  EXPECT_EQ(sent[0].kind, Completion::Kind::sent);
  EXPECT_EQ(sent[0].id, 99U);
  ASSERT_EQ(arrived.size(), 1U);
  EXPECT_EQ(arrived[0].kind, Completion::Kind::arrived);
  EXPECT_EQ(arrived[0].tag, 5U);
  EXPECT_EQ(pair.byte_of(1, 1023), 1);
  EXPECT_EQ(pair.byte_of(1, 1024), 7);
  EXPECT_EQ(pair.byte_of(1, 2047), 7);
  EXPECT_EQ(pair.byte_of(1, 2048), 1);
}

TEST(CudaMover, WritesBetweenGpusAndHostMemory) {
  struct Case {
    const char* what;
    int gpus;
    MoverPlace from, to;
  };
  for (const Case& c : {Case{"between two GPUs", 2, k_gpu0, k_gpu1},
                        {"between two ranks of one GPU", 1, k_gpu0, k_gpu1},
                        {"from a GPU to host memory", 1, k_gpu0, k_host},
                        {"from host memory to a GPU", 1, k_host, k_gpu0},
                        {"from host memory to host memory", 1, k_host, k_host}}) {
    SCOPED_TRACE(c.what);
    Pair pair(c.gpus, c.from, c.to);
    expect_a_write(pair);
  }
}

TEST(CudaMover, GoesByWayOfTheHostWhereGpusHaveNoPeerAccess) {
  Pair pair(2, k_gpu0, k_gpu1);
  pair.gpus.peers.clear();
  expect_a_write(pair);
  EXPECT_EQ(pair.gpus.works[2].kind, FakeGpus::Kind::copy_peer); // after filling the two buffers
}

TEST(CudaMover, TellsOfAnArrivalOnlyWhenTheCopyIsOver) {
  Pair pair(2, k_gpu0, k_gpu1);
  pair.gpus.seconds = [](const FakeGpus::Work&) { return 1e-3; };
  pair.connect();
  ASSERT_TRUE(pair.movers[0]->lane(0).write(1, {0, 0}, {0, 0}, 64, 5, 1));
  ASSERT_TRUE(pair.movers[0]->lane(0).write(1, {}, {}, 0, 6, 2)); // a signal stays behind it
  EXPECT_TRUE(pair.poll(0, 900).empty());
  EXPECT_TRUE(pair.poll(1, 10).empty());
  EXPECT_EQ(pair.poll(0, 200).size(), 2U);
  const std::vector<Completion> arrived = pair.poll(1, 2);
  ASSERT_EQ(arrived.size(), 2U);
  EXPECT_EQ(arrived[0].tag, 5U);
  EXPECT_EQ(arrived[1].tag, 6U);
}

TEST(CudaMover, MakesWritesFromHostMemoryOnTheReceiversGpu) {
  Pair pair(1, k_host, k_gpu0);
  pair.gpus.seconds = [](const FakeGpus::Work&) { return 1e-3; };
  pair.connect();
  pair.fill(0, 7);
  const std::size_t before = pair.gpus.works.size();
  for (std::uint32_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(
        pair.movers[0]->lane(0).write(1, {0, 64 * i}, {0, 1024 + 64 * i}, 64, 5 + i, 20 + i));
  }
  ASSERT_TRUE(pair.movers[0]->lane(0).write(1, {}, {}, 0, 8, 23)); // a signal stays behind them
  EXPECT_EQ(pair.gpus.works.size(), before) << "the sender used a GPU";
  EXPECT_TRUE(pair.poll(0, 10).empty());
  EXPECT_TRUE(pair.poll(1, 900).empty()); // the first copy is under way
  EXPECT_EQ(pair.gpus.works.size(), before + 3);
  EXPECT_TRUE(pair.poll(0, 10).empty());
  const std::vector<Completion> arrived = pair.poll(1, 2500);
  ASSERT_EQ(arrived.size(), 4U);
  const std::vector<Completion> sent = pair.poll(0, 2);
  ASSERT_EQ(sent.size(), 4U);
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(arrived[i].kind, Completion::Kind::arrived);
    EXPECT_EQ(arrived[i].tag, 5 + i);
    EXPECT_EQ(sent[i].kind, Completion::Kind::sent);
    EXPECT_EQ(sent[i].id, 20U + i);
  }
  EXPECT_EQ(pair.byte_of(1, 1024 + 191), 7);
  EXPECT_EQ(pair.byte_of(1, 1024 + 192), 0);
}

TEST(CudaMover, RefusesMoreWishesThanItHasRoomFor) {
  Pair pair(1, k_host, k_gpu0);
  pair.connect();
  const auto fill_up = [&] {
    std::size_t taken = 0;
    while (taken < 1000 && pair.movers[0]->lane(0).write(1, {0, 0}, {0, 0}, 8, 1, taken)) {
      ++taken;
    }
    return taken;
  };
  for (int round = 0; round < 20; ++round) { // the mailbox's ring goes round as well
    EXPECT_EQ(fill_up(), pair.movers[0]->capabilities().max_in_flight);
    EXPECT_EQ(pair.poll(1, 1000).size(), pair.movers[0]->capabilities().max_in_flight);
    EXPECT_EQ(pair.poll(0, 100).size(), pair.movers[0]->capabilities().max_in_flight);
  }
  ASSERT_TRUE(pair.movers[0]->lane(0).write(1, {0, 0}, {0, k_bytes - 4}, 8, 1, 45));
  EXPECT_EQ(pair.poll(0, 1).size(), 1U);
  EXPECT_THAT(pair.movers[0]->lane(0).error(), HasSubstr("outside its buffers"));
}

TEST(CudaMover, SaysWhenTheReceiversGpuCannotMakeAWrite) {
  Pair pair(1, k_host, k_gpu0);
  pair.connect();
  pair.gpus.fail_next_copy = 719;
  ASSERT_TRUE(pair.movers[0]->lane(0).write(1, {0, 0}, {0, 0}, 8, 1, 44));
  const std::vector<Completion> told = pair.poll(1, 3);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].kind, Completion::Kind::failed);
  EXPECT_EQ(pair.movers[1]->lane(0).error(), "cudaMemcpyAsync: made-up error 719");
}

TEST(CudaMover, RefusesMoreThanAStreamIsToHold) {
  Pair pair(2, k_gpu0, k_gpu1);
  pair.gpus.seconds = [](const FakeGpus::Work&) { return 1.0; };
  pair.connect();
  std::size_t taken = 0;
  while (taken < 1000 && pair.movers[0]->lane(0).write(1, {0, 0}, {0, 0}, 8, 1, taken)) {
    ++taken;
  }
  EXPECT_EQ(taken, pair.movers[0]->capabilities().max_in_flight);
  pair.gpus.advance(1000);
  EXPECT_EQ(pair.poll(0, 100).size(), taken);
  EXPECT_TRUE(pair.movers[0]->lane(0).write(1, {0, 0}, {0, 0}, 8, 1, 0));
}

TEST(CudaMover, HandsErrorsBackInTheLibrarysWords) {
  Pair pair(2, k_gpu0, k_gpu1);
  pair.connect();
  pair.gpus.fail_next_copy = 719;
  ASSERT_TRUE(pair.movers[0]->lane(0).write(1, {0, 0}, {0, 0}, 8, 1, 44));
  const std::vector<Completion> told = pair.poll(0, 3);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].kind, Completion::Kind::failed);
  EXPECT_EQ(told[0].id, 44U);
  EXPECT_EQ(pair.movers[0]->lane(0).error(), "cudaMemcpyAsync: made-up error 719");
  ASSERT_TRUE(pair.movers[0]->lane(0).write(1, {0, 0}, {0, k_bytes - 4}, 8, 1, 45));
  EXPECT_EQ(pair.poll(0, 1).size(), 1U);
  EXPECT_THAT(pair.movers[0]->lane(0).error(), HasSubstr("outside its buffers"));
}

TEST(CudaMover, SumsOnTheGpuAndSaysWhenItIsDone) {
  Pair pair(1, k_gpu0, k_host);
  pair.connect();
  const std::span<std::byte> view = pair.movers[0]->view(pair.memory[0]);
  const std::array<float, 4> numbers{1.5F, 2.25F, -4.0F, 0.5F};
  std::memcpy(view.data(), numbers.data(), sizeof numbers);
  pair.movers[0]->push(pair.memory[0]);
  LocalOp op;
  op.kind = LocalOp::Kind::sum;
  op.to = pair.memory[0].data() + 64;
  const std::array<const void*, 2> sources{pair.memory[0].data(), pair.memory[0].data() + 8};
  op.sources = sources;
  op.bytes = 8;
  ASSERT_EQ(pair.movers[0]->lane(0).engine().start(op, 12), Engine::Started::pending);
  const std::vector<Completion> told = pair.poll(0, 1000);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].kind, Completion::Kind::computed);
  EXPECT_EQ(told[0].id, 12U);
  pair.movers[0]->pull(pair.memory[0]);
  std::array<float, 2> sum{};
  std::memcpy(sum.data(), view.data() + 64, sizeof sum);
  EXPECT_EQ(sum[0], -2.5F);
  EXPECT_EQ(sum[1], 2.75F);
  // What has no kernel is refused in words; in host memory the processor does it.
  op.kind = LocalOp::Kind::update;
  EXPECT_EQ(pair.movers[0]->lane(0).engine().start(op, 13), Engine::Started::failed);
  EXPECT_THAT(pair.movers[0]->lane(0).error(), test::Says("copies"));
  EXPECT_EQ(&pair.movers[1]->lane(0).engine(), &cpu_engine());
}

TEST(CudaMover, SaysWhichGpuIsHidden) {
  Pair pair(2, k_gpu0, k_gpu1);
  Json other = parse_json(pair.addresses[1], "test");
  other["gpu"] = "0000:ff:00.0";
  EXPECT_REFUSED(unavailable, "0000:ff:00.0",
                 pair.movers[0]->connect(0, {pair.addresses[0], other.dump()}));
}

TEST(CudaMover, LeavesNothingBehind) {
  FakeGpus gpus(1);
  {
    const auto mover = make_cuda_mover(&gpus, k_gpu0);
    static_cast<void>(mover->allocate(64));
    static_cast<void>(mover->allocate(0));
    mover->open(2);
    mover->connect(0, {mover->address()});
    EXPECT_GT(gpus.living(), 0U);
    mover->disconnect([] {});
  }
  EXPECT_EQ(gpus.living(), 0U);
}

TEST(CudaMover, FreesItsMemoryWhenAllHaveClosedIt) {
  Pair pair(2, k_gpu0, k_gpu1);
  pair.connect();
  ASSERT_EQ(pair.gpus.open_imports(), 2U);
  // Both come to the same place: the first has closed what it had open, and the second as well.
  pair.movers[0]->disconnect([&] {
    EXPECT_EQ(pair.gpus.open_imports(), 1U);
    pair.movers[1]->disconnect([&] { EXPECT_EQ(pair.gpus.open_imports(), 0U); });
  });
  pair.movers[1].reset();
  pair.movers[0].reset();
  EXPECT_EQ(pair.gpus.freed_while_open, 0U);
  EXPECT_EQ(pair.gpus.living(), 0U);
}

TEST(CudaMover, LeavesMemoryThatAPeerMayHaveOpenToTheEndOfTheProcess) {
  for (const bool comes : {true, false}) { // to the meeting, which a peer's death ends
    Pair pair(2, k_gpu0, k_gpu1);
    pair.connect();
    if (comes) {
      EXPECT_ERROR(
          pair.movers[0]->disconnect([] { fail(ErrorKind::operation, "rank 1 has ended"); }));
    }
    pair.movers[0].reset();
    EXPECT_EQ(pair.gpus.device_of(pair.memory[0].data()), 0);
    pair.movers[1].reset();
    EXPECT_EQ(pair.gpus.freed_while_open, 0U);
    EXPECT_EQ(pair.gpus.open_imports(), 0U);
  }
}

TEST(CudaMover, ClosesNothingThatACopyStillGoesTo) {
  Pair pair(2, k_gpu0, k_gpu1);
  pair.gpus.seconds = [](const FakeGpus::Work&) { return 3.0; };
  pair.connect();
  ASSERT_TRUE(pair.movers[0]->lane(0).write(1, {0, 0}, {0, 0}, 64, 5, 1));
  const Seconds before = pair.gpus.clock().now();
  pair.movers[0]->disconnect([&] { EXPECT_GE((pair.gpus.clock().now() - before).count(), 2.9); });
  // What comes later finds no memory there instead of memory that was closed.
  ASSERT_TRUE(pair.movers[0]->lane(0).write(1, {0, 0}, {0, 0}, 64, 5, 2));
  EXPECT_THAT(pair.movers[0]->lane(0).error(), HasSubstr("outside its buffers"));
}

} // namespace
} // namespace reckon
