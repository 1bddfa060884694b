// SPDX-License-Identifier: Apache-2.0
#include "documents/json.hpp"
#include "fixtures.hpp"

#include "core/error.hpp"
#include "core/json.hpp"
#include "documents/document.hpp"
#include "schedule/checker.hpp"
#include "strategies/lower.hpp"
#include "strategies/proxies/replan.hpp"
#include "support/cases.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

namespace reckon {
namespace {

constexpr double k_port = 1e9, k_latency = 1e-5;

/// A measured cluster of clients w0.. and devices s0..; the k-th of all is the k-th of one group.
Profile cluster(std::uint64_t clients, std::uint64_t devices) {
  Profile p;
  p.name = "cluster";
  p.source = "made for a test";
  MachineGroup group{"m0", "all", clients + devices, 8, 0};
  for (std::uint64_t i = 0; i < clients + devices; ++i) {
    group.members.push_back(i < clients ? fmt::format("w{}", i) : fmt::format("s{}", i - clients));
  }
  CellKey key;
  key.transport = "verbs";
  key.test = "port_bandwidth";
  key.from = "m0";
  p.cells.push_back(test::published(key, "bytes_per_second", k_port));
  CellKey sum; // one thread adds up more slowly than a port brings, and two are not twice as fast
  sum.test = "reduce_sum";
  sum.from = "m0";
  sum.dtype = "fp32";
  sum.sources = 2;
  sum.bytes = 1 << 20;
  for (const auto& [threads, rate] : {std::pair(1, 6e8), std::pair(2, 1e9), std::pair(4, 1.5e9)}) {
    sum.threads = threads;
    p.cells.push_back(test::published(sum, "bytes_per_second", rate));
  }
  key.direction = "one_way";
  for (const std::string& from : group.members) {
    for (const std::string& to : group.members) {
      for (std::uint64_t bytes = 4096; from != to && bytes <= (1U << 22U); bytes *= 4) {
        key.test = "pair_write";
        key.from = from;
        key.to = to;
        key.bytes = bytes;
        p.cells.push_back(
            test::published(key, "seconds", k_latency + static_cast<double>(bytes) / k_port));
      }
    }
  }
  p.machines.push_back(std::move(group));
  return p;
}

/// All that goes through a machine's port takes `factor` times as long a byte.
void slow_down(Profile& p, const std::string& machine, double factor) {
  for (Cell& cell : p.cells) {
    if (cell.key.test == "pair_write" && (cell.key.from == machine || cell.key.to == machine)) {
      cell.p50 += (factor - 1) * static_cast<double>(cell.key.bytes) / k_port;
    }
  }
  CellKey key;
  key.transport = "verbs";
  key.test = "port_bandwidth";
  key.from = machine;
  p.cells.push_back(test::published(key, "bytes_per_second", k_port / factor));
}

struct Job {
  Profile profile;
  Workload workload;
  Roles roles;
  [[nodiscard]] PlanInputs inputs() const {
    return {profile,
            workload,
            roles,
            link_to("p", canonical_text(profile)),
            link_to("w", canonical_text(workload)),
            std::nullopt};
  }
};

Job job(std::uint64_t clients, std::uint64_t devices, Workload workload) {
  Job j{cluster(clients, devices), std::move(workload), {}};
  j.roles = default_roles(j.profile, clients, devices, 0);
  return j;
}

PlanOptions coarse() {
  PlanOptions options;
  options.strategy = "coarse";
  return options;
}

Workload tensors(std::initializer_list<std::uint64_t> elements) {
  Workload w;
  w.name = "made";
  for (const std::uint64_t n : elements) {
    w.tensors.push_back({fmt::format("t{}", w.tensors.size()), n, DType::fp32});
  }
  return w;
}

TEST(Replan, TheSameProfileKeepsThePlan) {
  const Job j = job(4, 4, tensors({1 << 20, 300'000, 1024, 1 << 19}));
  const Plan plan = plan_proxies(j.inputs(), coarse(), {});
  const Replanned again = replan(plan, j.inputs(), proxy_request_of(plan, j.profile, {}));
  EXPECT_FALSE(again.change);
  EXPECT_TRUE(same_traffic(again.plan, plan));
  EXPECT_EQ(again.running, plan.prediction);
}

TEST(Replan, ClientsLeaveADeviceWhoseLinkSlowsDown) {
  Job j = job(4, 4, tensors({1 << 20, 300'000, 1024, 1 << 19}));
  const Plan plan = plan_proxies(j.inputs(), coarse(), {});
  ASSERT_EQ(plan.routing[1].bandwidth_proxy, 5U); // client 1 is paired with s1
  slow_down(j.profile, "s1", 4);
  const ProxyRequest request = proxy_request_of(plan, j.profile, {});
  const Replanned now = replan(plan, j.inputs(), request);
  ASSERT_TRUE(now.change) << now.why;
  for (const ProxyRoute& route : now.plan.routing) {
    EXPECT_NE(route.latency_proxy, 5U);
    EXPECT_NE(route.bandwidth_proxy, 5U);
  }
  // The running plan, on the slow link: it is not better than what replaces it by definition of
  // `change`, and slower than it was.
  EXPECT_GT(now.running.mid_seconds, 1.5 * plan.prediction.mid_seconds);
  EXPECT_LT(now.plan.prediction.mid_seconds, (1 - k_replan_margin) * now.running.mid_seconds);
  EXPECT_TRUE(check(lower(now.plan)).ok());
  // Too small a gain for the margin asked for keeps the plan.
  const double gain = 1 - now.plan.prediction.mid_seconds / now.running.mid_seconds;
  EXPECT_TRUE(replan(plan, j.inputs(), request, gain - 0.01).change);
  EXPECT_FALSE(replan(plan, j.inputs(), request, gain + 0.01).change);
}

TEST(Replan, IsTheSameForTheSameInputs) {
  Job j = job(3, 2, tensors({400'000, 300'000}));
  const Plan plan = plan_proxies(j.inputs(), coarse(), {});
  slow_down(j.profile, "s0", 3);
  const ProxyRequest request = proxy_request_of(plan, j.profile, {});
  EXPECT_EQ(canonical_text(replan(plan, j.inputs(), request).plan),
            canonical_text(replan(plan, j.inputs(), request).plan));
}

TEST(ProxyRequestOf, AsksForTheSamePlanAgain) {
  constexpr unsigned k_seed = 6;
  std::mt19937_64 random(k_seed);
  const auto from = [&](std::uint64_t low, std::uint64_t high) {
    return std::uniform_int_distribution<std::uint64_t>(low, high)(random);
  };
  for (int trial = 0; trial < support::cases(200); ++trial) {
    SCOPED_TRACE(fmt::format("seed {}, case {}", k_seed, trial));
    Workload w;
    w.name = "drawn";
    for (std::uint64_t n = from(1, 4); n > 0; --n) {
      w.tensors.push_back({fmt::format("t{}", n), from(1, 60'000), DType::fp32});
    }
    const std::uint64_t clients = from(2, 4), devices = from(1, 3);
    Job j = job(clients, devices, std::move(w));
    const int lanes = static_cast<int>(from(0, 2));
    j.roles = default_roles(j.profile, clients, devices, lanes);
    PlanOptions options = coarse();
    options.strategy = from(0, 4) == 0 ? "dense" : "coarse";
    ProxyOptions proxies;
    if (from(0, 1) == 0) {
      options.part_bytes = 4 * from(512, 16'384);
    }
    if (from(0, 1) == 0) {
      options.window_parts = from(1, 20);
    }
    if (from(0, 2) == 0) {
      options.forward_seconds = 1e-3 * static_cast<double>(from(1, 999)) / 7;
      options.backward_seconds = 1e-3 * static_cast<double>(from(1, 999)) / 7;
    }
    options.zero_compute = from(0, 5) == 0;
    if (options.forward_seconds && !options.zero_compute) {
      constexpr Order k_orders[] = {Order::automatic, Order::gradient, Order::priority};
      options.order = k_orders[from(0, 2)];
    }
    proxies.paper_shards = from(0, 1) == 0;
    proxies.tolerance = 0.01 * static_cast<double>(from(1, 30)) / 3;
    if (from(0, 1) == 0) {
      proxies.ring_directions = static_cast<int>(from(1, 2));
    }
    if (from(0, 1) == 0) {
      proxies.proxy_bytes = static_cast<double>(from(0, j.workload.bytes())) / 3;
    }
    if (from(0, 5) == 0) {
      proxies.proxy_bytes = k_all_proxy_bytes;
    }
    if (from(0, 2) == 0) {
      options.optimizer = from(0, 1) == 0 ? Optimizer::adam : Optimizer::sgd;
      const std::uint64_t place = from(0, 2);
      options.update_at = place == 0   ? std::nullopt
                          : place == 1 ? std::optional(UpdatePlace::server)
                                       : std::optional(UpdatePlace::worker);
    }
    const Plan plan = plan_proxies(j.inputs(), options, proxies);
    const Plan read = plan_from_json(parse_json(canonical_text(plan), "plan"), "plan");
    const ProxyRequest request = proxy_request_of(read, j.profile, {});
    const Plan again = plan_proxies(j.inputs(), request.options, request.proxies);
    EXPECT_TRUE(same_traffic(plan, again));
    EXPECT_EQ(plan.prediction, again.prediction);
    EXPECT_EQ(predict_proxies(j.inputs(), request.options, plan), plan.prediction);
    Job other = j;
    other.roles = request.roles;
    EXPECT_TRUE(same_traffic(plan, plan_proxies(other.inputs(), request.options, request.proxies)));
  }
}

TEST(ProxyRequestOf, RefusesWhatAChangeWouldBreak) {
  const auto error_of = [](const Plan& plan, const Profile& profile) {
    try {
      static_cast<void>(proxy_request_of(plan, profile, {}));
      return std::string();
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::input);
      return std::string(e.what());
    }
  };
  const Job j = job(2, 2, tensors({50'000}));
  PlanOptions options = coarse();
  options.what_if.worker_port_bytes_per_s = 1e9;
  EXPECT_NE(error_of(plan_proxies(j.inputs(), options, {}), j.profile).find("made up"),
            std::string::npos);
  ProxyOptions fcfs;
  fcfs.one_queue = true;
  EXPECT_NE(error_of(plan_proxies(j.inputs(), coarse(), fcfs), j.profile).find("first come"),
            std::string::npos);
  options = {};
  options.strategy = "ring";
  EXPECT_NE(error_of(make_plan(j.inputs(), options), j.profile).find("--strategy coarse"),
            std::string::npos);
  Plan damaged = plan_proxies(j.inputs(), coarse(), {});
  damaged.options["tolerance"] = "some";
  EXPECT_NE(error_of(damaged, j.profile).find("tolerance is 'some'"), std::string::npos);
}

} // namespace
} // namespace reckon
