// SPDX-License-Identifier: Apache-2.0
#include "core/terminal.hpp"

#include "core/file.hpp"
#include "core/progress.hpp"
#include "support/environment_variable.hpp"

#include <gmock/gmock.h>

#include <array>
#include <fcntl.h>
#include <string>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

namespace reckon {
namespace {

using namespace testing;

/// A pseudo-terminal: what is written to `terminal` can be read from `screen`.
class Terminal : public ::testing::Test {
protected:
  void SetUp() override {
    m_screen = Fd(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
    if (!m_screen || ::grantpt(m_screen.get()) != 0 || ::unlockpt(m_screen.get()) != 0) {
      GTEST_SKIP() << "no pseudo-terminal can be opened here";
    }
    m_terminal = Fd(::open(::ptsname(m_screen.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
    ASSERT_TRUE(m_terminal);
    const winsize size{.ws_row = 24, .ws_col = 40, .ws_xpixel = 0, .ws_ypixel = 0};
    ASSERT_EQ(::ioctl(m_terminal.get(), TIOCSWINSZ, &size), 0);
  }
  /// Runs `work` with standard error on `fd`.
  template <class Work>
  static void with_stderr_on(int fd, Work work) {
    const Fd saved(::dup(STDERR_FILENO));
    ASSERT_EQ(::dup2(fd, STDERR_FILENO), STDERR_FILENO);
    work();
    ASSERT_EQ(::dup2(saved.get(), STDERR_FILENO), STDERR_FILENO);
  }
  /// All that was written; the terminal is closed, so that there is an end to it.
  [[nodiscard]] std::string on_screen() {
    m_terminal = Fd();
    std::string text;
    std::array<char, 4096> buffer{};
    for (ssize_t n = 0; (n = ::read(m_screen.get(), buffer.data(), buffer.size())) > 0;) {
      text.append(buffer.data(), static_cast<std::size_t>(n));
    }
    return text;
  }
  Fd m_screen, m_terminal;
  test::EnvironmentVariable m_term{"TERM", "xterm"}, m_no_color{"NO_COLOR", std::nullopt};
};

TEST_F(Terminal, IsSmartUnlessTermSaysDumb) {
  EXPECT_TRUE(is_smart_terminal(m_terminal.get()));
  for (const char* term : {"dumb", ""}) {
    m_term.set(term);
    EXPECT_FALSE(is_smart_terminal(m_terminal.get()));
  }
  m_term.set(std::nullopt);
  EXPECT_FALSE(is_smart_terminal(m_terminal.get()));
}

TEST_F(Terminal, HasColourUnlessNoColorIsSet) {
  EXPECT_TRUE(use_color(ColorMode::automatic, m_terminal.get()));
  EXPECT_FALSE(use_color(ColorMode::never, m_terminal.get()));
  m_no_color.set(""); // empty means nothing (no-color.org)
  EXPECT_TRUE(use_color(ColorMode::automatic, m_terminal.get()));
  m_no_color.set("1");
  EXPECT_FALSE(use_color(ColorMode::automatic, m_terminal.get()));
  EXPECT_TRUE(use_color(ColorMode::always, m_terminal.get()));
}

TEST_F(Terminal, HasAWidth) {
  EXPECT_EQ(terminal_width(m_terminal.get()), 40);
}

TEST_F(Terminal, ShowsProgressInOneLineAndErasesIt) {
  with_stderr_on(m_terminal.get(), [] {
    Progress progress;
    progress.show(1, std::string(100, 'x'), Seconds(12));
  });
  const std::string erase = "\r\x1b[K";
  const std::string text = on_screen();
  EXPECT_THAT(text, StartsWith(erase + "100 % 12 s left  xxx"));
  EXPECT_THAT(text, EndsWith("xxx" + erase));
  // 39 columns: the last stays free, or the line would wrap.
  EXPECT_EQ(text.size(), erase.size() + 39 + erase.size());
}

TEST_F(Terminal, ProgressDoesNotFloodTheTerminal) {
  with_stderr_on(m_terminal.get(), [] {
    Progress progress;
    for (int i = 0; i < 10; ++i) {
      progress.show(0.01 * i, "working");
    }
  });
  const std::string text = on_screen();
  EXPECT_THAT(text, HasSubstr("0 %  working"));
  EXPECT_LT(text.size(), 100U); // not ten lines of twenty characters
}

TEST(NoTerminal, HasNoColourAndEightyColumns) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Fd out(ends[0]);
  const Fd in(ends[1]);
  EXPECT_FALSE(is_smart_terminal(in.get()));
  EXPECT_FALSE(use_color(ColorMode::automatic, in.get()));
  EXPECT_TRUE(use_color(ColorMode::always, in.get()));
  EXPECT_EQ(terminal_width(in.get()), 80);
}

TEST(NoTerminal, ProgressIsSilent) {
  const test::EnvironmentVariable term("TERM", "xterm");
  ::testing::internal::CaptureStderr(); // a file
  {
    Progress progress;
    progress.show(0.5, "half", Seconds(3));
    progress.show(1, "all");
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

} // namespace
} // namespace reckon
