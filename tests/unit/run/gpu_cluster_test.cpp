// SPDX-License-Identifier: Apache-2.0
// A plan for machines of eight GPUs as a whole job: made-up GPUs inside two made-up machines, the
// network between them.
#include "../strategies/fixtures.hpp"
#include "core/json.hpp"
#include "documents/document.hpp"
#include "documents/json.hpp"
#include "launch/local.hpp"
#include "movers/cuda.hpp"
#include "movers/levels.hpp"
#include "planning/request.hpp"
#include "run/checks.hpp"
#include "run/job.hpp"
#include "run/placement.hpp"
#include "run/report.hpp"
#include "run/transports.hpp"
#include "strategies/lower.hpp"
#include "support/fake_gpus.hpp"
#include "support/refusals.hpp"
#include "support/transports.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace reckon {
namespace {

using support::FakeGpus;

constexpr int k_gpus = 8; ///< in a machine

/// The shipped profile's plan for two machines.
Plan plan_of_two_machines(bool gpu_direct) {
  std::vector<std::string> doubts;
  const PlanDocuments documents{
      read_profile(RECKON_SOURCE_DIR "/profiles/h100-cluster.json", doubts),
      test::workload({{"a", 100'000, DType::fp32}, {"b", 50'001, DType::fp16}}),
      {},
      {"h100-cluster", digest_of("profile")},
      {"small", digest_of("workload")},
      {}};
  PlanRequest request;
  request.places = PlacesAsked::gpu;
  request.workers = 2;
  request.gpu_direct = gpu_direct;
  return plan_as_asked(documents, request);
}

/// One that crosses machines; empty: this machine has none.
std::string network_here() {
  for (const std::string& name : support::transports_here()) {
    if (name != "host" && name != "shm") {
      return name;
    }
  }
  return "";
}

/// What `plan` needs: GPUs inside the machines, the network between them.
RunOptions over_gpus_and_network(const Plan& plan) {
  RunOptions options;
  choose_transports(options, plan, "inside=cuda,between=" + network_here());
  options.iterations = 2;
  options.warm_up = 1;
  return options;
}

/// Of a GPU whose memory the processor and the network's card reach, too.
class ReachedGpu final : public Mover {
public:
  explicit ReachedGpu(std::unique_ptr<Mover> cuda) : m_cuda(std::move(cuda)) {}
  const MoverCapabilities& capabilities() const noexcept override { return m_cuda->capabilities(); }
  std::span<std::byte> allocate(std::uint64_t bytes) override { return m_cuda->allocate(bytes); }
  void open(int lanes) override { m_cuda->open(lanes); }
  std::string address() const override { return m_cuda->address(); }
  void connect(int self, const std::vector<std::string>& addresses) override {
    m_cuda->connect(self, addresses);
  }
  MoverLane& lane(int index) override { return m_cuda->lane(index); }
  void disconnect(const std::function<void()>& meet) override { m_cuda->disconnect(meet); }

private:
  std::unique_ptr<Mover> m_cuda;
};

/// What a rank's made-up GPUs were told to do in the run.
struct Works {
  std::size_t sums = 0;   ///< on a GPU
  std::size_t copies = 0; ///< between GPUs, or a GPU and the processor's memory
};

/// Runs `plan` as processes of this machine. A rank that leaves something behind on its GPUs, or
/// whose GPUs did something else than `as_expected` says, fails.
Report run(const Plan& plan, bool reached,
           const std::function<bool(const PlanRank&, const Works&)>& as_expected) {
  const RunOptions options = over_gpus_and_network(plan);
  const JobSchedules schedules{lower(plan), {}, {}};
  const std::string text = run_locally(
      static_cast<int>(plan.ranks.size()),
      [&](const JobEnvironment& job, Fd listener, const std::function<void(const std::string&)>&) {
        FakeGpus gpus(k_gpus);
        gpus.let_all_be_peers();
        const auto self = static_cast<std::size_t>(job.rank);
        const PlanRank& place = plan.ranks[self];
        RunOptions own = options;
        settle(own, place);
        own.mover = [&]() -> std::unique_ptr<Mover> {
          const int gpu = place.endpoint.empty() ? 0 : place.endpoint.back() - '0';
          std::unique_ptr<Mover> inside =
              make_cuda_mover(own.host_memory ? nullptr : &gpus, {gpu, own.host_memory});
          if (reached) {
            inside = std::make_unique<ReachedGpu>(std::move(inside));
          }
          return make_levels_mover(std::move(inside), make_mover(own.transport), own.machines);
        };
        Rendezvous rendezvous(job, "digest", own.limit, std::move(listener));
        const JobResult result = run_rank(rendezvous, schedules, own, [](std::size_t, double) {});
        Works works;
        for (const FakeGpus::Work& work : gpus.works) {
          works.sums += work.kind == FakeGpus::Kind::sum ? 1 : 0;
          works.copies += work.kind == FakeGpus::Kind::copy ? 1 : 0;
        }
        if (gpus.living() > 0 || gpus.freed_while_open > 0 || !as_expected(place, works)) {
          fail(ErrorKind::internal,
               fmt::format("{}: {} sums, {} copies, {} handles left", place.place_name(),
                           works.sums, works.copies, gpus.living()));
        }
        return job.rank == 0 ? canonical_text(make_report(plan, {"plan", plan.profile.digest},
                                                          result, own, 1e9, 2))
                             : std::string();
      },
      [](const std::string&) {});
  return report_from_json(parse_json(text, "report"), "report");
}

/// Three iterations, each of 16 workers' whole gradients.
void expect_all_right(const Report& report, const Plan& plan) {
  EXPECT_TRUE(report.verification.ok) << report.verification.first_error;
  std::uint64_t bytes = 0;
  for (const DTypeRun& r : plan.runs) {
    bytes += r.bytes;
  }
  EXPECT_EQ(report.verification.checked_bytes, 3 * 16 * bytes);
}

class GpuCluster : public testing::Test {
protected:
  void SetUp() override {
    if (network_here().empty()) {
      GTEST_SKIP() << "no transport here crosses machines";
    }
  }
};

TEST_F(GpuCluster, RunsByWayOfTheProcessorsMemories) {
  const Plan plan = plan_of_two_machines(false);
  EXPECT_EQ(std::ranges::count(plan.ranks, "gpu", &PlanRank::endpoint_kind), 16);
  EXPECT_EQ(std::ranges::count(plan.ranks, "numa_node", &PlanRank::endpoint_kind), 4);
  check_gpu_memory(lower(plan), plan, over_gpus_and_network(plan), "plan.json");
  // Only the ranks on GPUs give them work.
  expect_all_right(run(plan, false,
                       [](const PlanRank& place, const Works& works) {
                         return place.endpoint_kind == "gpu" ? works.copies > 0
                                                             : works.copies + works.sums == 0;
                       }),
                   plan);
}

TEST_F(GpuCluster, RunsDirectlyWhereTheNetworkReachesTheGpus) {
  const Plan plan = plan_of_two_machines(true);
  EXPECT_EQ(std::ranges::count(plan.ranks, "gpu", &PlanRank::endpoint_kind), 16);
  expect_all_right(run(plan, true,
                       [](const PlanRank& place, const Works& works) {
                         return place.endpoint_kind == "gpu" ? works.sums > 0 && works.copies > 0
                                                             : works.sums + works.copies == 0;
                       }),
                   plan);
}

TEST_F(GpuCluster, APlanThatNeedsMoreThanTheNetworkReachesIsRefusedBeforeItStarts) {
  const Plan plan = plan_of_two_machines(true);
  RunOptions options = over_gpus_and_network(plan);
  EXPECT_REFUSED(unavailable, "plan with --gpu-direct=no",
                 check_gpu_memory(lower(plan), plan, options, "plan.json"));
  options.inside_transport = "host";
  check_gpu_memory(lower(plan), plan, options, "plan.json");
}

} // namespace
} // namespace reckon
