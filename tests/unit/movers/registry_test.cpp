// SPDX-License-Identifier: Apache-2.0
#include "movers/mover.hpp"
#include "support/ranks.hpp"
#include "support/refusals.hpp"

#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <string>
#include <vector>

using namespace std::chrono_literals;

namespace reckon {
namespace {

using support::RankProcess;
using support::run_ranks;

constexpr auto k_deadline = 240s; // before ctest's limit

TEST(Registry, NamesWhatThereIsWhenAskedForSomethingElse) {
  run_ranks(1, k_deadline, [](RankProcess&) {
    for (const std::string name : {"carrier pigeon", "sockets"}) {
      EXPECT_REFUSED(unavailable, name, make_mover(name));
      EXPECT_REFUSED(unavailable, "there are: host", make_mover(name));
    }
  });
}

TEST(Registry, OffersHostFirst) {
  // In a process of its own: those that fork later must not have used libfabric.
  run_ranks(1, k_deadline, [](RankProcess&) {
    std::vector<std::string> why_not;
    const std::vector<std::string> names = available_transports(&why_not);
    ASSERT_FALSE(names.empty());
    EXPECT_EQ(names.front(), "host");
    for (const std::string& line : why_not) {
      EXPECT_NE(line.find(": "), std::string::npos) << line;
    }
  });
}

/// Libraries that come with libfabric take signals when they are loaded, which is at the first
/// call.
TEST(Registry, LooksAroundWithoutTakingSignals) {
  constexpr std::array<int, 6> k_signals{SIGINT, SIGTERM, SIGABRT, SIGSEGV, SIGBUS, SIGILL};
  run_ranks(1, k_deadline, [&](RankProcess&) {
    for (const int number : k_signals) {
      std::signal(number, [](int) {});
    }
    std::array<struct sigaction, k_signals.size()> before{};
    for (std::size_t i = 0; i < k_signals.size(); ++i) {
      ASSERT_EQ(::sigaction(k_signals[i], nullptr, &before[i]), 0);
    }
    static_cast<void>(available_transports());
    for (std::size_t i = 0; i < k_signals.size(); ++i) {
      struct sigaction after {};
      ASSERT_EQ(::sigaction(k_signals[i], nullptr, &after), 0);
      EXPECT_EQ(after.sa_handler, before[i].sa_handler) << "signal " << k_signals[i];
    }
    sigset_t blocked;
    ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, nullptr, &blocked), 0);
    EXPECT_FALSE(::sigismember(&blocked, SIGINT));
  });
}

} // namespace
} // namespace reckon
