// SPDX-License-Identifier: Apache-2.0
// Those who reach rank 0's port, or wait where rank 0 should be, and do not know the job's token.
#include "launch/rendezvous.hpp"

#include "support/messages.hpp"
#include "support/puppet.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace reckon {
namespace {

using support::error_of_root;
using support::hello;
using support::joined;
using support::k_limit;
using support::Puppet;

TEST(Strangers, OfEveryKindDoNotHarmTheJob) {
  const auto framed = [](const std::string& text) { // kind, length in 4 bytes, text
    return std::string{'d', static_cast<char>(text.size()), 0, 0, 0} + text;
  };
  const std::vector<std::string> words{
      "",
      "GET / HTTP/1.0\r\n\r\n",
      "d",
      std::string("d\xff\xff\xff\xff", 5), // 4 GB would follow
      std::string("d\x00\x00\x00\x40", 5), // 1 GB, which a rank may send
      framed("not json"),
      framed("[1, 2]"),
      framed("{}"),
      framed(R"({"rank": 1, "size": 2, "plan": "plan"})"),
      framed(sealed("secreT", k_other_rank, "", hello(1, 2).dump())),
      std::string("x\x03\x00\x00\x00"
                  "bye",
                  8),
  };
  std::vector<Puppet> strangers;
  const std::string error = error_of_root(2, [&](int port) {
    for (int i = 0; i < 200; ++i) { // more than rank 0 keeps, so that silent ones have to make room
      strangers.push_back(Puppet::calling(port));
      strangers.back().say_raw(words[static_cast<std::size_t>(i) % words.size()]);
    }
    Rendezvous rank = joined(1, 2, port);
    EXPECT_THAT(rank.all_gather("b", k_limit), testing::ElementsAre("", "b"));
  });
  EXPECT_EQ(error, "");
  for (Puppet& stranger : strangers) {
    const Message challenge = stranger.hear();
    EXPECT_TRUE(challenge.kind == MessageKind::goodbye || challenge.text.size() == 16)
        << challenge.text;
    EXPECT_EQ(stranger.hear().kind, MessageKind::goodbye) << "a stranger was told something";
  }
}

/// The errors of the two ranks of a job; its rank 1 comes when `first` has done with rank 0's port.
std::vector<std::string> errors_after(const std::function<void(int port)>& first,
                                      const std::string& token = "secret") {
  Listener listener = listen_locally();
  const int port = listener.port;
  std::vector<std::string> errors(2);
  const auto rank = [&](int number, Fd socket) {
    JobEnvironment environment = support::job(number, 2, port);
    environment.token = token;
    try {
      Rendezvous r(environment, "plan", k_limit, std::move(socket));
      EXPECT_THAT(r.all_gather(std::to_string(number), k_limit), testing::ElementsAre("0", "1"));
    } catch (const Error& error) {
      errors[static_cast<std::size_t>(number)] = error.what();
    }
  };
  std::jthread root([&] { rank(0, std::move(listener.socket)); });
  first(port);
  rank(1, Fd());
  root.join();
  return errors;
}

TEST(Strangers, WithoutATokenEndNoJobAndLearnNothing) {
  const std::vector<std::pair<const char*, Json>> differences{
      {"plan", "sha256:other"}, {"reckon", "9.9.9"}, {"size", 3}, {"rank", 0}, {"rank", "two"}};
  const auto errors = errors_after(
      [&](int port) {
        for (const auto& [key, value] : differences) {
          Json other = hello(1, 2);
          other[key] = value;
          Puppet stranger = Puppet::calling(port);
          stranger.introduce(other, "");
          const Message answer = stranger.hear();
          EXPECT_EQ(answer.kind, MessageKind::goodbye) << key;
          EXPECT_THAT(answer.text, testing::Not(testing::HasSubstr("plan"))) << key;
        }
      },
      "");
  EXPECT_THAT(errors, testing::Each(""));
}

TEST(Strangers, CannotSayAgainWhatARankHasSaid) {
  std::string said;
  const auto errors = errors_after([&](int port) {
    {
      Puppet rank = Puppet::calling(port); // whose words the stranger hears on the network
      said = sealed("secret", k_other_rank, rank.hear().text, hello(1, 2).dump());
    }
    Puppet stranger = Puppet::calling(port);
    static_cast<void>(stranger.hear());
    stranger.say(said);
    EXPECT_EQ(stranger.hear().kind, MessageKind::goodbye) << "it was let in";
  });
  EXPECT_THAT(errors, testing::Each(""));
  EXPECT_THAT(said, testing::Not(testing::HasSubstr("secret"))) << "the token is on the network";
}

TEST(Strangers, CannotPoseAsRank0) {
  const Listener listener = listen_locally();
  std::string error;
  std::jthread rank([&] { error = support::peer_error_of([&] { joined(1, 2, listener.port); }); });
  Puppet::called(listener).welcome("another secret");
  rank.join();
  EXPECT_THAT(error, test::Says("does not know the token of rank 1"));
}

TEST(Strangers, ASlowOneIsLetGo) {
  const auto errors = errors_after([](int port) {
    Puppet slow = Puppet::calling(port);
    static_cast<void>(slow.hear());
    const std::string word =
        std::string("d\x00\x10\x00\x00", 5) + std::string(600, 'x'); // half a minute
    // A byte from time to time, for longer than anybody may take to introduce himself.
    std::size_t bytes = 0;
    while (bytes < word.size() && slow.try_to_say(word[bytes])) {
      ++bytes;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    EXPECT_LT(bytes, word.size()) << "it could say all";
  });
  EXPECT_THAT(errors, testing::Each(""));
}

TEST(Strangers, InAFloodKeepNoRankOut) {
  std::atomic<int> called = 0;
  std::jthread flood; // uses it
  const auto errors = errors_after([&](int port) {
    flood = std::jthread([&called, port](const std::stop_token& stop) {
      std::deque<Fd> silent; // more than rank 0 has room for
      while (!stop.stop_requested()) {
        silent.push_back(Puppet::call(port));
        if (silent.size() > 200) {
          silent.pop_front();
        }
        ++called;
      }
    });
    while (called < 300) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  EXPECT_THAT(errors, testing::Each(""));
}

TEST(Strangers, ARanksSignsOfLifeHaveNoText) {
  for (const char kind : {'h', 'w', 'b'}) {
    const std::string error = error_of_root(2, [&](int port) {
      Puppet rank = Puppet::calling(port);
      rank.introduce(hello(1, 2));
      EXPECT_EQ(rank.hear().kind, MessageKind::data);
      rank.say_raw(std::string{kind, 0, 0, 0, 64}); // a gigabyte would follow
    });
    EXPECT_THAT(error, testing::HasSubstr("rank 1 (ghost) died")) << kind;
  }
}

} // namespace
} // namespace reckon
