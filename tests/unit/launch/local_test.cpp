// SPDX-License-Identifier: Apache-2.0
#include "launch/local.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <functional>
#include <sys/wait.h>
#include <unistd.h>

namespace reckon {
namespace {

using Tell = std::function<void(const std::string&)>;

/// The error of a job whose ranks do this; empty when there is none.
std::string error_of(
    int ranks, const std::function<std::string(int rank, const Tell& tell)>& body,
    const Tell& on_progress = [](const std::string&) {}) {
  try {
    EXPECT_EQ(
        run_locally(
            ranks,
            [&](const JobEnvironment& job, Fd, const Tell& tell) { return body(job.rank, tell); },
            on_progress),
        "of rank 0");
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::operation);
    return e.what();
  }
  return "";
}

TEST(RunLocally, HandsOutRank0sWordsAndResult) {
  std::string heard;
  EXPECT_EQ(error_of(
                3,
                [](int rank, const Tell& tell) {
                  tell("word of " + std::to_string(rank));
                  return "of rank " + std::to_string(rank);
                },
                [&](const std::string& text) { heard += text == "word of 0" ? text : ""; }),
            "");
  EXPECT_EQ(heard, "word of 0");
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
}

TEST(RunLocally, ThrowsTheErrorThatStartedIt) {
  const auto body = [](int rank, const Tell&) -> std::string {
    if (rank == 2) {
      fail(ErrorKind::operation, "the disk is full");
    }
    throw PeerError("rank 2 died");
  };
  EXPECT_EQ(error_of(3, body), "rank 2: the disk is full");
  EXPECT_EQ(error_of(2, body), "rank 2 died"); // no other trouble is known
  EXPECT_EQ(error_of(1, [](int, const Tell&) -> std::string { ::_exit(9); }),
            "rank 0 ended without a word");
}

TEST(RunLocally, ARankThatIsStoppedWhenTheOthersHaveLeftGoesOn) {
  EXPECT_EQ(error_of(3,
                     [](int rank, const Tell&) -> std::string {
                       if (rank == 1) {
                         ::raise(SIGSTOP);
                       }
                       return "of rank " + std::to_string(rank);
                     }),
            "");
}

TEST(RunLocally, ARankOfWhichNobodySaysHowItEndedIsNoSuccess) {
  // Somebody else has waited for the process: waitpid fails.
  const std::string error = error_of(
      1,
      [](int, const Tell& tell) {
        tell("I end now");
        return std::string("of rank 0");
      },
      [](const std::string&) { EXPECT_GT(::waitpid(-1, nullptr, 0), 0); });
  EXPECT_EQ(error, "cannot learn how rank 0 ended: waitpid: No child processes");
}

TEST(RunLocally, WorksForAParentThatIgnoresItsChildren) {
  const auto before = std::signal(SIGCHLD, SIG_IGN); // as some that start programs leave it
  EXPECT_EQ(error_of(2, [](int, const Tell&) { return std::string("of rank 0"); }), "");
  std::signal(SIGCHLD, before);
}

} // namespace
} // namespace reckon
