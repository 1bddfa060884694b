// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hwy/targets.h>

#include <gtest/gtest.h>

namespace reckon::test {

/// Runs `body` once for every instruction set that was compiled and that this machine has, the
/// scalar one too.
template <class Body>
void for_each_target(const Body& body) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    body();
    if (testing::Test::HasFatalFailure()) {
      break;
    }
  }
  hwy::SetSupportedTargetsForTest(0);
}

} // namespace reckon::test
