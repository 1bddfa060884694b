// SPDX-License-Identifier: Apache-2.0
#include "launch/rendezvous.hpp"

#include "core/json.hpp"
#include "core/version.hpp"
#include "launch/sockets.hpp"
#include "support/local_job.hpp"
#include "support/messages.hpp"
#include "support/puppet.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <functional>
#include <iostream>
#include <latch>
#include <netinet/in.h>
#include <poll.h>
#include <random>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace reckon {
namespace {

using support::error_of_root;
using support::hello;
using support::job;
using support::joined;
using support::k_limit;
using support::peer_error_of;
using support::Puppet;

/// Runs `body(rendezvous)` for every rank in a thread of its own, which gives up for what it
/// throws; returns that.
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
                                k_limit, r == 0 ? std::move(listener.socket) : Fd(), k_limit);
          try {
            body(rendezvous);
          } catch (const Error& e) {
            rendezvous.give_up(e);
            throw;
          }
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
    static_cast<void>(r.all_gather("", k_limit));
  });
  EXPECT_EQ(errors[2], "");
  for (const int r : {0, 1, 3}) {
    EXPECT_THAT(errors[static_cast<std::size_t>(r)],
                testing::ContainsRegex("rank 2 \\(.*\\) left before the others were done"));
  }
}

TEST(Rendezvous, AReasonToGiveUpReachesEverybody) {
  for (const int guilty : {0, 1}) {
    const auto errors = run_ranks(3, [&](Rendezvous& r) {
      if (r.rank() == guilty) {
        fail(ErrorKind::unavailable, "no memory here");
      }
      static_cast<void>(r.all_gather("", k_limit));
    });
    for (int rank = 0; rank < 3; ++rank) {
      const std::string& error = errors[static_cast<std::size_t>(rank)];
      EXPECT_THAT(error, test::Says("memory"));
      EXPECT_THAT(error, testing::StartsWith(rank == guilty ? "no memory"
                                                            : fmt::format("rank {} (", guilty)));
    }
  }
}

TEST(Rendezvous, AnotherPlanIsRefusedWithTheRank) {
  const auto errors = run_ranks(2, [](Rendezvous&) {}, {"plan a", "plan b"});
  EXPECT_THAT(errors[0], testing::HasSubstr("rank 1 ("));
  EXPECT_THAT(errors[1], testing::HasSubstr("another plan"));
}

TEST(Rendezvous, NobodyThereIsSaidInTime) {
  const auto wait = [](int rank, int size, int port, Fd listener) {
    return peer_error_of([&] {
      const Rendezvous r(job(rank, size, port), "plan", Seconds(0.2), std::move(listener));
    });
  };
  const int port = listen_locally().port; // nobody listens there any more
  EXPECT_THAT(wait(1, 2, port, Fd()), test::Says("127.0.0.1"));
  Listener lonely = listen_locally();
  EXPECT_THAT(wait(0, 3, lonely.port, std::move(lonely.socket)), test::Says("within 200"));
}

TEST(Rendezvous, ATakenRankIsRefusedAndTheJobGoesOn) {
  const std::string error = error_of_root(3, [](int port) {
    Puppet first = Puppet::calling(port);
    first.introduce(hello(1, 3));
    EXPECT_EQ(first.hear().kind, MessageKind::data) << "no welcome";
    EXPECT_THAT(peer_error_of([&] { joined(1, 3, port); }), test::Says("already"));
    Puppet other = Puppet::calling(port);
    other.introduce(hello(2, 3));
    EXPECT_EQ(other.hear().kind, MessageKind::data) << "the job did not go on";
  });
  EXPECT_THAT(error, testing::HasSubstr("(ghost) died")); // the puppets left
}

TEST(Rendezvous, DifferencesBetweenRanksAreNamedWithBothValues) {
  struct Difference {
    const char* key;
    Json value;
    std::vector<std::string> words; ///< in the error
  };
  for (const auto& [key, value, words] : std::vector<Difference>{
           {"size", 5, {"rank 2 (ghost) was started for a job of 5 ranks", "for one of 4"}},
           {"reckon", "9.9.9", {"rank 2 (ghost) runs reckon 9.9.9", k_version}},
           {"plan", "sha256:other", {"rank 2 (ghost)", "(sha256:other)", "(plan)"}},
           {"rank", 7, {"rank 7 (ghost) joined"}},
           {"rank", "two", {"rank -1"}}, // who knows the token may still be no rank
           {"rank", 4294967298, {"rank -1"}}}) {
    Json other = hello(2, 4);
    other[key] = value;
    const std::string error = error_of_root(4, [&](int port) {
      Puppet puppet = Puppet::calling(port);
      puppet.introduce(other);
      EXPECT_EQ(puppet.hear().kind, MessageKind::give_up);
    });
    for (const std::string& word : words) {
      EXPECT_THAT(error, testing::HasSubstr(word));
    }
  }
}

/// What rank 1 of two throws while rank 0 says `clock` to each of its pings, then `gathered`.
std::string error_of_rank_1(const std::string& clock, const std::string& gathered,
                            Seconds peer_limit = k_default_peer_limit) {
  const Listener listener = listen_locally();
  std::string error;
  std::jthread rank([&] {
    error = peer_error_of([&] {
      Rendezvous r = joined(1, 2, listener.port, Fd(), peer_limit);
      EXPECT_THAT(r.all_gather("b", k_limit), testing::ElementsAre("a", "b"));
    });
  });
  Puppet root = Puppet::called(listener);
  root.welcome();
  for (int i = 0; !clock.empty() && i < 8 && root.hear().kind == MessageKind::data; ++i) {
    root.say(clock);
  }
  if (!clock.empty() && root.hear().kind == MessageKind::data) {
    root.say(gathered);
  }
  rank.join();
  return error;
}

TEST(Rendezvous, ASilentRank0IsNamed) {
  EXPECT_THAT(error_of_rank_1("", "", Seconds(1)), test::Says("0 (throne)"));
}

TEST(Rendezvous, NonsenseOfRank0IsShown) {
  for (const std::string clock : {"noon", "99999999999999999999"}) {
    EXPECT_EQ(error_of_rank_1(clock, ""),
              "rank 0 (throne) sent '" + clock + "' instead of the time of its clock");
  }
  for (const std::string gathered :
       {"", "1:a", "1:a1:b1:c", "x:a1:b", "1:a2:b", "1a1:b", "1:a-1:b", "18446744073709551615:a"}) {
    EXPECT_EQ(error_of_rank_1("5", gathered),
              "rank 0 (throne) sent '" + gathered + "', which is not what each of 2 ranks said");
  }
}

TEST(Rendezvous, ARankThatFallsSilentIsNamed) {
  std::optional<Puppet> puppet; // stays connected: only its silence tells
  const std::string error = error_of_root(
      2,
      [&](int port) {
        puppet.emplace(Puppet::calling(port));
        puppet->introduce(hello(1, 2));
        const Message welcome = puppet->hear();
        EXPECT_EQ(welcome.kind, MessageKind::data);
        EXPECT_EQ(puppet->hear().kind, MessageKind::give_up) << "it is told, should it wake up";
      },
      Seconds(1));
  EXPECT_THAT(error, test::Says("1 (ghost)"));
}

TEST(Rendezvous, Rank0WithoutAnybodyIsCutOff) {
  Listener listener = listen_locally();
  std::vector<Puppet> puppets; // at the door before it opens, so that both fall silent at once
  for (int i = 0; i < 2; ++i) {
    puppets.push_back(Puppet::calling(listener.port));
  }
  const std::jthread others([&] {
    puppets[0].introduce(hello(1, 3));
    puppets[1].introduce(hello(2, 3));
    for (Puppet& p : puppets) {
      EXPECT_EQ(p.hear().kind, MessageKind::data);
    }
    for (Puppet& p : puppets) {
      EXPECT_EQ(p.hear().kind, MessageKind::give_up);
    }
  });
  EXPECT_THAT(
      peer_error_of([&] { joined(0, 3, listener.port, std::move(listener.socket), Seconds(1)); }),
      test::Says("heard"));
}

TEST(Rendezvous, ComputingForLongIsNoDeath) {
  Listener listener = listen_locally();
  std::latch waited(1);
  const Seconds peer_limit = k_least_peer_limit;
  std::jthread busy([&] {
    Rendezvous r = joined(1, 2, listener.port, Fd(), peer_limit);
    waited.wait(); // makes no call, as a rank that computes
    EXPECT_THAT(r.all_gather("b", k_limit), testing::ElementsAre("a", "b"));
  });
  Rendezvous root = joined(0, 2, listener.port, std::move(listener.socket), peer_limit);
  EXPECT_NO_THROW(root.blame_a_peer(1.5 * peer_limit)); // listens that long for bad news
  waited.count_down();
  EXPECT_THAT(root.all_gather("a", k_limit), testing::ElementsAre("a", "b"));
}

TEST(Rendezvous, NewsPassThroughRank0WhileItComputes) {
  Listener listener = listen_locally();
  const int port = listener.port;
  std::latch heard(1), here(3);
  std::string error;
  std::jthread root([&] {
    const Rendezvous r = joined(0, 3, port, std::move(listener.socket));
    here.arrive_and_wait();
    heard.wait();
  });
  std::jthread quitter([&] {
    Rendezvous r = joined(2, 3, port);
    here.arrive_and_wait();
    r.give_up(Error(ErrorKind::operation, "out of memory"));
  });
  std::jthread listening([&] {
    Rendezvous r = joined(1, 3, port);
    here.arrive_and_wait();
    error = peer_error_of([&] { r.blame_a_peer(k_limit); });
    heard.count_down();
  });
  listening.join();
  EXPECT_THAT(error, test::Says("memory"));
  EXPECT_THAT(error, testing::StartsWith("rank 2 ("));
}

TEST(Rendezvous, TheLastWordsOfRank0Arrive) {
  // Rank 0 leaves at once, with far more than a socket holds on its way and signs of life unread.
  const std::string much(20'000'000, 'x');
  const auto errors = run_ranks(3, [&](Rendezvous& r) {
    const auto all = r.all_gather(r.rank() == 0 ? much : std::string(), k_limit);
    EXPECT_TRUE(all[0] == much);
  });
  EXPECT_THAT(errors, testing::Each(""));
}

TEST(Rendezvous, ARankThatIsDoneIsNoDeath) {
  Listener listener = listen_locally();
  std::jthread quick([&] {
    Rendezvous r = joined(1, 2, listener.port);
    static_cast<void>(r.all_gather("", k_limit));
  });
  Rendezvous root = joined(0, 2, listener.port, std::move(listener.socket));
  static_cast<void>(root.all_gather("", k_limit));
  quick.join(); // it has said goodbye, and been answered, while rank 0 made no call
  EXPECT_NO_THROW(root.watch(Seconds(0)));
}

/// A rank in a call that never returns, after rank 0 is gone.
[[noreturn]] void hang_without_rank_0() {
  const Listener listener = listen_locally();
  std::jthread root([&] {
    Puppet p = Puppet::called(listener);
    p.welcome();
    for (int i = 0; i < 8; ++i) {
      static_cast<void>(p.hear());
      p.say("0");
    }
  });
  Rendezvous r = joined(1, 2, listener.port);
  for (;;) {
    ::pause();
  }
}

TEST(RendezvousDeathTest, AHungProcessEndsItself) {
  EXPECT_EXIT(hang_without_rank_0(), testing::ExitedWithCode(4), "rank 0 \\(throne\\) died");
}

TEST(ConnectionTest, MessagesSurviveEveryCut) {
  constexpr unsigned k_seed = 20240611;
  std::cout << "seed " << k_seed << '\n';
  std::mt19937 random(k_seed);
  const auto up_to = [&](std::size_t most) {
    return std::uniform_int_distribution<std::size_t>(0, most)(random);
  };
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> texts(1 + up_to(5));
    std::string bytes;
    for (std::string& text : texts) {
      text.resize(up_to(round % 10 == 0 ? 4000 : 12));
      std::generate(text.begin(), text.end(), [&] { return static_cast<char>(up_to(255)); });
      bytes += std::string{'d', static_cast<char>(text.size() & 255U),
                           static_cast<char>(text.size() >> 8U), 0, 0} +
               text;
    }
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    const Fd sender(ends[0]);
    Connection receiver(Fd(ends[1]), "there");
    std::vector<std::string> received;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t piece = std::min(bytes.size() - at, 1 + up_to(9));
      ASSERT_EQ(::send(sender.get(), bytes.data() + at, piece, 0), static_cast<ssize_t>(piece));
      at += piece;
      receiver.receive();
      while (auto message = receiver.next()) {
        received.push_back(message->text);
      }
    }
    EXPECT_EQ(received, texts) << "round " << round;
    EXPECT_EQ(receiver.fault(), "");
  }
}

} // namespace
} // namespace reckon
