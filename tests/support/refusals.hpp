// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/error.hpp"
#include "support/messages.hpp"

#include <gtest/gtest.h>

#include <string>

namespace reckon::test {

/// What the Error says that `call` must throw, which must be of this kind. A test failure and
/// "no error" where it throws none.
template <class Call>
std::string refusal(const Call& call, ErrorKind kind = ErrorKind::input) {
  try {
    static_cast<void>(call());
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "no error";
}

template <class Call>
void expect_refused(const char* file, int line, ErrorKind kind, const std::string& token,
                    const Call& call) {
  const testing::ScopedTrace here(file, line, "must be refused with: " + token);
  EXPECT_THAT(refusal(call, kind), SaysAt(token, std::string(file)));
}

} // namespace reckon::test

/// The expression throws an Error.
#define EXPECT_ERROR(...) EXPECT_THROW(static_cast<void>(__VA_ARGS__), ::reckon::Error)
/// The expression throws an Error of this kind, with `token` in its text, which the file of
/// messages has (messages.hpp).
#define EXPECT_REFUSED(kind, token, ...)                                                           \
  ::reckon::test::expect_refused(__FILE__, __LINE__, ::reckon::ErrorKind::kind, token,             \
                                 [&] { return __VA_ARGS__; })
