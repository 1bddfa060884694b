// SPDX-License-Identifier: Apache-2.0
#include "core/interrupt.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <unistd.h>

namespace reckon {
namespace {

// In processes of their own: the flag never goes back.

TEST(Interrupt, TheFirstSignalSetsAFlag) {
  EXPECT_FALSE(interrupted());
  EXPECT_EXIT(
      {
        install_interrupt_handlers();
        const bool before = interrupted();
        std::raise(SIGTERM);
        std::_Exit(!before && interrupted() ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(Interrupt, TheSecondSignalEndsTheProcess) {
  EXPECT_EXIT(
      {
        install_interrupt_handlers();
        std::raise(SIGINT);
        std::raise(SIGINT);
        std::_Exit(0);
      },
      ::testing::KilledBySignal(SIGINT), "");
}

TEST(Interrupt, ATerminalThatGoesAwayInterruptsOnceUnlessIgnored) {
  EXPECT_EXIT(
      {
        install_interrupt_handlers();
        std::raise(SIGHUP);
        std::raise(SIGHUP); // of its shell
        std::_Exit(interrupted() ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(
      {
        std::signal(SIGHUP, SIG_IGN); // nohup
        install_interrupt_handlers();
        std::raise(SIGHUP);
        std::_Exit(interrupted() ? 1 : 0);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(Interrupt, AClosedPipeIsAnErrorAndNoSignal) {
  EXPECT_EXIT(
      {
        install_interrupt_handlers();
        int ends[2];
        if (::pipe(ends) != 0) {
          std::_Exit(2);
        }
        ::close(ends[0]);
        std::_Exit(::write(ends[1], "x", 1) == -1 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

} // namespace
} // namespace reckon
