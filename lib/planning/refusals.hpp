// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/error.hpp"

#include <fmt/format.h>

#include <initializer_list>
#include <string>

namespace reckon {

/// An option that may have been asked for, and why it does not go with another.
struct Refusal {
  const char* flag;
  bool asked;
  const char* why;
};

/// Throws Error{usage} for the first of `others` that is asked for beside `flag`.
inline void refuse_with(const std::string& flag, std::initializer_list<Refusal> others) {
  for (const Refusal& other : others) {
    if (other.asked) {
      fail(ErrorKind::usage,
           fmt::format("{} with {}: {}; leave one of the two out", flag, other.flag, other.why));
    }
  }
}

} // namespace reckon
