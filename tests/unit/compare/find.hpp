// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compare/comparison.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace reckon::test {

/// The difference at `where`; nullptr when there is none.
inline const Difference* at(const Comparison& c, std::string_view where) {
  for (const Difference& d : c.differences) {
    if (d.where == where) {
      return &d;
    }
  }
  return nullptr;
}

inline std::vector<std::string> places(const Comparison& c) {
  std::vector<std::string> out;
  for (const Difference& d : c.differences) {
    out.push_back(d.where);
  }
  return out;
}

inline std::vector<std::string> causes(const Comparison& c) {
  std::vector<std::string> out;
  for (const Cause& cause : c.causes) {
    out.push_back(cause.what);
  }
  return out;
}

} // namespace reckon::test
