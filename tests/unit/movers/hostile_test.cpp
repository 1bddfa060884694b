// SPDX-License-Identifier: Apache-2.0
// A process that reaches the ports of a job's lanes and knows nothing else. It speaks the
// transport's own protocol: it is another endpoint of libfabric.
#include "core/file.hpp"
#include "core/json.hpp"
#include "movers/fabric_lane.hpp"
#include "support/ranks.hpp"
#include "support/transports.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>

using namespace std::chrono_literals;

namespace reckon {
namespace {

using support::RankProcess;
using support::run_ranks;
using support::transports_here;

constexpr auto k_deadline = 120s;
constexpr const char* k_transport = "tcp;ofi_rxm";
constexpr std::uint64_t k_bytes = 1U << 16U;
constexpr int k_stranger = 2; // ranks 0 and 1 are the job's

void skip_without_transport() {
  const std::vector<std::string>& here = transports_here();
  if (std::find(here.begin(), here.end(), k_transport) == here.end()) {
    GTEST_SKIP() << "no " << k_transport << " here";
  }
}

/// Where the first lane of the mover with that address listens: a socket's address.
std::vector<unsigned char> name_in(const std::string& address) {
  const Json lane = Json::parse(address).at("choices").front().at("lanes").front();
  const std::string hex = lane.at("name");
  std::vector<unsigned char> name;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    name.push_back(static_cast<unsigned char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return name;
}

/// An endpoint beside the job's. Where its victim listens it takes from the address that ranks
/// exchange, as it could from the system; the rest it makes up.
class StrangersLane : public FabricLane {
public:
  explicit StrangersLane(const std::string& victims_address) : FabricLane(*info(), own()) {
    RemoteLane victim;
    victim.name = name_in(victims_address);
    // Keys as they would be if they counted, and the addresses where regions begin.
    for (std::uint64_t key = 0; key < 64; ++key) {
      victim.buffers.push_back({0, key, k_bytes});
    }
    insert(1, {std::move(victim), RemoteLane{}});
  }

  /// Whether it could do that, which says nothing about what came of it.
  bool write_with_key(std::uint32_t key) {
    return posted([&] { return write(0, {0, 0}, {key, 0}, 4096, key, key); });
  }
  /// A write to no memory, which needs no key: only its arrival is told.
  bool write_nowhere(std::uint32_t tag) {
    fi_msg_rma message{};
    message.addr = m_addresses[0];
    message.context = &m_more[0].context;
    message.data = tag;
    return posted(
        [&] { return fi_writemsg(m_ep.get(), &message, FI_REMOTE_CQ_DATA | FI_COMPLETION) == 0; });
  }
  /// A message, with a tag as though it were a write.
  bool say(std::size_t bytes, std::uint32_t tag) {
    return posted([&] {
      return fi_senddata(m_ep.get(), m_buffers[0].data(), bytes, desc(m_regions[0]), tag,
                         m_addresses[0], &m_more[1].context) == 0;
    });
  }

private:
  static const std::vector<std::span<std::byte>>& own() {
    static std::vector<std::byte> bytes(k_bytes, std::byte{5});
    static const std::vector<std::span<std::byte>> buffers{bytes};
    return buffers;
  }
  static const fi_info* info() {
    static const FiInfo found = [] {
      ::setenv("FI_OFI_RXM_BUFFER_SIZE", "1024", 0); // as a job's lanes have it: others are let go
      const FiInfo hints(libfabric().dupinfo(nullptr));
      hints->caps = FI_MSG | FI_RMA;
      hints->mode = FI_CONTEXT | FI_CONTEXT2;
      hints->ep_attr->type = FI_EP_RDM;
      hints->domain_attr->mr_mode =
          FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
      hints->fabric_attr->prov_name = ::strdup(k_transport);
      fi_info* all = nullptr;
      check_fi(libfabric().getinfo(FI_VERSION(1, 17), "127.0.0.1", nullptr, FI_SOURCE, hints.get(),
                                   &all),
               "fi_getinfo");
      return FiInfo(all);
    }();
    return found.get();
  }

  /// Tries until it is posted, then gives it time to leave.
  template <class Post>
  bool posted(Post post) {
    bool done = false;
    std::array<Completion, 16> out;
    const auto limit = std::chrono::steady_clock::now() + k_deadline / 2;
    while (!done && std::chrono::steady_clock::now() < limit) {
      done = post();
      static_cast<void>(poll(out));
      std::this_thread::sleep_for(100us);
    }
    for (int i = 0; i < 50; ++i) {
      static_cast<void>(poll(out));
      std::this_thread::sleep_for(100us);
    }
    return done;
  }

  std::array<Slot, 2> m_more;
};

/// A rank of a job of two, and what it hears.
class Victim {
public:
  explicit Victim(RankProcess& self)
      : m_self(self), m_mover(make_mover(k_transport)), m_memory(m_mover->allocate(k_bytes)) {
    m_mover->open(1);
    m_addresses = m_self.exchange(m_mover->address());
    m_addresses.resize(2); // the stranger is no rank
  }
  void connect() { m_mover->connect(m_self.rank(), m_addresses); }
  /// The tags of all that arrive until `tag` does.
  std::vector<std::uint32_t> hear_until(std::uint32_t tag) {
    std::vector<std::uint32_t> tags;
    MoverLane& lane = m_mover->lane(0);
    while (std::find(tags.begin(), tags.end(), tag) == tags.end()) {
      std::array<Completion, 16> out;
      const std::size_t count = lane.poll(out);
      for (std::size_t i = 0; i < count; ++i) {
        EXPECT_NE(out[i].kind, Completion::Kind::failed) << lane.error();
        if (out[i].kind == Completion::Kind::arrived) {
          tags.push_back(out[i].tag);
        }
        if (out[i].kind == Completion::Kind::failed) {
          return tags;
        }
      }
      lane.wait(1ms);
    }
    return tags;
  }
  /// Rank 1 writes, and rank 0 has heard of nothing else.
  void expect_to_be_well() {
    constexpr std::uint32_t k_tag = 77;
    if (m_self.rank() == 1) {
      m_memory[0] = std::byte{9};
      ASSERT_TRUE(m_mover->lane(0).write(0, {0, 0}, {0, 8}, 1, k_tag, 1));
    } else {
      EXPECT_EQ(hear_until(k_tag), std::vector{k_tag});
      EXPECT_EQ(m_memory[8], std::byte{9});
      m_memory[8] = std::byte{0};
      EXPECT_TRUE(std::all_of(m_memory.begin(), m_memory.end(), [](std::byte b) {
        return b == std::byte{0};
      })) << "a stranger wrote here";
    }
  }
  /// Without a lane that looks nothing that strangers send comes in.
  void look_until(const std::atomic<bool>& done) {
    std::array<Completion, 16> out;
    while (!done) {
      for (std::size_t c = 0, n = m_mover->lane(0).poll(out); c < n; ++c) {
        ADD_FAILURE() << "kind " << static_cast<int>(out[c].kind) << ", tag " << out[c].tag;
      }
      m_mover->lane(0).wait(1ms);
    }
  }

private:
  RankProcess& m_self;
  std::unique_ptr<Mover> m_mover;
  std::span<std::byte> m_memory;
  std::vector<std::string> m_addresses;
};

enum class When { while_it_connects, when_it_has };

/// Runs a job of two, whose rank 0 a stranger attacks.
void attack(When when, const std::function<void(const std::string& address)>& attacks) {
  skip_without_transport();
  if (testing::Test::IsSkipped()) {
    return;
  }
  void* const shared =
      ::mmap(nullptr, k_page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto* const done = new (shared) std::atomic<bool>(false);
  run_ranks(3, k_deadline, [&](RankProcess& self) {
    if (self.rank() == k_stranger) {
      const std::vector<std::string> addresses = self.exchange("");
      if (when == When::when_it_has) {
        self.barrier();
      }
      attacks(addresses[0]);
      *done = true;
      self.barrier();
      self.barrier();
      return;
    }
    Victim victim(self);
    if (when == When::while_it_connects) {
      while (self.rank() == 1 && !*done) { // rank 0 waits for its hello meanwhile
        std::this_thread::sleep_for(1ms);
      }
      victim.connect();
    } else {
      victim.connect();
      self.barrier();
      if (self.rank() == 0) {
        victim.look_until(*done);
      }
    }
    self.barrier();
    victim.expect_to_be_well();
    self.barrier();
  });
}

TEST(Stranger, WithKeysThatCountWritesNothing) {
  attack(When::when_it_has, [](const std::string& address) {
    for (std::uint32_t key = 0; key < 16; ++key) {
      StrangersLane lane(address); // a wrong key ends its connection
      EXPECT_TRUE(lane.write_with_key(key));
    }
  });
}

TEST(Stranger, TellsOfNoArrival) {
  attack(When::when_it_has, [](const std::string& address) {
    StrangersLane lane(address);
    for (const std::uint32_t tag : {0U, 1U, 77U}) {
      EXPECT_TRUE(lane.write_nowhere(tag));
      EXPECT_TRUE(lane.say(8, tag));
    }
  });
}

TEST(Stranger, KeepsNoRankFromConnecting) {
  attack(When::while_it_connects, [](const std::string& address) {
    StrangersLane lane(address);
    for (const std::size_t bytes : {std::size_t{8}, sizeof(Message), std::size_t{200}}) {
      EXPECT_TRUE(lane.say(bytes, 5));
      EXPECT_TRUE(lane.write_nowhere(5));
    }
  });
}

TEST(Stranger, ReachesALaneOnlyWhereItListens) {
  skip_without_transport();
  if (IsSkipped()) {
    return;
  }
  run_ranks(1, k_deadline, [](RankProcess&) {
    const auto mover = make_mover(k_transport);
    mover->open(1);
    sockaddr_in at{};
    const std::vector<unsigned char> name = name_in(mover->address());
    ASSERT_EQ(name.size(), sizeof at);
    std::memcpy(&at, name.data(), sizeof at);
    const auto status_of_call = [&] {
      const Fd socket(::socket(AF_INET, SOCK_STREAM, 0));
      return ::connect(socket.get(), reinterpret_cast<sockaddr*>(&at), sizeof at);
    };
    EXPECT_EQ(at.sin_addr.s_addr, htonl(INADDR_LOOPBACK)); // the choice that stands first
    EXPECT_EQ(status_of_call(), 0);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1); // 127.0.0.2 is this machine as well
    EXPECT_NE(status_of_call(), 0);
  });
}

} // namespace
} // namespace reckon
