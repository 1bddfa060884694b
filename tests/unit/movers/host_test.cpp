// SPDX-License-Identifier: Apache-2.0
#include "movers/host.hpp"

#include "core/file.hpp"
#include "core/json.hpp"
#include "movers/mailbox.hpp"
#include "support/refusals.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <sys/mman.h>
#include <thread>

using namespace std::chrono_literals;

namespace reckon {
namespace {

/// Two ranks in one process, so that the thread sanitizer sees both sides.
struct Pair {
  std::array<std::unique_ptr<Mover>, 2> movers{make_host_mover(), make_host_mover()};
  std::array<std::span<std::byte>, 2> memory;
  std::vector<std::string> addresses;

  explicit Pair(std::uint64_t bytes) {
    for (std::size_t i = 0; i < 2; ++i) {
      memory[i] = movers[i]->allocate(bytes);
      movers[i]->open(1);
      addresses.push_back(movers[i]->address());
    }
  }
  void connect() {
    movers[0]->connect(0, addresses);
    movers[1]->connect(1, addresses);
  }
};

TEST(HostMover, SaysWhyAPeerCannotBeReached) {
  struct Case {
    const char* member;
    Json value;
    const char* words;
  };
  const Pair pair(64);
  for (const auto& [member, value, words] : std::vector<Case>{
           {"boot", "00000000-0000-0000-0000-000000000000", "another machine"},
           {"token", std::string(32, 'f'), "process ids differ"}, // another process of that number
           {"token", "short", "process ids differ"},
           {"control", 1, "cannot open the memory of rank 1"}, // our standard output
           {"pid", 0x7FFFFFFF, "be alive"}}) {                 // above any pid_max
    Json other = parse_json(pair.addresses[1], "test");
    other[member] = value;
    const auto mover = make_host_mover();
    mover->open(1);
    EXPECT_REFUSED(unavailable, words, mover->connect(0, {pair.addresses[0], other.dump()}));
  }
}

TEST(HostMover, RefusesATruncatedAddress) {
  const Pair pair(64);
  const auto mover = make_host_mover();
  mover->open(1);
  EXPECT_ERROR(mover->connect(0, {pair.addresses[0], pair.addresses[1].substr(0, 40)}));
  EXPECT_ERROR(mover->connect(0, {pair.addresses[0], R"({"mover": "host"})"}));
}

TEST(HostMover, ASenderThatIsRefusedAgainAndAgainMissesNoWakeUp) {
  // The ring stays full: the receiver takes one tag at a time, while the sender puts the next one
  // and is refused again. Whoever sleeps is woken by the other; a sleep that ends by its limit is
  // one that nobody ended.
  constexpr std::uint32_t k_tags = 300'000;
  constexpr std::chrono::seconds k_limit = 120s;
  Pair pair(64);
  pair.connect();
  std::atomic<int> overslept{0};
  const auto sleep = [&](MoverLane& lane) {
    const auto begin = std::chrono::steady_clock::now();
    lane.wait(k_limit);
    overslept += std::chrono::steady_clock::now() - begin >= k_limit ? 1 : 0;
  };
  const std::jthread receiver([&] {
    MoverLane& lane = pair.movers[1]->lane(0);
    std::array<Completion, 1> out;
    for (std::uint32_t count = 0; count < k_tags && overslept == 0;) {
      const std::size_t now = lane.poll(out);
      count += static_cast<std::uint32_t>(now);
      if (now == 0) {
        sleep(lane);
      }
    }
  });
  MoverLane& lane = pair.movers[0]->lane(0);
  std::array<Completion, 64> out;
  for (std::uint32_t written = 0; written < k_tags && overslept == 0;) {
    if (lane.write(1, {0, 0}, {0, 0}, 0, written, 0)) {
      ++written;
      static_cast<void>(lane.poll(out));
    } else {
      sleep(lane);
    }
  }
  EXPECT_EQ(overslept, 0);
}

/// Of this process's mappings of buffers, as the system counts them.
std::uint64_t kib_in_large_pages() {
  std::ifstream smaps("/proc/self/smaps");
  std::uint64_t kib = 0;
  bool buffer = false;
  for (std::string line; std::getline(smaps, line);) {
    const std::string first = line.substr(0, line.find(' '));
    if (first.find('-') != std::string::npos && first.back() != ':') { // a mapping's range
      buffer = line.find("reckon-buffer") != std::string::npos;
    } else if (buffer && first == "ShmemPmdMapped:") {
      kib += std::stoull(line.substr(first.size()));
    }
  }
  return kib;
}

/// Whether the system collapses shared memory into large pages when it is asked to.
bool system_has_large_pages() {
  constexpr std::size_t k_page = 2U << 20U;
  constexpr int k_collapse = 25;
  const Fd fd = make_shared_memory("reckon-test", 2 * k_page);
  void* const room = ::mmap(nullptr, 2 * k_page, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  const auto at = (reinterpret_cast<std::uintptr_t>(room) + k_page - 1) / k_page * k_page;
  // Mapped where a large page may begin, from the start of the file.
  void* const page = ::mmap(reinterpret_cast<void*>(at), k_page, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_FIXED, fd.get(), 0);
  std::memset(page, 1, k_page);
  const bool can = ::madvise(page, k_page, k_collapse) == 0;
  ::munmap(room, 2 * k_page);
  return can;
}

TEST(HostMover, MemoryIsInLargePagesForBothWhoShareItWhereTheSystemHasThem) {
  if (!system_has_large_pages()) {
    GTEST_SKIP() << "the system gives shared memory no large pages";
  }
  Pair pair((8U << 20U) + 4096); // the last page is a small one
  const std::uint64_t own = kib_in_large_pages();
  EXPECT_GT(own, 0U);
  pair.connect();
  EXPECT_EQ(kib_in_large_pages(), 2 * own);
}

/// The tags that `box` takes now, at most `most`.
std::vector<std::uint32_t> taken(Mailbox& box, std::size_t most) {
  std::vector<Completion> out(most);
  out.resize(box.take(out));
  std::vector<std::uint32_t> tags;
  for (const Completion& c : out) {
    tags.push_back(c.tag);
  }
  return tags;
}

TEST(Mailbox, CountersWrapWithoutLosingATagOrRoom) {
  // Counts start so that they pass 2^32 inside the first ring, at the end of one, and between two.
  for (const std::uint32_t before : {1U, 500U, k_mail_entries, k_mail_entries + 1, 2500U}) {
    SCOPED_TRACE(testing::Message() << before << " tags before 2^32");
    const MailboxSegment from("host", 1), to("host", 1);
    Mailbox sender(0, from.control()), receiver(0, to.control());
    sender.connect(0, {nullptr, &to.control()}, 0 - before);
    receiver.connect(1, {&from.control(), nullptr}, 0 - before);
    std::vector<std::uint32_t> sent, got;
    for (std::uint32_t tag = 0; tag < 4000;) {
      for (; sender.has_room(1); ++tag) {
        sender.put(1, tag);
        sent.push_back(tag);
      }
      ASSERT_EQ(sent.size() - got.size(), k_mail_entries); // full, and not before
      const std::vector<std::uint32_t> some = taken(receiver, 333);
      ASSERT_EQ(some.size(), 333U);
      got.insert(got.end(), some.begin(), some.end());
    }
    const std::vector<std::uint32_t> rest = taken(receiver, 2 * k_mail_entries);
    got.insert(got.end(), rest.begin(), rest.end());
    EXPECT_EQ(got, sent);
  }
}

TEST(Mailbox, WhoHasMailThatCameWhileAwakeDoesNotGoToSleep) {
  const MailboxSegment from("host", 1), to("host", 1);
  Mailbox sender(0, from.control()), receiver(0, to.control());
  sender.connect(0, {nullptr, &to.control()});
  receiver.connect(1, {&from.control(), nullptr});
  ASSERT_TRUE(sender.has_room(1));
  sender.put(1, 7); // nobody sleeps, so that no bell is rung
  EXPECT_FALSE(receiver.before_sleep(1s));
  EXPECT_EQ(taken(receiver, 1), std::vector<std::uint32_t>{7});
  EXPECT_TRUE(receiver.before_sleep(1s));
  receiver.after_sleep();
}

TEST(HostMover, NeverHandsOutMoreThanItWasGivenRoomFor) {
  Pair pair(64);
  pair.connect();
  for (std::uint32_t i = 0; i < 10; ++i) {
    ASSERT_TRUE(pair.movers[0]->lane(0).write(1, {0, 0}, {0, 0}, 0, i, i));
  }
  std::array<Completion, 3> out;
  EXPECT_EQ(pair.movers[1]->lane(0).poll({}), 0U);
  std::uint32_t expected = 0;
  for (const std::size_t count : {3U, 3U, 3U, 1U}) {
    ASSERT_EQ(pair.movers[1]->lane(0).poll(out), count);
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_EQ(out[i].tag, expected++);
    }
  }
}

} // namespace
} // namespace reckon
