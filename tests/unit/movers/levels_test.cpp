// SPDX-License-Identifier: Apache-2.0
// Two transports in one job, between real processes: who is written to by which, and that a lane
// that sleeps on both misses nothing.
#include "movers/levels.hpp"

#include "core/error.hpp"
#include "support/ranks.hpp"
#include "support/refusals.hpp"
#include "support/transports.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

using namespace std::chrono_literals;

namespace reckon {
namespace {

using support::RankProcess;
using support::run_ranks;
using support::transports_here;

constexpr auto k_deadline = 240s; // before ctest's limit
/// Longer than the deadline: one lost wake-up fails the test.
constexpr std::chrono::milliseconds k_long_wait = 600s;

/// One that crosses machines; empty: this machine has none.
std::string network_here() {
  for (const std::string& name : transports_here()) {
    if (name != "host" && name != "shm") {
      return name;
    }
  }
  return "";
}

class Levels : public testing::Test {
protected:
  void SetUp() override {
    if (network_here().empty()) {
      GTEST_SKIP() << "no transport here crosses machines";
    }
  }
};

std::unique_ptr<Mover> mover_of(const std::vector<std::size_t>& machines, int rank) {
  const bool alone =
      std::count(machines.begin(), machines.end(), machines[static_cast<std::size_t>(rank)]) == 1;
  return make_levels_mover(alone ? nullptr : make_mover("host"), make_mover(network_here()),
                           machines);
}

struct Heard {
  std::vector<std::uint32_t> tags;
  std::size_t sent = 0;
  std::string failure;

  void poll(MoverLane& lane) {
    std::array<Completion, 3> out; // short: a busy lane must not keep the other out
    const std::size_t count = lane.poll(out);
    for (std::size_t i = 0; i < count; ++i) {
      if (out[i].kind == Completion::Kind::arrived) {
        tags.push_back(out[i].tag);
      } else if (out[i].kind == Completion::Kind::sent) {
        ++sent;
      } else {
        failure = lane.error();
      }
    }
  }
};

/// Ranks 0 and 1 are on one machine, 2 and 3 on another, 4 is alone. In turn, each rank sends one
/// write to each other rank and to nobody else, and all wait: every wake-up is needed.
TEST_F(Levels, EveryRankReachesAllOthersByOneTransportOrTheOther) {
  const std::vector<std::size_t> machines{0, 0, 1, 1, 2};
  const int ranks = static_cast<int>(machines.size());
  constexpr std::uint32_t k_rounds = 40;
  constexpr std::uint64_t k_bytes = 5000;
  run_ranks(ranks, k_deadline, [&](RankProcess& self) {
    const auto mover = mover_of(machines, self.rank());
    const std::span<std::byte> source = mover->allocate(k_bytes);
    const std::span<std::byte> inbox = mover->allocate(k_bytes * static_cast<std::uint64_t>(ranks));
    mover->open(1);
    mover->connect(self.rank(), self.exchange(mover->address()));
    MoverLane& lane = mover->lane(0);
    Heard heard;
    std::size_t written = 0;
    for (std::uint32_t round = 0; round < k_rounds; ++round) {
      std::memset(source.data(), static_cast<int>(10 * round) + self.rank(), source.size());
      for (int step = 1; step < ranks; ++step) {
        const int peer = (self.rank() + step) % ranks;
        const auto tag = static_cast<std::uint32_t>(self.rank()) * k_rounds + round;
        while (!lane.write(peer, {0, 0}, {1, k_bytes * static_cast<std::uint64_t>(self.rank())},
                           k_bytes, tag, round)) {
          heard.poll(lane);
        }
        ++written;
      }
      const std::size_t all = (round + 1) * static_cast<std::size_t>(ranks - 1);
      while (heard.sent < written || heard.tags.size() < all) {
        heard.poll(lane);
        ASSERT_EQ(heard.failure, "");
        if (heard.sent < written || heard.tags.size() < all) {
          lane.wait(k_long_wait);
        }
      }
      for (int peer = 0; peer < ranks; ++peer) {
        if (peer != self.rank()) {
          const auto from = static_cast<std::size_t>(peer) * k_bytes;
          EXPECT_EQ(inbox[from],
                    static_cast<std::byte>(10 * round + static_cast<std::uint32_t>(peer)));
          EXPECT_EQ(inbox[from], inbox[from + k_bytes - 1]);
        }
      }
      static_cast<void>(self.exchange("")); // all have looked
    }
    mover->disconnect([&] { static_cast<void>(self.exchange("")); });
  });
}

/// A write inside a machine does not pass the network, and the other way round.
TEST_F(Levels, TheTransportInsideReachesNobodyElse) {
  run_ranks(3, k_deadline, [&](RankProcess& self) {
    const std::vector<std::size_t> machines{0, 0, 1};
    std::unique_ptr<Mover> inside = self.rank() < 2 ? make_mover("host") : nullptr;
    Mover* const host = inside.get();
    const auto mover = make_levels_mover(std::move(inside), make_mover(network_here()), machines);
    static_cast<void>(mover->allocate(64));
    mover->open(1);
    mover->connect(self.rank(), self.exchange(mover->address()));
    if (host != nullptr) {
      MoverLane& lane = host->lane(0);
      std::array<Completion, 4> out;
      ASSERT_TRUE(lane.write(2, {0, 0}, {0, 0}, 8, 1, 7));
      ASSERT_EQ(lane.poll(out), 1U);
      EXPECT_EQ(out[0].kind, Completion::Kind::failed);
      EXPECT_NE(lane.error().find("no such peer"), std::string::npos) << lane.error();
    }
    static_cast<void>(self.exchange(""));
  });
}

/// Where both transports can register it; host cannot.
TEST_F(Levels, MemoryOfTheOwnersIsWrittenToThroughBothTransports) {
  constexpr std::uint64_t k_bytes = 64;
  const std::vector<std::size_t> machines{0, 0, 1};
  run_ranks(3, k_deadline, [&](RankProcess& self) {
    alignas(64) static std::array<std::byte, 4 * k_bytes> memory{};
    if (self.rank() < 2) {
      EXPECT_REFUSED(unavailable, "transport", (mover_of(machines, self.rank())->adopt(memory), 0));
    }
    const auto mover = make_levels_mover(self.rank() < 2 ? make_mover(network_here()) : nullptr,
                                         make_mover(network_here()), machines);
    mover->adopt(memory);
    EXPECT_EQ(mover->view(memory).data(), memory.data());
    mover->open(1);
    mover->connect(self.rank(), self.exchange(mover->address()));
    const auto mine = static_cast<std::uint64_t>(self.rank());
    std::memset(&memory[3 * k_bytes], self.rank() + 1, k_bytes);
    Heard heard;
    for (const int step : {1, 2}) {
      ASSERT_TRUE(mover->lane(0).write((self.rank() + step) % 3, {0, 3 * k_bytes},
                                       {0, mine * k_bytes}, k_bytes, 0, 0));
    }
    while (heard.sent < 2 || heard.tags.size() < 2) {
      heard.poll(mover->lane(0));
      ASSERT_EQ(heard.failure, "");
    }
    for (std::uint64_t peer = 0; peer < 3; ++peer) {
      EXPECT_EQ(memory[peer * k_bytes], peer == mine ? std::byte{0} : std::byte(peer + 1));
    }
    mover->disconnect([&] { static_cast<void>(self.exchange("")); });
  });
}

/// Memory that the processor has only a copy of, as a GPU's.
class RemoteMemory final : public Mover {
public:
  const MoverCapabilities& capabilities() const noexcept override { return m_host->capabilities(); }
  std::span<std::byte> allocate(std::uint64_t bytes) override {
    m_copy.resize(bytes);
    return m_host->allocate(bytes);
  }
  std::span<std::byte> view(std::span<std::byte> /*buffer*/) override { return m_copy; }
  void open(int lanes) override { m_host->open(lanes); }
  std::string address() const override { return m_host->address(); }
  void connect(int self, const std::vector<std::string>& addresses) override {
    m_host->connect(self, addresses);
  }
  MoverLane& lane(int index) override { return m_host->lane(index); }

private:
  std::unique_ptr<Mover> m_host = make_mover("host");
  std::vector<std::byte> m_copy;
};

/// Ranks 0 and 2 are GPUs, 1 and 3 the memories of their machines' processors.
TEST_F(Levels, TheNetworkReachesOnlyTheProcessorsMemory) {
  run_ranks(4, k_deadline, [&](RankProcess& self) {
    const bool gpu = self.rank() % 2 == 0;
    const auto mover =
        make_levels_mover(gpu ? std::make_unique<RemoteMemory>() : make_mover("host"),
                          make_mover(network_here()), {0, 0, 1, 1});
    static_cast<void>(mover->allocate(64));
    mover->open(1);
    ASSERT_EQ(mover->address().find(R"("between":"")") != std::string::npos, gpu);
    mover->connect(self.rank(), self.exchange(mover->address()));
    MoverLane& lane = mover->lane(0);
    Heard heard;
    const int inside = self.rank() ^ 1, across = self.rank() ^ 2;
    for (const int peer : {inside, across}) {
      ASSERT_TRUE(lane.write(peer, {0, 0}, {0, 0}, 8, static_cast<std::uint32_t>(peer), 7));
    }
    // Of a GPU the write to the other machine fails; else both are sent and both peers' come.
    const std::size_t tags = gpu ? 1 : 2;
    while (heard.tags.size() < tags || heard.sent < tags || heard.failure.empty() == gpu) {
      heard.poll(lane);
    }
    EXPECT_EQ(heard.failure, gpu ? "write(host): no such peer" : "");
    static_cast<void>(self.exchange(""));
    mover->disconnect([&] { static_cast<void>(self.exchange("")); });
  });
}

TEST_F(Levels, AnAddressOfAnotherMoverIsRefused) {
  const auto mover = make_levels_mover(nullptr, make_mover(network_here()), {0, 1});
  mover->open(1);
  EXPECT_REFUSED(operation, "uses host",
                 mover->connect(0, {mover->address(), R"({"mover": "host"})"}));
}

} // namespace
} // namespace reckon
