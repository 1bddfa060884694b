// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <new>
#include <system_error>

namespace reckon {
namespace {

TEST(Error, EachKindHasItsExitStatus) {
  EXPECT_EQ(exit_status(ErrorKind::usage), 2);
  EXPECT_EQ(exit_status(ErrorKind::input), 2);
  EXPECT_EQ(exit_status(ErrorKind::unavailable), 3);
  EXPECT_EQ(exit_status(ErrorKind::operation), 4);
  EXPECT_EQ(exit_status(ErrorKind::internal), 70);
}

TEST(Error, CarriesKindAndText) {
  try {
    fail(ErrorKind::unavailable, "no such device");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::unavailable);
    EXPECT_STREQ(e.what(), "no such device");
  }
}

TEST(Error, OfTheSystemEndsWithTheSystemsWords) {
  try {
    fail_errno("cannot write x", ENOSPC);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::operation);
    EXPECT_STREQ(e.what(), "cannot write x: No space left on device");
  }
}

TEST(Error, OfTooFewDescriptorsHasTheRemedy) {
  EXPECT_EQ(system_words(ENOENT), "No such file or directory");
  EXPECT_EQ(system_words(EMFILE),
            "Too many open files; raise the limit of open files (`ulimit -n`)");
}

TEST(Error, OfAnyExceptionHasAKind) {
  EXPECT_EQ(as_error(Error(ErrorKind::input, "x")).kind(), ErrorKind::input);
  EXPECT_EQ(as_error(std::bad_alloc()).kind(), ErrorKind::operation);
  EXPECT_EQ(as_error(std::system_error(EAGAIN, std::generic_category())).kind(),
            ErrorKind::operation); // of std::thread
  const Error bug = as_error(std::logic_error("a\nb"));
  EXPECT_EQ(bug.kind(), ErrorKind::internal);
  EXPECT_STREQ(bug.what(), "a\\u000ab");
}

TEST(OneLine, EscapesControlCharactersOnly) {
  EXPECT_EQ(one_line("plain, with \"quotes\", \\ and ü"), "plain, with \"quotes\", \\ and ü");
  EXPECT_EQ(one_line(std::string_view("a\nb\0c\x1b[31m\x7f", 11)),
            "a\\u000ab\\u0000c\\u001b[31m\\u007f");
  EXPECT_EQ(one_line(""), "");
}

} // namespace
} // namespace reckon
