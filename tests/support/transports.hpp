// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "movers/mover.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

namespace reckon::support {

/// available_transports(), asked once a process. GoogleTest evaluates what a suite is instantiated
/// with once for each of its tests, and libfabric takes a tenth of a second to look around: asked
/// each time, that is two seconds at every start of the program.
inline const std::vector<std::string>& transports_here() {
  static const std::vector<std::string> names = available_transports();
  return names;
}

/// `text` as a part of a test's name, which has letters, digits and `_` only.
inline std::string as_test_name(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return text;
}

} // namespace reckon::support
