// SPDX-License-Identifier: Apache-2.0
#include "run/folder_lock.hpp"

#include "launch/local.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <unistd.h>

namespace reckon {
namespace {

// One of them writes its name into the lock of the job before while the others look at it.
TEST(FolderLock, AllRanksOfAJobTakeTheLockThatAnotherJobLeft) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("reckon-lock-" + std::to_string(::getpid()));
  for (int job = 0; job < 60; ++job) {
    ASSERT_NO_THROW(static_cast<void>(run_locally(
        3,
        [&](const JobEnvironment& mine, Fd listener, const auto& /*tell*/) {
          Rendezvous rendezvous(mine, "plan", Seconds(60), std::move(listener));
          const FolderLock lock(rendezvous, folder.string(), Seconds(60));
          static_cast<void>(rendezvous.all_gather("", Seconds(60)));
          return std::string();
        },
        [](const std::string& /*line*/) {})))
        << "job " << job;
  }
  std::filesystem::remove_all(folder);
}

} // namespace
} // namespace reckon
