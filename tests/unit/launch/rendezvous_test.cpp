// SPDX-License-Identifier: Apache-2.0
#include "launch/rendezvous.hpp"

#include "launch/sockets.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <thread>

namespace reckon {
namespace {

constexpr Seconds k_limit{20};

JobEnvironment job(int rank, int size, int port) {
  JobEnvironment j;
  j.rank = rank;
  j.size = size;
  j.master_address = "127.0.0.1";
  j.master_port = port;
  j.token = "secret";
  return j;
}

/// Runs `body(rendezvous)` for every rank in a thread of its own; returns what each threw.
template <class Body>
std::vector<std::string> run_ranks(int size, Body body,
                                   const std::vector<std::string>& digests = {}) {
  Listener listener = listen_locally();
  std::vector<std::string> errors(static_cast<std::size_t>(size));
  {
    std::vector<std::jthread> threads;
    for (int r = 0; r < size; ++r) {
      threads.emplace_back([&, r] {
        try {
          Rendezvous rendezvous(job(r, size, listener.port),
                                digests.empty() ? "plan" : digests[static_cast<std::size_t>(r)],
                                k_limit, r == 0 ? std::move(listener.socket) : Fd());
          body(rendezvous);
        } catch (const Error& e) {
          errors[static_cast<std::size_t>(r)] = e.what();
        }
      });
    }
  }
  return errors;
}

TEST(Rendezvous, GathersInRankOrderAndBroadcasts) {
  const auto errors = run_ranks(5, [](Rendezvous& r) {
    for (int round = 0; round < 3; ++round) {
      const std::string mine =
          std::string(static_cast<std::size_t>(r.rank()) * 50000, 'x') + std::to_string(r.rank());
      const std::vector<std::string> all = r.all_gather(mine, k_limit);
      ASSERT_EQ(all.size(), 5U);
      for (std::size_t i = 0; i < all.size(); ++i) {
        EXPECT_EQ(all[i].size(), i * 50000 + 1);
        EXPECT_EQ(all[i].back(), static_cast<char>('0' + i));
      }
      EXPECT_EQ(r.broadcast(r.rank() == 0 ? "go" : "", k_limit), "go");
    }
    EXPECT_EQ(r.clock_offset().offset_ns, 0) << "threads of one machine share a clock";
  });
  EXPECT_THAT(errors, testing::Each(""));
}

TEST(Rendezvous, OneRankNeedsNoNetwork) {
  Rendezvous alone(job(0, 1, 0), "plan", k_limit);
  EXPECT_THAT(alone.all_gather("me", k_limit), testing::ElementsAre("me"));
}

TEST(Rendezvous, ARankThatLeavesIsNamedByAllOthers) {
  const auto errors = run_ranks(4, [](Rendezvous& r) {
    static_cast<void>(r.all_gather("", k_limit));
    if (r.rank() == 2) {
      return; // its connection closes
    }
    try {
      static_cast<void>(r.all_gather("", k_limit));
    } catch (const Error& e) {
      r.give_up(e.what());
      throw;
    }
  });
  EXPECT_EQ(errors[2], "");
  for (const int r : {0, 1, 3}) {
    EXPECT_THAT(errors[static_cast<std::size_t>(r)], testing::HasSubstr("rank 2"));
  }
}

TEST(Rendezvous, AReasonToGiveUpReachesEverybody) {
  const auto errors = run_ranks(3, [](Rendezvous& r) {
    try {
      if (r.rank() == 1) {
        fail(ErrorKind::unavailable, "no memory on rank 1");
      }
      static_cast<void>(r.all_gather("", k_limit));
    } catch (const Error& e) {
      r.give_up(e.what());
      throw;
    }
  });
  for (const std::string& e : errors) {
    EXPECT_THAT(e, testing::HasSubstr("no memory on rank 1"));
  }
}

TEST(Rendezvous, AnotherPlanIsRefusedWithTheRank) {
  const auto errors = run_ranks(2, [](Rendezvous&) {}, {"plan a", "plan b"});
  EXPECT_THAT(errors[0], testing::HasSubstr("rank 1 was started with another plan"));
  EXPECT_THAT(errors[1], testing::HasSubstr("another plan"));
}

TEST(Rendezvous, AStrangerIsRefusedAndTheJobGoesOn) {
  Listener listener = listen_locally();
  const int port = listener.port;
  std::string error;
  std::jthread root([&] {
    try {
      Rendezvous r(job(0, 2, port), "plan", k_limit, std::move(listener.socket));
      EXPECT_THAT(r.all_gather("a", k_limit), testing::ElementsAre("a", "b"));
    } catch (const Error& e) {
      error = e.what();
    }
  });
  // One stranger talks nonsense, one knows the words but not the token, one says nothing and stays.
  std::vector<Fd> strangers;
  for (const std::string& words :
       {std::string("GET / HTTP/1.0\r\n\r\n"), std::string("d\x10\0\0\0{\"token\":\"bad\"}!", 21),
        std::string()}) {
    Fd socket(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    ASSERT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(::send(socket.get(), words.data(), words.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(words.size()));
    strangers.push_back(std::move(socket));
  }
  Rendezvous peer(job(1, 2, port), "plan", k_limit);
  EXPECT_THAT(peer.all_gather("b", k_limit), testing::ElementsAre("a", "b"));
  root.join();
  EXPECT_EQ(error, "");
}

TEST(Rendezvous, NobodyThereIsSaidInTime) {
  Listener listener = listen_locally();
  const int port = listener.port;
  listener.socket = Fd();
  try {
    Rendezvous r(job(1, 2, port), "plan", Seconds(0.2));
    FAIL() << "no error";
  } catch (const PeerError& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("rank 1 cannot reach rank 0 at 127.0.0.1"));
  }
  Listener lonely = listen_locally();
  try {
    Rendezvous r(job(0, 3, lonely.port), "plan", Seconds(0.2), std::move(lonely.socket));
    FAIL() << "no error";
  } catch (const PeerError& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("ranks 1, 2 did not join in time"));
  }
}

TEST(JobEnvironmentTest, ReadsAndChecksTheVariables) {
  for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    ::unsetenv(name);
  }
  EXPECT_FALSE(job_from_environment());
  ::setenv("RANK", "1", 1);
  EXPECT_THROW(static_cast<void>(job_from_environment()), Error);
  ::setenv("WORLD_SIZE", "2", 1);
  EXPECT_THROW(static_cast<void>(job_from_environment()), Error); // no MASTER_ADDR
  ::setenv("MASTER_ADDR", "127.0.0.1", 1);
  ::setenv("MASTER_PORT", "70000", 1);
  EXPECT_THROW(static_cast<void>(job_from_environment()), Error);
  ::setenv("MASTER_PORT", "4000", 1);
  EXPECT_EQ(job_from_environment()->master_port, 4000);
  ::setenv("RANK", "2", 1);
  EXPECT_THROW(static_cast<void>(job_from_environment()), Error); // ranks are 0 and 1
  for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    ::unsetenv(name);
  }
}

} // namespace
} // namespace reckon
