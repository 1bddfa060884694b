// SPDX-License-Identifier: Apache-2.0
#include "fixtures.hpp"

#include "core/error.hpp"
#include "core/json.hpp"
#include "documents/document.hpp"
#include "documents/json.hpp"
#include "schedule/checker.hpp"
#include "strategies/lower.hpp"
#include "strategies/proxies/replan.hpp"
#include "support/cases.hpp"
#include "support/random_cases.hpp"
#include "support/refusals.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace reckon {
namespace {

using namespace test;

constexpr double k_port = 1e9, k_latency = 1e-5;

/// A measured cluster of clients w0.. and devices s0..; the k-th of all is the k-th of one group.
Profile measured(std::uint64_t clients, std::uint64_t devices) {
  Profile p = empty_profile("cluster");
  MachineGroup group{"m0", "all", clients + devices, 8, 0};
  for (std::uint64_t i = 0; i < clients + devices; ++i) {
    group.members.push_back(i < clients ? fmt::format("w{}", i) : fmt::format("s{}", i - clients));
  }
  add_port(p, "m0", k_port);
  // One thread adds up more slowly than a port brings, and two are not twice as fast.
  for (const auto& [threads, rate] : {std::pair(1, 6e8), std::pair(2, 1e9), std::pair(4, 1.5e9)}) {
    add_rate(p,
             {.test = "reduce_sum",
              .from = "m0",
              .bytes = 1 << 20,
              .threads = threads,
              .sources = 2,
              .dtype = "fp32"},
             rate);
  }
  for (const std::string& from : group.members) {
    for (const std::string& to : group.members) {
      for (std::uint64_t bytes = 4096; from != to && bytes <= (1U << 22U); bytes *= 4) {
        add_time(p,
                 {.test = "pair_write",
                  .from = from,
                  .to = to,
                  .bytes = bytes,
                  .transport = "verbs",
                  .direction = "one_way"},
                 k_latency + static_cast<double>(bytes) / k_port);
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
  add_port(p, machine, k_port / factor);
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

Job job(std::uint64_t clients, std::uint64_t devices, const Workload& workload, int lanes = 0) {
  Job j{measured(clients, devices), workload, {}};
  j.roles = default_roles(j.profile, clients, devices, lanes);
  return j;
}

const PlanOptions k_coarse{.strategy = "coarse"};
const Workload k_four = workload({{"a", 1 << 20, DType::fp32},
                                  {"b", 300'000, DType::fp32},
                                  {"c", 1024, DType::fp32},
                                  {"d", 1 << 19, DType::fp32}});

TEST(Replan, TheSameProfileKeepsThePlan) {
  const Job j = job(4, 4, k_four);
  const Plan plan = plan_proxies(j.inputs(), k_coarse, {});
  const Replanned again = replan(plan, j.inputs(), proxy_request_of(plan, j.profile, {}));
  EXPECT_FALSE(again.change);
  EXPECT_TRUE(same_traffic(again.plan, plan));
  EXPECT_EQ(again.running, plan.prediction);
}

TEST(Replan, ClientsLeaveADeviceWhoseLinkSlowsDown) {
  Job j = job(4, 4, k_four);
  const Plan plan = plan_proxies(j.inputs(), k_coarse, {});
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

TEST(ProxyRequestOf, AsksForTheSamePlanAgain) {
  for_cases(6, support::cases(200), [](Random& random) {
    const auto from = [&](std::uint64_t low, std::uint64_t high) {
      return random.whole(low, high);
    };
    Workload w = workload({});
    for (std::uint64_t n = from(1, 4); n > 0; --n) {
      w.tensors.push_back({fmt::format("t{}", n), from(1, 60'000), DType::fp32});
    }
    const std::uint64_t clients = from(2, 4), devices = from(1, 3);
    const Job j = job(clients, devices, w, static_cast<int>(from(0, 2)));
    PlanOptions options{.strategy = from(0, 4) == 0 ? "dense" : "coarse"};
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
      options.order = from(0, 1) == 0 ? Order::gradient : Order::priority;
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
  });
}

TEST(ProxyRequestOf, RefusesWhatAChangeWouldBreak) {
  const Job j = job(2, 2, one_tensor(50'000));
  const auto request = [&](const Plan& plan) { return proxy_request_of(plan, j.profile, {}); };
  EXPECT_REFUSED(
      input, "made up",
      request(plan_proxies(
          j.inputs(), {.strategy = "coarse", .what_if = {.worker_port_bytes_per_s = 1e9}}, {})));
  EXPECT_REFUSED(input, "first come",
                 request(plan_proxies(j.inputs(), k_coarse, {.one_queue = true})));
  EXPECT_REFUSED(input, "--strategy coarse", request(make_plan(j.inputs(), {.strategy = "ring"})));
  Plan damaged = plan_proxies(j.inputs(), k_coarse, {});
  damaged.options["bandwidth_slack"] = "some";
  EXPECT_REFUSED(input, "bandwidth_slack is 'some'", request(damaged));
}

} // namespace
} // namespace reckon
