// SPDX-License-Identifier: Apache-2.0
// Whole jobs: real processes on this machine, real transports.
#include "core/json.hpp"
#include "run/job.hpp"

#include "../strategies/fixtures.hpp"
#include "documents/json.hpp"
#include "launch/local.hpp"
#include "movers/mover.hpp"
#include "run/report.hpp"
#include "strategies/lower.hpp"
#include "strategies/strategy.hpp"
#include "support/transports.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <csignal>
#include <memory>
#include <new>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace reckon {
namespace {

Plan plan_for(const std::string& strategy, std::uint64_t n, std::uint64_t k, int lanes = 1) {
  PlanOptions options;
  options.strategy = strategy;
  options.part_bytes = 65536;
  const Workload gradient = test::workload(
      {{"a", 300000, DType::fp32}, {"b", 200001, DType::bf16}, {"c", 77777, DType::fp16}});
  return strategy == k_rack_hierarchical // which one machine does not have
             ? test::plan_in_racks(gradient, n, k, 2, options, lanes)
             : test::plan_for(test::one_machine(), gradient, n, k, options, lanes);
}

RunOptions quick(const std::string& transport) {
  RunOptions options;
  options.transport = transport;
  options.iterations = 3;
  options.warm_up = 1;
  options.limit = Seconds(30);
  return options;
}

Report run(
    const Plan& plan, const RunOptions& options,
    const std::function<void(int)>& before = [](int) {}) {
  const JobSchedules schedule{lower(plan), {}, {}};
  const std::string text = run_locally(
      static_cast<int>(plan.ranks.size()),
      [&](const JobEnvironment& job, Fd listener, const std::function<void(const std::string&)>&) {
        Rendezvous rendezvous(job, "digest", options.limit, std::move(listener));
        before(job.rank);
        const JobResult result =
            run_rank(rendezvous, schedule, options, [](std::size_t, double) {});
        return job.rank == 0 ? canonical_text(make_report(plan, {"plan", plan.profile.digest},
                                                          result, options, 1e9, 2))
                             : std::string();
      },
      [](const std::string&) {});
  return report_from_json(parse_json(text, "report"), "report");
}

/// The error that a run ends with.
Error error_of(
    const Plan& plan, const RunOptions& options,
    const std::function<void(int)>& before = [](int) {}) {
  try {
    static_cast<void>(run(plan, options, before));
  } catch (const Error& e) {
    return e;
  }
  return {ErrorKind::internal, "no error"};
}

class JobOver : public testing::TestWithParam<std::string> {};

TEST_P(JobOver, EveryStrategySumsRight) {
  std::vector<std::string> strategies = strategy_names();
  strategies.emplace_back(k_rack_hierarchical);
  for (const std::string& strategy : strategies) {
    const Plan plan = plan_for(strategy, 3, 2);
    const Report report = run(plan, quick(GetParam()));
    EXPECT_TRUE(report.verification.ok) << strategy << ": " << report.verification.first_error;
    // 4 iterations (1 to warm up), 3 workers, the whole gradient each.
    std::uint64_t bytes = 0;
    for (const DTypeRun& r : plan.runs) {
      bytes += r.bytes;
    }
    EXPECT_EQ(report.verification.checked_bytes, 4 * 3 * bytes);
    EXPECT_EQ(report.iteration_seconds.size(), 3U);
    EXPECT_GT(report.min_seconds, 0);
  }
}

TEST_P(JobOver, SumsAreRightWithoutAnyHabitAndTheReportSaysSo) {
  const Plan plan = plan_for("byteps_split", 3, 1, 2);
  for (const std::string without : {"register-once", "address-once", "aligned", "one-segment",
                                    "register-once,address-once,aligned,one-segment"}) {
    RunOptions options = quick(GetParam());
    options.habits = habits_without(without);
    const Report report = run(plan, options);
    EXPECT_TRUE(report.verification.ok) << without << ": " << report.verification.first_error;
    EXPECT_GT(report.verification.checked_bytes, 0U);
    EXPECT_EQ(report.context.at("without").rfind(without + ": an ablation", 0), 0U);
    EXPECT_THAT(report.cause, testing::HasSubstr("without " + without));
  }
  const Report normal = run(plan, quick(GetParam()));
  EXPECT_TRUE(normal.verification.ok) << normal.verification.first_error;
  EXPECT_FALSE(normal.context.contains("without"));
  EXPECT_THAT(normal.cause, testing::Not(testing::HasSubstr("ablation")));
}

INSTANTIATE_TEST_SUITE_P(Transports, JobOver, testing::ValuesIn(support::transports_here()),
                         [](const auto& param_info) {
                           return support::as_test_name(param_info.param);
                         });

/// What ranks tell each other, and the test, of how they end.
struct Ends {
  std::array<std::atomic<int>, 4> closed{}; ///< by rank: it has closed the others' memory
  std::atomic<int> met{0};                  ///< ranks that may free theirs
  std::atomic<int> early{0};                ///< that were told so while another had not closed
  std::atomic<int> unasked{0};              ///< that ended without disconnect()

  static std::shared_ptr<Ends> shared() {
    void* const memory =
        ::mmap(nullptr, sizeof(Ends), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return {new (memory) Ends, [](Ends* ends) { ::munmap(ends, sizeof(Ends)); }};
  }
};

/// The host's mover, for others to change.
class HostMover : public Mover {
public:
  const MoverCapabilities& capabilities() const noexcept override {
    return m_mover->capabilities();
  }
  std::span<std::byte> allocate(std::uint64_t bytes) override { return m_mover->allocate(bytes); }
  void open(int lanes) override { m_mover->open(lanes); }
  std::string address() const override { return m_mover->address(); }
  void connect(int self, const std::vector<std::string>& addresses) override {
    m_self = self;
    m_mover->connect(self, addresses);
  }
  MoverLane& lane(int index) override { return m_mover->lane(index); }

protected:
  int m_self = 0;

private:
  std::unique_ptr<Mover> m_mover = make_mover("host");
};

/// Kills the process of rank `dies` at one of its writes, in the middle of an iteration.
class DyingMover final : public HostMover {
public:
  explicit DyingMover(int dies) : m_dies(dies) {}
  MoverLane& lane(int index) override {
    return m_self == m_dies ? *(m_lane = std::make_unique<Lane>(HostMover::lane(index)))
                            : HostMover::lane(index);
  }

private:
  class Lane final : public MoverLane {
  public:
    explicit Lane(MoverLane& lane) : m_lane(lane) {}
    bool write(int peer, Slice source, Slice destination, std::uint64_t bytes, std::uint32_t tag,
               std::uint64_t id) noexcept override {
      if (++m_writes == 20) {
        ::raise(SIGKILL);
      }
      return m_lane.write(peer, source, destination, bytes, tag, id);
    }
    std::size_t poll(std::span<Completion> out) noexcept override { return m_lane.poll(out); }
    void wait(std::chrono::nanoseconds limit) noexcept override { m_lane.wait(limit); }
    [[nodiscard]] std::string error() const override { return m_lane.error(); }

  private:
    MoverLane& m_lane;
    int m_writes = 0;
  };
  int m_dies;
  std::unique_ptr<MoverLane> m_lane;
};

/// Its memory must not be freed while others have it open.
class ClosingMover final : public HostMover {
public:
  ClosingMover(Ends& ends, int ranks, int dies) : m_ends(ends), m_ranks(ranks), m_dies(dies) {}
  ~ClosingMover() override { m_ends.unasked += m_asked ? 0 : 1; }
  void disconnect(const std::function<void()>& meet) override {
    m_asked = true;
    if (m_self == m_dies) {
      ::raise(SIGKILL);
    }
    if (m_self == m_ranks - 1) { // the last takes longer than the others, who would be early
      std::vector<char> slow(32U << 20U, 1);
      m_slow = slow[slow.size() / 2];
    }
    m_ends.closed[static_cast<std::size_t>(m_self)] = 1;
    meet();
    ++m_ends.met;
    for (int r = 0; r < m_ranks; ++r) {
      m_ends.early += m_ends.closed[static_cast<std::size_t>(r)] == 0 ? 1 : 0;
    }
  }

private:
  Ends& m_ends;
  int m_ranks, m_dies;
  bool m_asked = false;
  volatile char m_slow = 0;
};

TEST(Job, ARankThatIsKilledIsNamedAndNoProcessIsLeft) {
  RunOptions options = quick("host");
  options.iterations = 1'000'000;
  for (const int victim : {0, 2}) {
    options.mover = [victim] { return std::make_unique<DyingMover>(victim); };
    const Error error = error_of(plan_for("byteps_split", 3, 1), options);
    EXPECT_EQ(error.kind(), ErrorKind::operation);
    EXPECT_THAT(error.what(),
                testing::HasSubstr("rank " + std::to_string(victim) + " was ended by signal 9"));
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
  }
}

TEST(Job, AnErrorOfOneRankIsTheErrorOfTheJob) {
  const Error error = error_of(plan_for("ring", 3, 0), quick("host"), [](int rank) {
    if (rank == 1) {
      fail(ErrorKind::unavailable, "rank 1 has no such device");
    }
  });
  EXPECT_EQ(error.kind(), ErrorKind::unavailable);
  EXPECT_STREQ(error.what(), "rank 1 has no such device");
}

TEST(Job, AHungRankIsFoundByTheLimit) {
  RunOptions options = quick("host");
  options.limit = Seconds(1);
  const Error error = error_of(plan_for("ring", 2, 0), options, [](int rank) {
    if (rank == 1) {
      ::pause();
    }
  });
  EXPECT_THAT(error.what(), testing::HasSubstr("rank 1"));
}

TEST(Job, NoRankFreesWhatAnotherHasOpen) {
  const std::shared_ptr<Ends> ends = Ends::shared();
  RunOptions options = quick("host");
  options.iterations = 1;
  options.mover = [&] { return std::make_unique<ClosingMover>(*ends, 4, -1); };
  EXPECT_TRUE(run(plan_for("ring", 4, 0, 2), options).verification.ok);
  EXPECT_EQ(ends->met, 4);
  EXPECT_EQ(ends->early, 0);
  EXPECT_EQ(ends->unasked, 0);
}

TEST(Job, ARankThatDiesAtTheEndIsNotWaitedFor) {
  for (const int victim : {0, 2}) {
    const std::shared_ptr<Ends> ends = Ends::shared();
    RunOptions options = quick("host");
    options.iterations = 1;
    options.limit = Seconds(1000); // longer than the test may take
    options.mover = [&] { return std::make_unique<ClosingMover>(*ends, 3, victim); };
    EXPECT_THAT(error_of(plan_for("ring", 3, 0), options).what(),
                testing::HasSubstr("rank " + std::to_string(victim) + " was ended by signal 9"));
    EXPECT_EQ(ends->met, 0); // nobody was told that it may free its memory
  }
}

} // namespace
} // namespace reckon
