// SPDX-License-Identifier: Apache-2.0
#include "core/child.hpp"

#include "core/error.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <functional>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace reckon {
namespace {

constexpr Seconds k_long{60}; // only ends what hangs

/// What a refused answer says. The child is gone by then.
std::string refused_answer(const std::function<std::string()>& body, Seconds limit = k_long) {
  try {
    static_cast<void>(answer_of_child(body, limit));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::operation);
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
    return error.what();
  }
  return "it answers";
}

TEST(Child, AnswersWithMoreThanAPipeHolds) {
  const std::string much(3U << 20U, 'x');
  EXPECT_EQ(answer_of_child([&] { return much; }, k_long), much);
  EXPECT_EQ(answer_of_child([] { return std::string(); }, k_long), "");
}

TEST(Child, ThatIsStoppedGoesOn) {
  EXPECT_EQ(answer_of_child(
                [] {
                  ::raise(SIGSTOP);
                  return std::string("here");
                },
                k_long),
            "here");
}

TEST(Child, WithoutAnAnswerIsEndedAndSaidSo) {
  const auto never = [] {
    for (;;) {
      ::pause();
    }
    return std::string();
  };
  EXPECT_THAT(refused_answer(never, Seconds(0.2)), testing::HasSubstr("200 ms"));
  EXPECT_THAT(refused_answer([] {
                ::raise(SIGKILL);
                return std::string();
              }),
              testing::HasSubstr("signal 9"));
  EXPECT_THAT(refused_answer([]() -> std::string { fail(ErrorKind::input, "no device"); }),
              testing::StrEq("no device"));
  EXPECT_THAT(refused_answer([]() -> std::string { ::_exit(0); }),
              testing::HasSubstr("ended without an answer"));
}

} // namespace
} // namespace reckon
