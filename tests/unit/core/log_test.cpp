// SPDX-License-Identifier: Apache-2.0
#include "core/log.hpp"

#include <gtest/gtest.h>

namespace reckon {
namespace {

class Log : public ::testing::Test {
protected:
  void TearDown() override { set_log_level(LogLevel::warn); }
};

TEST_F(Log, IsOneLineOnStandardError) {
  ::testing::internal::CaptureStderr();
  log(LogLevel::warn, "clock {} MHz", 1200);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "reckon: warning: clock 1200 MHz\n");
}

TEST_F(Log, LeavesOutWhatIsBelowTheLevel) {
  ::testing::internal::CaptureStderr();
  log(LogLevel::info, "not said");
  set_log_level(LogLevel::debug);
  log(LogLevel::debug, "said");
  log(LogLevel::trace, "not said");
  set_log_level(LogLevel::error);
  log(LogLevel::warn, "not said");
  log(LogLevel::error, "also said");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "reckon: debug: said\nreckon: error: also said\n");
}

} // namespace
} // namespace reckon
