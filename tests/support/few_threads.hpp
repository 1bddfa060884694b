// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/cases.hpp"
#include "support/refusals.hpp"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sys/resource.h>
#include <unistd.h>

namespace reckon::test {

inline constexpr std::size_t k_many_threads = 64; ///< do not fit where some do

/// In a process of its own: leaves room for the stacks of some threads more, and prints how `call`
/// is refused.
template <class Call>
[[noreturn]] void print_refusal_with_few_threads(const Call& call) {
  std::ifstream statm("/proc/self/statm");
  rlim_t pages = 0;
  statm >> pages;
  constexpr rlim_t k_room = 64 << 20;
  const rlim_t bytes = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + k_room;
  const rlimit limit{bytes, bytes};
  if (::setrlimit(RLIMIT_AS, &limit) != 0) {
    std::_Exit(1);
  }
  std::fputs(refusal(call, ErrorKind::operation).c_str(), stderr);
  std::_Exit(0);
}

} // namespace reckon::test

/// The system refuses a thread of what this expression starts after others have begun: it throws
/// Error{operation}, and ends.
#define EXPECT_REFUSED_WITH_FEW_THREADS(...)                                                       \
  if (::reckon::support::k_sanitized) {                                                            \
    GTEST_SKIP() << "a sanitizer has no use for a limit of its address space";                     \
  }                                                                                                \
  EXPECT_EXIT(::reckon::test::print_refusal_with_few_threads([&] { __VA_ARGS__; }),                \
              ::testing::ExitedWithCode(0), "cannot start a thread")
