// SPDX-License-Identifier: Apache-2.0
#include "probe/probe.hpp"

#include "core/error.hpp"
#include "support/refusals.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reckon {
namespace {

TEST(OwnMachine, OnlyOneRankOfAJobMeasuresAMachine) {
  EXPECT_NO_THROW(require_own_machine(std::nullopt));
  JobEnvironment job;
  EXPECT_NO_THROW(require_own_machine(job)); // a job of one
  job.size = 8;
  EXPECT_NO_THROW(require_own_machine(job)); // the others are elsewhere
  job.local_size = 4;
  for (job.rank = 0; job.rank < job.local_size; ++job.rank) { // every rank, or one file has luck
    const auto refusal = [&] { return require_own_machine(job), 0; };
    const std::string said = test::refusal(refusal, ErrorKind::usage);
    EXPECT_THAT(said, test::Says("4 ranks"));
    EXPECT_THAT(said, testing::HasSubstr("--cluster"));
  }
}

} // namespace
} // namespace reckon
