// SPDX-License-Identifier: Apache-2.0
// What every mover must do, run over every transport that this machine has, between real processes.
#include "movers/mover.hpp"

#include "core/error.hpp"
#include "support/ranks.hpp"
#include "support/refusals.hpp"
#include "support/transports.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <regex>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <unistd.h>

using namespace std::chrono_literals;

namespace reckon {
namespace {

using support::as_test_name;
using support::RankProcess;
using support::run_ranks;
using support::transports_here;

constexpr auto k_deadline = 240s; // before ctest's limit
/// Longer than the deadline: one lost wake-up fails the test.
constexpr std::chrono::milliseconds k_long_wait = 600s;

/// Different at every position and for every seed, so that a shifted or mixed-up part shows.
std::byte pattern(std::uint64_t seed, std::uint64_t position) {
  std::uint64_t x = (position + 1) * 0x9E3779B97F4A7C15ULL + seed * 0xD1B54A32D192ED03ULL;
  x ^= x >> 29U;
  x *= 0xBF58476D1CE4E5B9ULL;
  return static_cast<std::byte>(x >> 56U);
}

void fill(std::span<std::byte> bytes, std::uint64_t seed) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = pattern(seed, i);
  }
}

/// How many bytes of `bytes` differ from the pattern that starts at `position`.
std::size_t wrong_bytes(std::span<const std::byte> bytes, std::uint64_t seed,
                        std::uint64_t position = 0) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    wrong += bytes[i] != pattern(seed, position + i) ? 1U : 0U;
  }
  return wrong;
}

bool all_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

std::uintptr_t place_in_page(std::span<const std::byte> memory) {
  return reinterpret_cast<std::uintptr_t>(memory.data()) %
         static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
}

/// What a lane said, in order.
struct Heard {
  std::vector<std::uint32_t> tags;
  std::vector<std::uint64_t> sent, failed;

  void poll(MoverLane& lane) {
    std::array<Completion, 16> out;
    const std::size_t count = lane.poll(out);
    ASSERT_LE(count, out.size());
    for (std::size_t i = 0; i < count; ++i) {
      switch (out[i].kind) {
      case Completion::Kind::sent:
        sent.push_back(out[i].id);
        break;
      case Completion::Kind::arrived:
        tags.push_back(out[i].tag);
        break;
      case Completion::Kind::failed:
        failed.push_back(out[i].id);
        break;
      case Completion::Kind::computed:
        ADD_FAILURE() << "nothing was given to an engine";
        break;
      }
    }
  }

  /// Sleeps and polls until `done`; the test's deadline is the limit.
  template <class Done>
  void until(MoverLane& lane, Done done) {
    for (poll(lane); !done(); poll(lane)) {
      ASSERT_TRUE(failed.empty()) << lane.error();
      lane.wait(k_long_wait);
    }
  }
};

void write_now(MoverLane& lane, Heard& heard, int peer, Slice source, Slice destination,
               std::uint64_t bytes, std::uint32_t tag, std::uint64_t id) {
  while (!lane.write(peer, source, destination, bytes, tag, id)) {
    lane.wait(k_long_wait);
    heard.poll(lane);
  }
}

/// Three ranks write to each other on two lanes, each in a thread of its own: every byte arrives
/// once, where it belongs, and no other.
void exchange_on_every_lane(const std::string& transport, const Habits& habits) {
  constexpr int k_ranks = 3, k_lanes = 2;
  // Around the header of 64 bytes that a write in two segments has, odd, and longer than a page.
  constexpr std::array<std::uint64_t, 9> k_sizes{1, 2, 63, 127, 128, 129, 4096, 20001, 300000};
  constexpr std::uint64_t k_rounds = 12; // more writes than there are messages at a time (64)
  constexpr std::uint64_t k_block = 330000, k_writes = k_sizes.size() * k_rounds;
  run_ranks(k_ranks, k_deadline, [&](RankProcess& self) {
    const auto mover = make_mover(transport, habits);
    const auto memory = mover->allocate(k_block * (1 + k_ranks * k_lanes));
    const auto own = static_cast<std::uint64_t>(self.rank());
    EXPECT_EQ(place_in_page(memory), habits.aligned ? 0U : 8U);
    mover->open(k_lanes);
    if (transport != "host" && !habits.register_once && !habits.address_once) {
      // Keys count from 1: nobody has been given one for the buffer.
      EXPECT_NE(mover->address().find(R"("key":"0")"), std::string::npos) << mover->address();
    }
    mover->connect(self.rank(), self.exchange(mover->address()));
    fill(memory.first(k_block), own); // the part that we send; no barrier: peers may be ahead
    std::vector<std::jthread> threads;
    for (int index = 0; index < k_lanes; ++index) {
      threads.emplace_back([&, index] {
        MoverLane& lane = mover->lane(index);
        const auto block = k_block * (1 + own * k_lanes + static_cast<std::uint64_t>(index));
        Heard heard;
        std::uint64_t id = 0;
        for (std::uint64_t round = 0; round < k_rounds; ++round) {
          std::uint64_t at = 0;
          for (const std::uint64_t bytes : k_sizes) {
            for (int step = 1; step < k_ranks; ++step) {
              // Tags of writes under way to a lane differ, as in every schedule.
              write_now(lane, heard, (self.rank() + step) % k_ranks, {0, at}, {0, block + at},
                        bytes, static_cast<std::uint32_t>(own * k_writes + id / 2), id);
              ++id;
            }
            at += bytes;
          }
        }
        for (int step = 1; step < k_ranks; ++step) { // a bare signal
          write_now(lane, heard, (self.rank() + step) % k_ranks, {}, {}, 0,
                    static_cast<std::uint32_t>(1'000'000 + own), id++);
        }
        heard.until(lane, [&] {
          return heard.sent.size() == id && heard.tags.size() == (k_writes + 1) * (k_ranks - 1);
        });
        EXPECT_EQ(std::set<std::uint64_t>(heard.sent.begin(), heard.sent.end()).size(), id);
        EXPECT_EQ(std::set<std::uint32_t>(heard.tags.begin(), heard.tags.end()).size(),
                  (k_writes + 1) * (k_ranks - 1));
      });
    }
    threads.clear();
    std::uint64_t sent = 0;
    for (const std::uint64_t bytes : k_sizes) {
      sent += bytes;
    }
    for (std::uint64_t sender = 0; sender < k_ranks; ++sender) {
      for (std::uint64_t lane = 0; lane < k_lanes && sender != own; ++lane) {
        const auto block = memory.subspan(k_block * (1 + sender * k_lanes + lane), k_block);
        EXPECT_EQ(wrong_bytes(block.first(sent), sender), 0U) << "from rank " << sender;
        EXPECT_TRUE(all_zero(block.subspan(sent)));
      }
    }
    self.barrier();
  });
}

class Movers : public testing::TestWithParam<std::string> {
protected:
  /// The names of libfabric's shared memory have the process' number; the host mover's has none.
  void TearDown() override {
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
      const std::string name = entry.path().filename().string();
      for (const pid_t rank : support::started_ranks()) {
        EXPECT_EQ(name.find(fmt::format("-{}-", rank)), std::string::npos)
            << name << " was left behind";
      }
    }
  }

  /// A mover with one zeroed buffer of `bytes`, connected.
  static std::unique_ptr<Mover> join(const RankProcess& self, std::uint64_t bytes, int lanes = 1) {
    auto mover = make_mover(GetParam());
    static_cast<void>(mover->allocate(0)); // buffer 0: empty buffers count too
    m_memory = mover->allocate(bytes);
    mover->open(lanes);
    mover->connect(self.rank(), self.exchange(mover->address()));
    return mover;
  }

  static inline std::span<std::byte> m_memory;
};

constexpr std::uint32_t k_data = 1; // the buffer that join() makes

// Each in a process of its own: after its first use in a process, libfabric must not be used in
// forked ones.
TEST_P(Movers, SayWhatTheyCanDoAndGiveZeroedPageAlignedMemory) {
  run_ranks(1, k_deadline, [](RankProcess&) {
    const auto mover = make_mover(GetParam());
    EXPECT_EQ(mover->capabilities().name, GetParam());
    EXPECT_GE(mover->capabilities().max_in_flight, 4U);
    EXPECT_GE(mover->capabilities().max_write_bytes, 1U << 20U);
    EXPECT_EQ(GetParam() == "host" || GetParam() == "shm", !mover->capabilities().crosses_machines);
    EXPECT_TRUE(mover->allocate(0).empty());
    for (const std::uint64_t bytes : {1U, 4096U, 100000U}) {
      const std::span<std::byte> memory = mover->allocate(bytes);
      ASSERT_EQ(memory.size(), bytes);
      EXPECT_EQ(place_in_page(memory), 0U);
      EXPECT_TRUE(all_zero(memory));
    }
  });
}

// Over a network whoever knows a key may write into the memory it stands for. Over verbs the device
// chooses the keys, which only peers that are connected to it may use.
TEST_P(Movers, NobodyGuessesTheKeysOfMemory) {
  run_ranks(1, k_deadline, [](RankProcess&) {
    std::set<std::string> keys;
    for (int i = 0; i < 2; ++i) {
      const auto mover = make_mover(GetParam());
      static_cast<void>(mover->allocate(4096));
      mover->open(2);
      const std::string address = mover->address();
      const std::regex key(R"x("key":\s*"([0-9a-f]+)")x");
      for (std::sregex_iterator it(address.begin(), address.end(), key);
           it != std::sregex_iterator(); ++it) {
        EXPECT_TRUE((*it)[1].length() > 8 || GetParam().starts_with("verbs")) << address;
        EXPECT_TRUE(keys.insert((*it)[1]).second) << address;
      }
    }
    EXPECT_GE(keys.size(), make_mover(GetParam())->capabilities().crosses_machines ? 8U : 0U);
  });
}

TEST_P(Movers, EveryByteArrivesAndNoOther) {
  constexpr std::uint64_t k_size = (64U << 20U) + 8192;
  run_ranks(2, k_deadline, [&](RankProcess& self) {
    const auto mover = join(self, k_size);
    MoverLane& lane = mover->lane(0);
    Heard heard;
    struct Case {
      std::uint64_t bytes, from, to;
    };
    std::vector<Case> cases{{0, 0, 0}, {0, k_size, k_size}, {k_size, 0, 0}, {64U << 20U, 4097, 1}};
    for (const std::uint64_t bytes :
         {1U,   3U,    7U,    8U,    9U,     63U,    64U,    65U,     191U,     192U,
          193U, 4095U, 4096U, 4097U, 16383U, 16385U, 65537U, 262144U, 1048577U, 4194304U}) {
      cases.push_back({bytes, 0, 0});
      cases.push_back({bytes, 13, 4099});
      cases.push_back({bytes, 8191, 57});
    }
    const std::uint64_t longest = mover->capabilities().max_write_bytes;
    std::uint32_t tag = 0;
    for (const Case& c : cases) {
      ++tag;
      if (c.bytes > longest) {
        continue;
      }
      if (self.rank() == 0) {
        const auto part = m_memory.subspan(c.from, c.bytes);
        fill(part, tag);
        write_now(lane, heard, 1, {k_data, c.from}, {k_data, c.to}, c.bytes, tag, 1000 + tag);
        heard.until(lane, [&] { return !heard.sent.empty() && !heard.tags.empty(); });
        ASSERT_EQ(heard.sent, std::vector<std::uint64_t>{1000 + tag});
        ASSERT_EQ(heard.tags, std::vector<std::uint32_t>{tag + 5000}); // the other side has looked
      } else {
        heard.until(lane, [&] { return !heard.tags.empty(); });
        ASSERT_EQ(heard.tags, std::vector<std::uint32_t>{tag});
        ASSERT_EQ(wrong_bytes(m_memory.subspan(c.to, c.bytes), tag), 0U)
            << c.bytes << " bytes to " << c.to;
        const std::size_t before = std::min<std::size_t>(c.to, 256);
        const std::size_t after = std::min<std::size_t>(k_size - c.to - c.bytes, 256);
        ASSERT_TRUE(all_zero(m_memory.subspan(c.to - before, before)) &&
                    all_zero(m_memory.subspan(c.to + c.bytes, after)))
            << c.bytes << " bytes to " << c.to;
        std::memset(m_memory.subspan(c.to).data(), 0, c.bytes);
        heard = {}; // before the answer: after it the next tag may come
        write_now(lane, heard, 0, {k_data, 0}, {k_data, 0}, 0, tag + 5000, 2000 + tag);
        heard.until(lane, [&] { return !heard.sent.empty(); });
        continue;
      }
      heard = {};
    }
    self.barrier();
  });
}

TEST_P(Movers, ManySmallWritesArriveOnceEachHoweverSlowTheReceiver) {
  constexpr std::uint32_t k_writes = 20000;
  run_ranks(2, k_deadline, [&](RankProcess& self) {
    const auto mover = join(self, k_writes * 8ULL);
    MoverLane& lane = mover->lane(0);
    Heard heard;
    if (self.rank() == 0) {
      fill(m_memory, 7);
      bool refused = false;
      for (std::uint32_t i = 0; i < k_writes; ++i) {
        while (!lane.write(1, {k_data, i * 8ULL}, {k_data, (k_writes - 1 - i) * 8ULL}, 8, i, i)) {
          refused = true;
          lane.wait(k_long_wait);
          heard.poll(lane);
        }
      }
      EXPECT_TRUE(refused) << "nothing bounds the writes in flight";
      heard.until(lane, [&] { return heard.sent.size() == k_writes; });
      std::sort(heard.sent.begin(), heard.sent.end());
      for (std::uint32_t i = 0; i < k_writes; ++i) {
        ASSERT_EQ(heard.sent[i], i);
      }
      heard.until(lane, [&] { return heard.tags == std::vector<std::uint32_t>{77}; });
    } else {
      heard.until(lane, [&] { return heard.tags.size() >= k_writes; });
      if (GetParam() == "host") { // the others promise no order
        EXPECT_TRUE(std::is_sorted(heard.tags.begin(), heard.tags.end()));
      }
      std::sort(heard.tags.begin(), heard.tags.end());
      for (std::uint32_t i = 0; i < k_writes; ++i) {
        ASSERT_EQ(heard.tags[i], i);
        ASSERT_EQ(wrong_bytes(m_memory.subspan((k_writes - 1 - i) * 8ULL, 8), 7, i * 8ULL), 0U)
            << i;
      }
      write_now(lane, heard, 0, {}, {}, 0, 77, 0);
      heard.until(lane, [&] { return heard.sent.size() == 1; });
    }
    self.barrier();
  });
}

TEST_P(Movers, ASleepingLaneWakesForEveryArrival) {
  constexpr std::uint32_t k_rounds = 3000;
  run_ranks(2, k_deadline, [&](RankProcess& self) {
    const auto mover = join(self, 4096);
    MoverLane& lane = mover->lane(0);
    Heard heard;
    for (std::uint32_t round = 0; round < k_rounds; ++round) {
      const auto mine = static_cast<std::uint64_t>(self.rank()) * 8, theirs = 8 - mine;
      if (self.rank() == 0) {
        std::memcpy(m_memory.data(), &round, sizeof round);
        write_now(lane, heard, 1, {k_data, mine}, {k_data, mine}, 8, round, round);
      }
      heard.until(lane, [&] { return heard.tags.size() == round + 1; });
      ASSERT_EQ(heard.tags.back(), round);
      std::uint32_t got = 0;
      std::memcpy(&got, m_memory.subspan(theirs).data(), sizeof got);
      ASSERT_EQ(got, round);
      if (self.rank() == 1) {
        std::memcpy(m_memory.subspan(mine).data(), &round, sizeof round);
        write_now(lane, heard, 0, {k_data, mine}, {k_data, mine}, 8, round, round);
      }
    }
    heard.until(lane, [&] { return heard.sent.size() == k_rounds; });
    self.barrier();
  });
}

TEST_P(Movers, WaitingDoesNotSpin) {
  run_ranks(2, k_deadline, [&](RankProcess& self) {
    const auto mover = join(self, 4096);
    self.barrier();
    const auto cpu = [] {
      timespec t{};
      ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); // threads of the provider count too
      return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
    };
    Heard heard;
    const auto before = cpu();
    const auto end = std::chrono::steady_clock::now() + 400ms;
    while (std::chrono::steady_clock::now() < end) {
      mover->lane(0).wait(100ms);
      heard.poll(mover->lane(0));
    }
    EXPECT_LT(cpu() - before, 200ms); // a spin would take 400 ms where there are cores enough
    self.barrier();
  });
}

TEST_P(Movers, BothDirectionsAtOnce) {
  constexpr std::uint32_t k_writes = 2000;
  constexpr std::uint64_t k_part = 16 * 1024 + 8;
  run_ranks(2, k_deadline, [&](RankProcess& self) {
    const auto mover = join(self, 2 * k_writes * k_part);
    MoverLane& lane = mover->lane(0);
    Heard heard;
    const int peer = 1 - self.rank();
    fill(m_memory.first(k_writes * k_part), static_cast<std::uint64_t>(self.rank()));
    for (std::uint32_t i = 0; i < k_writes; ++i) {
      write_now(lane, heard, peer, {k_data, i * k_part}, {k_data, (k_writes + i) * k_part}, k_part,
                i, i);
    }
    heard.until(lane,
                [&] { return heard.sent.size() == k_writes && heard.tags.size() == k_writes; });
    EXPECT_EQ(std::set<std::uint32_t>(heard.tags.begin(), heard.tags.end()).size(), k_writes);
    EXPECT_EQ(wrong_bytes(m_memory.subspan(k_writes * k_part), static_cast<std::uint64_t>(peer)),
              0U);
    self.barrier();
  });
}

TEST_P(Movers, SeveralRanksAndLanesDoNotMixUpWhatTheyWrite) {
  exchange_on_every_lane(GetParam(), {});
}

TEST_P(Movers, AWriteOutsideItsBuffersFailsAndTouchesNothing) {
  run_ranks(2, k_deadline, [&](RankProcess& self) {
    const auto mover = join(self, 4096);
    if (self.rank() == 0) {
      MoverLane& lane = mover->lane(0);
      Heard heard;
      const std::vector<std::pair<Slice, Slice>> bad{{{k_data, 4089}, {k_data, 0}},
                                                     {{k_data, 0}, {k_data, 4089}},
                                                     {{k_data, UINT64_MAX - 3}, {k_data, 0}},
                                                     {{k_data, 0}, {k_data, UINT64_MAX}},
                                                     {{9, 0}, {k_data, 0}},
                                                     {{k_data, 0}, {9, 0}}};
      std::vector<std::uint64_t> ids;
      for (const auto& [source, destination] : bad) {
        ids.push_back(ids.size());
        ASSERT_TRUE(lane.write(1, source, destination, 8, 5, ids.back()));
      }
      for (const int peer : {-1, 0, 2}) {
        ids.push_back(ids.size());
        ASSERT_TRUE(lane.write(peer, {k_data, 0}, {k_data, 0}, 8, 5, ids.back()));
      }
      heard.poll(lane);
      EXPECT_EQ(heard.failed, ids);
      EXPECT_FALSE(lane.error().empty());
    }
    self.barrier();
    if (self.rank() == 1) {
      Heard heard;
      heard.poll(mover->lane(0));
      EXPECT_TRUE(heard.tags.empty());
      EXPECT_TRUE(all_zero(m_memory));
    }
    self.barrier();
  });
}

TEST_P(Movers, ADeadPeerHangsNobodyAndLeavesNothing) {
  run_ranks(3, k_deadline,
            [&](RankProcess& self) {
              const auto mover = join(self, 1U << 20U);
              self.barrier();
              if (self.rank() == 2) {
                ::raise(SIGKILL);
              }
              MoverLane& lane = mover->lane(0);
              Heard heard;
              self.barrier(); // it is dead: the exchange goes on without it
              for (int i = 0; i < 20; ++i) {
                lane.wait(2ms);
                heard.poll(lane);
              }
              // Writing to it may succeed, fail or be refused; it must always come back.
              for (int i = 0; i < 200; ++i) {
                if (!lane.write(2, {k_data, 0}, {k_data, 0}, 65536, 1, 1)) {
                  lane.wait(1ms);
                }
                heard.poll(lane);
              }
              // The living still reach each other.
              const int peer = 1 - self.rank();
              while (!lane.write(peer, {k_data, 0}, {k_data, 0}, 4096, 3, 3)) {
                lane.wait(1ms);
                heard.poll(lane);
              }
              while (heard.tags.empty()) {
                lane.wait(100ms);
                heard.poll(lane);
              }
              self.barrier();
            },
            {2});
}

TEST_P(Movers, AnErrorEndsARankThatIsStillWrittenTo) {
  run_ranks(2, k_deadline, [&](RankProcess& self) {
    Heard heard;
    if (self.rank() == 0) {
      EXPECT_THROW(
          {
            const auto mover = join(self, 1U << 20U);
            self.barrier();
            while (heard.tags.size() < 100) {
              mover->lane(0).wait(k_long_wait);
              heard.poll(mover->lane(0));
            }
            throw Error(ErrorKind::operation, "the mover goes while writes arrive");
          },
          Error);
      self.barrier();
    } else {
      const auto mover = join(self, 1U << 20U);
      self.barrier();
      // At first all arrive; later ones may fail or be refused.
      for (int i = 0; i < 1000; ++i) {
        if (!mover->lane(0).write(0, {k_data, 0}, {k_data, 0}, 64, 1, 1)) {
          mover->lane(0).wait(1ms);
        }
        heard.poll(mover->lane(0));
      }
      self.barrier();
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, Movers, testing::ValuesIn(transports_here()),
                         [](const auto& param_info) { return as_test_name(param_info.param); });

/// Every transport, each habit off by itself and all of them together. `shm` is not the mover's.
class MoversWithout : public testing::TestWithParam<std::tuple<std::string, std::string>> {
protected:
  [[nodiscard]] static std::string transport() { return std::get<0>(GetParam()); }
  [[nodiscard]] static Habits habits() { return habits_without(std::get<1>(GetParam())); }
};

TEST_P(MoversWithout, EveryByteArrivesOnceBothWaysOnEveryLane) {
  exchange_on_every_lane(transport(), habits());
}

TEST_P(MoversWithout, AWriteOutsideItsBuffersFails) {
  run_ranks(2, k_deadline, [&](RankProcess& self) {
    const auto mover = make_mover(transport(), habits());
    static_cast<void>(mover->allocate(4096));
    mover->open(1);
    mover->connect(self.rank(), self.exchange(mover->address()));
    Heard heard;
    ASSERT_TRUE(mover->lane(0).write(1 - self.rank(), {0, 4089}, {0, 0}, 8, 5, 1));
    ASSERT_TRUE(mover->lane(0).write(1 - self.rank(), {0, 0}, {0, 4089}, 8, 5, 2));
    ASSERT_TRUE(mover->lane(0).write(self.rank(), {0, 0}, {0, 0}, 8, 5, 3));
    heard.poll(mover->lane(0));
    EXPECT_EQ(heard.failed, (std::vector<std::uint64_t>{1, 2, 3}));
    self.barrier();
  });
}

TEST_P(MoversWithout, RanksThatWereStartedDifferentlyRefuseEachOther) {
  run_ranks(2, k_deadline, [&](RankProcess& self) {
    const auto mover = make_mover(transport(), self.rank() == 0 ? habits() : Habits{});
    static_cast<void>(mover->allocate(64));
    mover->open(1);
    const std::vector<std::string> addresses = self.exchange(mover->address());
    EXPECT_THAT(test::refusal(
                    [&] {
                      mover->connect(self.rank(), addresses);
                      return 0;
                    },
                    ErrorKind::operation),
                testing::HasSubstr("--without " + std::get<1>(GetParam())));
    self.barrier(); // the memory of a peer must not go before it was looked at
  });
}

INSTANTIATE_TEST_SUITE_P(
    All, MoversWithout,
    testing::Combine(testing::ValuesIn(transports_here()),
                     testing::Values("register-once", "address-once", "aligned", "one-segment",
                                     "register-once,address-once",
                                     "register-once,address-once,aligned,one-segment")),
    [](const auto& param_info) {
      return as_test_name(std::get<0>(param_info.param) + "_" + std::get<1>(param_info.param));
    });

} // namespace
} // namespace reckon
