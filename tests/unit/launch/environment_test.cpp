// SPDX-License-Identifier: Apache-2.0
#include "launch/environment.hpp"

#include "launch/rendezvous.hpp"
#include "launch/sockets.hpp"
#include "support/environment_variable.hpp"
#include "support/refusals.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <netinet/in.h>
#include <optional>
#include <set>
#include <sys/socket.h>
#include <thread>

namespace reckon {
namespace {

/// An environment without any launcher, whatever started this test.
class EnvironmentTest : public testing::Test {
protected:
  EnvironmentTest() {
    for (const char* name : {"RANK",
                             "WORLD_SIZE",
                             "MASTER_ADDR",
                             "MASTER_PORT",
                             "LOCAL_RANK",
                             "LOCAL_WORLD_SIZE",
                             "RECKON_RANK",
                             "RECKON_WORLD_SIZE",
                             "RECKON_MASTER_ADDR",
                             "RECKON_MASTER_PORT",
                             "RECKON_LOCAL_RANK",
                             "RECKON_LOCAL_WORLD_SIZE",
                             "RECKON_JOB_TOKEN",
                             "PMIX_NAMESPACE",
                             "PMIX_RANK",
                             "PMI_RANK",
                             "PMI_SIZE",
                             "SLURM_PROCID",
                             "SLURM_STEP_NUM_TASKS",
                             "TORCHELASTIC_USE_AGENT_STORE"}) {
      m_before.emplace_back(name, std::nullopt);
    }
  }
  static void set(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }
  static void set_job(const std::string& rank, const std::string& size) {
    set("RANK", rank);
    set("WORLD_SIZE", size);
    set("MASTER_ADDR", "127.0.0.1");
    set("MASTER_PORT", "4000");
  }

private:
  std::deque<test::EnvironmentVariable> m_before;
};

TEST_F(EnvironmentTest, WithoutALauncherThereIsNoJob) {
  EXPECT_FALSE(job_from_environment());
}

TEST_F(EnvironmentTest, OurOwnVariablesGoBeforeThoseThatAFrameworkHasTaken) {
  set_job("1", "2");
  set("LOCAL_RANK", "1");
  set("TORCHELASTIC_USE_AGENT_STORE", "True");
  EXPECT_EQ(job_from_environment().value().master_port, 4001); // the agent has 4000
  set("RECKON_RANK", "2");
  set("RECKON_WORLD_SIZE", "3");
  set("RECKON_MASTER_PORT", "5000");
  set("RECKON_LOCAL_RANK", "0");
  const JobEnvironment job = job_from_environment().value();
  EXPECT_EQ(job.rank, 2);
  EXPECT_EQ(job.size, 3);
  EXPECT_EQ(job.master_address, "127.0.0.1"); // not said again
  EXPECT_EQ(job.master_port, 5000);
  EXPECT_EQ(job.local_rank, 0);
  set("RECKON_RANK", "3");
  EXPECT_REFUSED(usage, "RECKON_RANK is '3'", job_from_environment());
}

TEST_F(EnvironmentTest, ReadsAndChecksTheVariables) {
  set("RANK", "1");
  EXPECT_REFUSED(usage, "WORLD_SIZE", job_from_environment());
  set("WORLD_SIZE", "2");
  EXPECT_REFUSED(usage, "MASTER_ADDR", job_from_environment());
  set("MASTER_ADDR", "127.0.0.1");
  set("MASTER_PORT", "70000");
  EXPECT_REFUSED(usage, "MASTER_PORT is '70000'", job_from_environment());
  set("MASTER_PORT", "4000");
  set("RECKON_JOB_TOKEN", "t");
  const JobEnvironment job = job_from_environment().value();
  EXPECT_EQ(job.rank, 1);
  EXPECT_EQ(job.size, 2);
  EXPECT_EQ(job.master_address, "127.0.0.1");
  EXPECT_EQ(job.master_port, 4000);
  EXPECT_EQ(job.token, "t");
  EXPECT_EQ(job.local_rank, 0);
  EXPECT_EQ(job.local_size, 1);
  EXPECT_FALSE(job.board);
  for (const char* rank : {"2", "-1", "1x", " 1", "0x1", "99999999999"}) {
    set("RANK", rank);
    EXPECT_REFUSED(usage, "RANK is '", job_from_environment());
  }
  set("RANK", ""); // set to nothing is not set
  EXPECT_REFUSED(usage, "WORLD_SIZE", job_from_environment());
}

TEST_F(EnvironmentTest, ReadsAndChecksTheLocalVariables) {
  set_job("5", "8");
  set("LOCAL_WORLD_SIZE", "4");
  set("LOCAL_RANK", "1");
  EXPECT_EQ(job_from_environment()->local_rank, 1);
  EXPECT_EQ(job_from_environment()->local_size, 4);
  for (const char* local : {"4", "-1", "one"}) {
    set("LOCAL_RANK", local);
    EXPECT_REFUSED(usage, "LOCAL_RANK is '", job_from_environment());
  }
  set("LOCAL_WORLD_SIZE", "9"); // more than there are in all
  EXPECT_REFUSED(usage, "LOCAL_WORLD_SIZE is '9'", job_from_environment());
  ::unsetenv("LOCAL_WORLD_SIZE"); // then there are at least as many as that rank says
  set("LOCAL_RANK", "3");
  EXPECT_EQ(job_from_environment()->local_size, 4);
}

TEST_F(EnvironmentTest, ThePortOfTorchrunsAgentIsLeftToIt) {
  set_job("0", "2");
  set("TORCHELASTIC_USE_AGENT_STORE", "True");
  EXPECT_EQ(job_from_environment()->master_port, 4001);
  set("TORCHELASTIC_USE_AGENT_STORE", "False");
  EXPECT_EQ(job_from_environment()->master_port, 4000);
}

TEST_F(EnvironmentTest, LaunchersThatWouldStartTheJobManyTimesAreRefused) {
  set("PMI_RANK", "0");
  set("PMI_SIZE", "4");
  EXPECT_REFUSED(unavailable, "started 4 processes", job_from_environment());
  set("PMI_SIZE", "1");
  EXPECT_FALSE(job_from_environment());
  set("SLURM_PROCID", "0");
  set("SLURM_STEP_NUM_TASKS", "3");
  EXPECT_REFUSED(unavailable, "srun --mpi=pmix", job_from_environment());
  set_job("0", "3"); // said by hand in the job script
  EXPECT_EQ(job_from_environment()->size, 3);
}

std::string address_of(const Fd& socket) {
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  EXPECT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &length), 0);
  return address_text(reinterpret_cast<const sockaddr&>(own));
}

TEST_F(EnvironmentTest, Rank0ListensOnMasterAddressOnly) {
  JobEnvironment job;
  job.size = 2;
  job.master_address = "127.0.0.3"; // ours too, and not the one that everybody takes
  EXPECT_EQ(address_of(listen_on_master_address(job)), "127.0.0.3");
  job.master_address = "192.0.2.1"; // TEST-NET-1: nobody's
  EXPECT_THAT(address_of(listen_on_master_address(job)), testing::AnyOf("0.0.0.0", "::"));
  job.master_address = "localhost";
  EXPECT_TRUE(is_loopback(address_of(listen_on_master_address(job))));
  set("LOCAL_WORLD_SIZE", "1"); // the launcher says that rank 1 is elsewhere
  EXPECT_THAT(address_of(listen_on_master_address(job)), testing::AnyOf("0.0.0.0", "::"));
  job.master_address = "no-such-host.invalid";
  EXPECT_ERROR(listen_on_master_address(job));
}

TEST_F(EnvironmentTest, ListeningToTheNetworkWithoutATokenIsWarnedOf) {
  JobEnvironment job;
  job.size = 2;
  const auto warning_at = [&](const std::string& address) {
    job.master_address = address;
    testing::internal::CaptureStderr();
    static_cast<void>(listen_on_master_address(job));
    return testing::internal::GetCapturedStderr();
  };
  std::vector<std::string> reachable{"192.0.2.1"}; // nobody's, so rank 0 listens on all addresses
  const std::vector<std::string> own = addresses_of_interfaces();
  reachable.insert(reachable.end(), own.begin(), own.end());
  for (const std::string& address : reachable) {
    job.token.clear();
    EXPECT_THAT(warning_at(address), testing::HasSubstr("set RECKON_JOB_TOKEN")) << address;
    job.token = "s3cret";
    EXPECT_THAT(warning_at(address), testing::Not(testing::HasSubstr("TOKEN"))) << address;
    EXPECT_THAT(warning_at(address), testing::Not(testing::HasSubstr("s3cret"))) << address;
  }
  job.token.clear();
  EXPECT_EQ(warning_at("127.0.0.1"), "");
}

class MemoryBoard final : public NoticeBoard {
public:
  void publish(const std::string& text) override {
    const std::lock_guard lock(m_mutex);
    m_text = text;
    m_there.notify_all();
  }
  std::optional<std::string> look_up(Seconds limit) override {
    std::unique_lock lock(m_mutex);
    m_there.wait_for(lock, limit, [&] { return m_text.has_value(); });
    return m_text;
  }

private:
  std::mutex m_mutex;
  std::condition_variable m_there;
  std::optional<std::string> m_text;
};

TEST_F(EnvironmentTest, RanksMeetAtABoard) {
  for (const int local_size : {3, 1}) { // all on this machine; on three, as far as anybody knows
    const auto board = std::make_shared<MemoryBoard>();
    std::mutex mutex;
    std::vector<std::string> problems;
    {
      std::vector<std::jthread> ranks;
      for (int r = 0; r < 3; ++r) {
        ranks.emplace_back([&, r] {
          JobEnvironment job;
          job.rank = r;
          job.size = 3;
          job.local_size = local_size;
          job.board = board;
          try {
            Rendezvous rendezvous(job, "plan", Seconds(20));
            const auto all = rendezvous.all_gather(std::to_string(r), Seconds(20));
            EXPECT_THAT(all, testing::ElementsAre("0", "1", "2"));
          } catch (const Error& e) {
            const std::lock_guard lock(mutex);
            problems.emplace_back(e.what());
          }
        });
      }
    }
    const std::string text = board->look_up(Seconds(0)).value();
    if (local_size == 3) {
      EXPECT_THAT(text, testing::HasSubstr("\"127.0.0.1\""));
    }
    if (local_size == 1 && addresses_of_interfaces().empty()) {
      EXPECT_THAT(problems, testing::Not(testing::IsEmpty()));
    } else {
      EXPECT_THAT(problems, testing::IsEmpty());
    }
  }
}

TEST_F(EnvironmentTest, AnEmptyBoardIsRank0sFault) {
  JobEnvironment job;
  job.rank = 1;
  job.size = 2;
  job.board = std::make_shared<MemoryBoard>();
  EXPECT_REFUSED(operation, "rank 0", Rendezvous(job, "plan", Seconds(0.1)));
}

} // namespace
} // namespace reckon
