// SPDX-License-Identifier: Apache-2.0
#include "fixtures.hpp"

#include "core/error.hpp"
#include "core/json.hpp"
#include "documents/json.hpp"
#include "schedule/checker.hpp"
#include "strategies/lower.hpp"
#include "strategies/proxies/planner.hpp"
#include "strategies/proxies/routes.hpp"
#include "support/cases.hpp"
#include "support/random_cases.hpp"
#include "support/refusals.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace reckon {
namespace {

using namespace testing;
using namespace test;

constexpr double k_port = 1e9;

std::string gpu(std::uint64_t i) {
  return fmt::format("gpu{}", i);
}
std::string dev(std::uint64_t i) {
  return fmt::format("dev{}", i);
}

/// Machines gpu0.. and dev0.. behind ports of 1 GB/s, one each.
Profile devices(std::uint64_t workers, std::uint64_t servers) {
  Profile p = empty_profile("devices");
  for (std::uint64_t i = 0; i < workers + servers; ++i) {
    const std::string name = i < workers ? gpu(i) : dev(i - workers);
    p.machines.push_back({name, name, 1, 8, 0});
    add_port(p, name, k_port);
  }
  return p;
}

Roles roles_of(std::uint64_t workers, std::uint64_t servers) {
  Roles roles;
  roles.name = "by hand";
  for (std::uint64_t i = 0; i < workers + servers; ++i) {
    roles.groups.push_back(
        {i < workers ? gpu(i) : dev(i - workers), 1, i < workers, i >= workers, 1});
  }
  return roles;
}

/// The way between two machines, each direction alike.
void add_pair(Profile& p, const std::string& from, const std::string& to, double latency_s,
              double bytes_per_s) {
  CellKey key{
      .test = "pair_latency", .from = from, .to = to, .transport = "verbs", .direction = "one_way"};
  add_time(p, key, latency_s);
  key.test = "pair_bandwidth";
  add_rate(p, key, bytes_per_s);
}

/// devices() with a way from each gpu to each dev, of this latency and rate.
template <class Latency, class Rate>
Profile joined(std::uint64_t workers, std::uint64_t servers, Latency latency_s, Rate bytes_per_s) {
  Profile p = devices(workers, servers);
  for (std::uint64_t c = 0; c < workers; ++c) {
    for (std::uint64_t d = 0; d < servers; ++d) {
      add_pair(p, gpu(c), dev(d), latency_s(c, d), bytes_per_s(c, d));
    }
  }
  return p;
}

Plan plan_of(const Profile& profile, const Roles& roles, const Workload& workload,
             const PlanOptions& options, const ProxyOptions& proxies = {}) {
  return plan_proxies(inputs_of(profile, workload, roles), options, proxies);
}

const PlanOptions k_coarse{.strategy = "coarse"};
const ProxyOptions k_all_through_proxies{.proxy_bytes = k_all_proxy_bytes};

std::vector<std::uint64_t> bandwidth_proxies(const Plan& plan) {
  std::vector<std::uint64_t> proxies;
  for (const ProxyRoute& route : plan.routing) {
    proxies.push_back(route.bandwidth_proxy);
  }
  return proxies;
}

/// The plan's candidate; a test failure where it has none that applies.
Prediction candidate(const Plan& plan, const std::string& strategy) {
  for (const Candidate& c : plan.candidates) {
    if (c.strategy.starts_with(strategy) && c.prediction) {
      return *c.prediction;
    }
  }
  ADD_FAILURE() << "no candidate " << strategy;
  return {};
}

std::set<std::string> candidates_of(const Plan& plan) {
  std::set<std::string> names;
  for (const Candidate& c : plan.candidates) {
    names.insert(c.strategy);
  }
  return names;
}

TEST(Proxies, ASlowNearAndAFastFarProxyCrossWhereTheirTimesAreEqual) {
  // 10 us + s / 50 MB/s = 1 ms + s / 500 MB/s: s = 0.99 ms / (18 ns a byte) = 55000 bytes.
  const Profile p = joined(
      2, 2, [](auto, auto d) { return d == 0 ? 10e-6 : 1e-3; },
      [](auto, auto d) { return d == 0 ? 50e6 : 500e6; });
  const Workload w = workload({{"short", 12500, DType::fp32}, {"long", 15000, DType::fp32}});
  const Plan plan = plan_of(p, roles_of(2, 2), w, k_coarse,
                            {.proxy_bytes = k_all_proxy_bytes, .paper_shards = true});
  ASSERT_EQ(plan.routing.size(), 2U);
  for (const ProxyRoute& route : plan.routing) {
    EXPECT_EQ(route.latency_proxy, 2U);
    EXPECT_EQ(route.bandwidth_proxy, 3U);
    ASSERT_TRUE(route.threshold_bytes);
    EXPECT_NEAR(*route.threshold_bytes, 55000, 1e-6);
    ASSERT_EQ(route.crossings_bytes.size(), 1U);
  }
  // 50000 bytes go to rank 2 and are summed there, 60000 bytes to rank 3.
  EXPECT_THAT(plan.parts.server, ElementsAre(2, 3));
  EXPECT_THAT(plan.trees[plan.parts.tree[0]].up, ElementsAre(2, 2, 2, -1));
  EXPECT_THAT(plan.trees[plan.parts.tree[1]].up, ElementsAre(3, 3, -1, 3));
  // S' of the far one: s / (1 ms + s / 500 MB/s) within 2 % of what the largest, 16 MiB, gets:
  // 485.5 MB/s, of which 98 % are 475.8; 8 MiB get 471.9.
  EXPECT_EQ(plan.routing[0].partition_bytes, 16U << 20U);
}

TEST(Proxies, AlikeProxiesAreTakenInPairsAndNeedNoThreshold) {
  const Workload w = one_tensor(1U << 20U);
  const Plan one = plan_of(devices(4, 4), roles_of(4, 4), w, k_coarse, k_all_through_proxies);
  for (std::uint64_t c = 0; c < 4; ++c) {
    EXPECT_EQ(one.routing[c].latency_proxy, 4 + c);
    EXPECT_EQ(one.routing[c].bandwidth_proxy, 4 + c);
    EXPECT_FALSE(one.routing[c].threshold_bytes);
  }
  // 2:1, COARSE V-A: two clients next to each other share a device.
  const Plan two = plan_of(devices(4, 2), roles_of(4, 2), w, k_coarse, k_all_through_proxies);
  EXPECT_THAT(bandwidth_proxies(two), ElementsAre(4, 4, 5, 5));
}

TEST(Proxies, TheProxiesThatAreAllBetterThanTheOwnAreSharedOut) {
  // Anti-local: every device but the paired one is faster.
  const Profile p = joined(
      4, 4, [](auto c, auto d) { return c == d ? 10e-6 : 30e-6; },
      [](auto c, auto d) { return c == d ? 500e6 : 900e6; });
  // 4 MiB alone take 4.69 ms; ten of 4000 bytes save 10 * 20 us: 4 %.
  Workload w = equal_tensors(10, 1000);
  w.tensors.insert(w.tensors.begin(), {"long", 1U << 20U, DType::fp32});
  const Plan plan = plan_of(p, roles_of(4, 4), w, k_coarse, k_all_through_proxies);
  std::set<std::uint64_t> used;
  for (std::uint64_t c = 0; c < 4; ++c) {
    EXPECT_EQ(plan.routing[c].latency_proxy, 4 + c);
    EXPECT_NE(plan.routing[c].bandwidth_proxy, 4 + c);
    used.insert(plan.routing[c].bandwidth_proxy);
  }
  EXPECT_EQ(used.size(), 4U);
}

TEST(Proxies, ClientsMoveToAnotherGoodProxyUntilAllHaveAsMany) {
  // COARSE's V100 machine with two devices: 0 and 1 are better off with the other's device, for 2
  // and 3 both are alike, and both are paired with device 1 (rank 5). That would have three clients
  // then: 0, 2 and 3.
  const Profile p = joined(
      4, 2, [](auto, auto) { return 30e-6; },
      [](auto c, auto d) { return c == d ? 500e6 : 900e6; });
  const Plan plan =
      plan_of(p, roles_of(4, 2), one_tensor(1U << 20U), k_coarse, k_all_through_proxies);
  EXPECT_THAT(bandwidth_proxies(plan), ElementsAre(5, 4, 5, 4));
}

TEST(Proxies, TheBaselinesTooPassTheSlowWaysBetweenPairs) {
  // Ports of 1 GB/s, and 0.1 GB/s between any two of the four workers: a ring's bound is
  // 2 (p - 1) / p M / B = 1.5 * 16 MiB / 0.1 GB/s.
  Profile p = devices(4, 4);
  for (std::uint64_t a = 0; a < 4; ++a) {
    for (std::uint64_t b = 0; b < 4; ++b) {
      if (a != b) {
        add_pair(p, gpu(a), gpu(b), 1e-6, 0.1e9);
        add_pair(p, dev(a), dev(b), 1e-6, 1e9);
      }
      add_pair(p, gpu(a), dev(b), 1e-6, 1e9);
      add_pair(p, dev(b), gpu(a), 1e-6, 1e9);
    }
  }
  const Plan plan = plan_of(p, roles_of(4, 4), one_tensor(4U << 20U), k_coarse);
  const Prediction ring = candidate(plan, "ring");
  const double bound = 1.5 * (16 << 20) / 0.1e9;
  EXPECT_NEAR(ring.busy_seconds(), bound, 1e-3 * bound);
  EXPECT_NEAR(ring.mid_seconds, bound, 0.05 * bound);
  EXPECT_LT(plan.prediction.mid_seconds, bound / 2);
}

TEST(Proxies, EveryStrategyIsBoundByASlowWayBetweenTwoMachines) {
  // Ports of 1 GB/s; from gpu0 to gpu1 0.25 GB/s. A ring of 4 sends 2 * 3/4 of 16 MiB over each of
  // its ways: 25165824 bytes, 25.17 ms at the ports and 100.66 ms on that way.
  Profile p = devices(4, 0);
  const auto planned = [&](const char* strategy) {
    return plan_for(p, one_tensor(4U << 20U), 4, 0,
                    {.strategy = strategy, .ring_order = RingOrdering::given});
  };
  const double bytes = 1.5 * (16 << 20);
  EXPECT_NEAR(planned("ring").prediction.bound_seconds, bytes / k_port, 1e-3 * bytes / k_port);
  for (std::uint64_t a = 0; a < 4; ++a) {
    for (std::uint64_t b = 0; b < 4; ++b) {
      if (a != b) {
        add_pair(p, gpu(a), gpu(b), 1e-6, a == 0 && b == 1 ? 0.25e9 : 1e9);
      }
    }
  }
  const Prediction ring = planned("ring").prediction;
  const double bound = bytes / 0.25e9;
  EXPECT_NEAR(ring.busy_seconds(), bound, 1e-3 * bound);
  EXPECT_THAT(ring.busy_by(), HasSubstr("gpu0 -> gpu1: "));
  EXPECT_GE(ring.mid_seconds, ring.busy_seconds());
  EXPECT_LT(ring.mid_seconds, 1.1 * bound);
  EXPECT_LE(ring.lo_seconds, ring.mid_seconds);
  // Every worker that serves takes a quarter from each other one, and gives it back: 8 MiB over
  // each way, 33.55 ms on the slow one. No strategy is held against its ports alone.
  const Plan served = planned("ps_colocated");
  EXPECT_NEAR(served.prediction.busy_seconds(), (8 << 20) / 0.25e9, 1e-3 * (8 << 20) / 0.25e9);
  EXPECT_NEAR(candidate(served, "ring").busy_seconds(), bound, 1e-3 * bound);
}

TEST(Proxies, MoreBytesThroughTheProxiesThanThereAreIsAnError) {
  const auto planned = [](double bytes) {
    return plan_of(devices(2, 2), roles_of(2, 2), one_tensor(1000), k_coarse,
                   {.proxy_bytes = bytes});
  };
  EXPECT_REFUSED(input, "'auto'", planned(4001));
  EXPECT_EQ(planned(4000).options.at("proxy_bytes"), "all");
}

TEST(Proxies, CurvesMadeOfAMeasuredLatencyAndRateAreSaidToBeGuessed) {
  Profile p = devices(1, 1);
  add_pair(p, "gpu0", "dev0", 1e-5, 5e8);
  add_pair(p, "dev0", "gpu0", 1e-5, 5e8);
  const auto says_so = [&] {
    const Plan plan = plan_of(p, roles_of(1, 1), one_tensor(1000), k_coarse, k_all_through_proxies);
    return std::any_of(plan.quantities.begin(), plan.quantities.end(), [](const Quantity& q) {
      return q.equation.find("no pair_write of 1 pairs") != std::string::npos;
    });
  };
  EXPECT_FALSE(says_so()); // published: nobody could measure more
  for (Cell& cell : p.cells) {
    cell.status = CellStatus::ok;
    cell.samples = {cell.p50};
  }
  EXPECT_TRUE(says_so());
}

TEST(Proxies, AProxyForShortTensorsMustSaveMoreThanNoise) {
  Profile p = devices(1, 2);
  add_pair(p, "gpu0", "dev0", 30e-6, 900e6);
  add_pair(p, "gpu0", "dev1", 10e-6, 500e6);
  // 4 MiB take 4.69 ms, and one tensor of 4000 bytes saves 20 us: 0.4 %.
  const Workload w = workload({{"long", 1U << 20U, DType::fp32}, {"short", 1000, DType::fp32}});
  const Plan plan = plan_of(p, roles_of(1, 2), w, k_coarse, k_all_through_proxies);
  EXPECT_EQ(plan.routing[0].latency_proxy, 1U);
  EXPECT_EQ(plan.routing[0].bandwidth_proxy, 1U);
}

TEST(Proxies, DenseHasOneDeviceThatEverythingPasses) {
  const Plan plan = plan_of(devices(4, 4), roles_of(4, 4), one_tensor(16U << 20U), // 64 MiB
                            {.strategy = "dense", .part_bytes = 1U << 20U});
  EXPECT_EQ(plan.strategy, "dense");
  EXPECT_THAT(plan.parts.server, Each(4U));
  // C8: p n / B in each direction.
  EXPECT_NEAR(plan.prediction.busy_seconds(), 4 * 64.0 * (1 << 20) / k_port, 1e-9);
  EXPECT_GT(plan.prediction.mid_seconds, plan.prediction.busy_seconds());
  EXPECT_LT(plan.prediction.mid_seconds, 1.1 * plan.prediction.busy_seconds());
  EXPECT_THAT(plan.prediction.relief, HasSubstr("--strategy coarse"));
  // The search for dense has no ring of the workers.
  EXPECT_THAT(candidates_of(plan), AllOf(Contains("coarse_without_ring"), Not(Contains("coarse"))));
}

TEST(Proxies, ALaneUsesOnePortOfItsMachine) {
  // Two ports of 1 GB/s each on every machine. The device gets 64 MiB from each of two workers, and
  // sends as much: 67.1 ms over both of its ports, 134.2 ms over the one that one lane has.
  Profile p = devices(2, 1);
  for (const MachineGroup& machine : p.machines) {
    add_single_port(p, machine.id + "/port0", k_port);
    add_single_port(p, machine.id + "/port1", k_port);
  }
  for (Cell& cell : p.cells) {
    if (cell.key.test == "port_bandwidth") {
      cell = published(cell.key, "bytes_per_second", 2 * k_port);
    }
  }
  const Workload w = one_tensor(16U << 20U);
  const PlanOptions options{.strategy = "dense"};
  Roles roles = roles_of(2, 1);
  const double on_one_port_s = 2 * 67108864 / k_port;
  const Plan one = plan_of(p, roles, w, options);
  EXPECT_NEAR(one.prediction.busy_seconds(), on_one_port_s, 1e-9);
  EXPECT_THAT(one.prediction.busy_by(), test::Says("dev0/port0"));
  for (RoleGroup& group : roles.groups) {
    group.lanes = 0; // to be solved
  }
  const Plan both = plan_of(p, roles, w, options);
  EXPECT_EQ(both.ranks.front().lanes % 2, 0);
  EXPECT_NEAR(both.prediction.busy_seconds(), on_one_port_s / 2, 0.02 * on_one_port_s);
  EXPECT_LT(both.prediction.mid_seconds, 0.7 * one.prediction.mid_seconds);
}

TEST(Proxies, TheCandidatesHaveThePapersBaselines) {
  const Plan plan = plan_of(devices(4, 4), roles_of(4, 4), one_tensor(16U << 20U),
                            {.strategy = "coarse", .part_bytes = 1U << 20U});
  for (const char* name : {"coarse", "coarse_without_ring", "dense", "ring", "ps_noncolocated"}) {
    const Prediction p = candidate(plan, name);
    EXPECT_GE(p.lo_seconds, p.bound_seconds * (1 - 1e-9)) << name;
    EXPECT_LE(p.lo_seconds, p.mid_seconds) << name;
    EXPECT_LE(p.mid_seconds, p.hi_seconds) << name;
  }
}

TEST(Proxies, OneWorkerNeedsNoneOfTheOthersAndAllNumbersAreFinite) {
  const Profile p = joined(
      1, 3, [](auto, auto) { return 1e-5; }, [](auto, auto) { return 500e6; });
  const Workload w = one_tensor(1U << 20U);
  for (const bool passes : {false, true}) {
    PlanOptions options = k_coarse;
    if (passes) {
      options.forward_seconds = 0.01;
      options.backward_seconds = 0.02;
    }
    const Plan plan = plan_of(p, roles_of(1, 3), w, options);
    for (const Candidate& c : plan.candidates) {
      ASSERT_TRUE(!c.prediction || (std::isfinite(c.prediction->lo_seconds) &&
                                    std::isfinite(c.prediction->mid_seconds) &&
                                    std::isfinite(c.prediction->hi_seconds)))
          << c.strategy;
    }
    EXPECT_EQ(plan_from_json(to_json(plan), "plan"), plan);
  }
}

TEST(Proxies, WithoutADeviceThereIsNoPlan) {
  EXPECT_REFUSED(input, "--servers",
                 plan_of(devices(4, 1), roles_of(4, 0), one_tensor(1U << 20U), k_coarse));
}

TEST(Proxies, AnIterationWithPassesIsNoShorterThanThePassesAndSaysWhatIsExposed) {
  const Plan plan = plan_of(devices(4, 4), roles_of(4, 4), equal_tensors(16, 1U << 20U), // 64 MiB
                            {.strategy = "coarse",
                             .part_bytes = 1U << 20U,
                             .forward_seconds = 0.05,
                             .backward_seconds = 0.1});
  EXPECT_GE(plan.prediction.mid_seconds, 0.15);
  // All the traffic after all the passes: 2.5 times the gradient through a device's port.
  EXPECT_LT(plan.prediction.mid_seconds, 0.15 + 2.5 * 64 * (1 << 20) / k_port);
  EXPECT_THAT(check(lower(plan)).faults, IsEmpty());
}

TEST(Proxies, GpusOfAMachineCanBeTheMemoryDevices) {
  // BytePS's PCIe machine, half of its GPUs: two clients and two devices under each switch. Each
  // copy passes the client's and the device's link of 105 Gb/s; what goes round crosses the
  // switch's way to its host bridge.
  const Profile p = shipped_profile("byteps-pcie");
  Roles roles;
  roles.name = "half of them";
  roles.groups = {{"m0", 4, true, false, 1, {"m0/gpu0", "m0/gpu1", "m0/gpu4", "m0/gpu5"}},
                  {"m0", 4, false, true, 1, {"m0/gpu2", "m0/gpu3", "m0/gpu6", "m0/gpu7"}}};
  const Plan plan = plan_of(p, roles, one_tensor(16U << 20U),
                            {.strategy = "coarse", .part_bytes = 1U << 20U}, k_all_through_proxies);
  EXPECT_EQ(plan.transport, "cuda");
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    EXPECT_EQ(plan.ranks[r].endpoint, roles.groups[r / 4].endpoints[r % 4]);
    EXPECT_EQ(plan.ranks[r].endpoint_kind, "gpu");
    EXPECT_EQ(plan.ranks[r].port_bytes_per_second, 0);
  }
  EXPECT_THAT(check(lower(plan)).faults, IsEmpty());
  // The devices' ring, in their order: 2 3 of its 8 hops for each part lead from one switch to the
  // other, 2 of 4 each way (gpu3 > gpu6, gpu7 > gpu2): 1.5 of the gradient passes each of their
  // links, client's traffic does not.
  EXPECT_THAT(plan.prediction.busy_by(), HasSubstr("sw"));
  EXPECT_LE(candidate(plan, "inside_").bound_seconds, plan.prediction.mid_seconds);
}

/// Two machines with two GPUs each: 4 GB/s between the two, ports of 1 GB/s.
Profile two_machines_of_two_gpus() {
  Profile p = empty_profile("two machines");
  p.machines.push_back({"m0", "m0", 2, 8, 0});
  TopologyObject machine, first, second;
  machine.id = "m0";
  first.id = "m0/gpu0";
  second.id = "m0/gpu1";
  first.kind = second.kind = ObjectKind::gpu;
  first.parent = second.parent = machine.id;
  p.topology.objects = {machine, first, second};
  p.topology.links = {{PeerLinkKind::nvlink, first.id, second.id, 1, 4e9}};
  add_port(p, "m0", k_port);
  return p;
}

TEST(Proxies, MachinesMayHaveClientsAndDevicesBothAndOnlyTheDevicesSendBetweenThem) {
  const Profile p = two_machines_of_two_gpus();
  Roles roles;
  roles.name = "a device beside each";
  for (int machine = 0; machine < 2; ++machine) { // named again: of the next machine
    roles.groups.push_back({"m0", 1, true, false, 1, {"m0/gpu0"}});
    roles.groups.push_back({"m0", 1, false, true, 1, {"m0/gpu1"}});
  }
  const Plan plan = plan_of(p, roles, one_tensor(16U << 20U), // 64 MiB
                            {.strategy = "coarse", .part_bytes = 1U << 20U}, k_all_through_proxies);
  ASSERT_EQ(plan.ranks.size(), 4U);
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    EXPECT_EQ(plan.ranks[r].machine_number, r / 2);
    EXPECT_EQ(plan.ranks[r].worker, r % 2 == 0);
  }
  EXPECT_THAT(bandwidth_proxies(plan), ElementsAre(1U, 3U)); // the near ones
  EXPECT_THAT(check(lower(plan)).faults, IsEmpty());
  // Two devices: half of the gradient goes to the other and comes back summed, and the other's half
  // the same way: 2 (q - 1) / q = 1 gradient through each port.
  const double port_s = (64 << 20) / 1e9;
  EXPECT_NEAR(plan.prediction.busy_seconds(), port_s, 1e-9);
  EXPECT_THAT(plan.prediction.busy_by(), HasSubstr("port"));
  EXPECT_GE(plan.prediction.mid_seconds, port_s);
  EXPECT_LT(plan.prediction.mid_seconds, 1.1 * port_s); // push, pull and the first shard's way
}

/// What a part makes the ranks send: clients to their proxies and round the ring and back, or round
/// the workers' ring.
double sent(const Plan& plan, std::size_t part, std::size_t workers) {
  const SumTree& tree = plan.trees[plan.parts.tree[part]];
  std::size_t members = 0;
  for (const std::int64_t parent : tree.up) {
    members += parent >= 0 ? 1U : 0U;
  }
  const bool ring = members == workers && tree.scheme.starts_with("workers");
  const std::size_t hops = 2 * (members - 1);
  return static_cast<double>(plan.parts.bytes[part]) *
         static_cast<double>(ring ? 2 * (workers - 1) : hops);
}

/// COARSE's figure 10: each client's near proxy takes the short tensor, the far one the long one.
Plan figure_10(bool one_queue, bool crossed) {
  const Profile p = joined(
      2, 2, [](auto c, auto d) { return c == d ? 10e-6 : 1e-3; },
      [&](auto c, auto d) { return crossed == (c != d) ? 500e6 : 50e6; });
  const Workload w = workload({{"short", 5000, DType::fp32}, {"long", 25000, DType::fp32}});
  return plan_of(p, roles_of(2, 2), w, k_coarse,
                 {.proxy_bytes = k_all_proxy_bytes, .one_queue = one_queue});
}

TEST(Proxies, ByPriorityTheForwardPassNeedNotWaitForAllTraffic) {
  const Workload w = equal_tensors(8, 1U << 20U);
  PlanOptions options{.strategy = "coarse",
                      .part_bytes = 1U << 20U,
                      .forward_seconds = 0.08,
                      .backward_seconds = 0.02};
  std::map<Order, double> seconds;
  for (const Order order : {Order::gradient, Order::priority}) {
    options.order = order;
    const Plan plan = plan_of(devices(4, 4), roles_of(4, 4), w, options, k_all_through_proxies);
    seconds[order] = plan.prediction.mid_seconds;
    const auto& offsets = plan.parts.offset_bytes;
    EXPECT_EQ(std::is_sorted(offsets.begin(), offsets.end()), order == Order::gradient);
    for (std::size_t t = 0; t < 8; ++t) { // each has its own four parts, wherever they stand
      const TensorRoute& tensor = plan.tensors[t];
      EXPECT_EQ(tensor.parts, 4U);
      EXPECT_EQ(offsets[tensor.first_part], t << 22U);
      EXPECT_EQ(offsets[tensor.first_part + 3], (t << 22U) + (3U << 20U));
    }
  }
  // 32 MiB pass a device's port 2.5 times, 84 ms. In gradient order the forward pass follows: 2.5
  // ms of the first layer's backward pass + 84 + 80 = 166 ms and the fill. By priority it goes on
  // with what is there.
  EXPECT_GT(seconds[Order::gradient], 0.166);
  EXPECT_LT(seconds[Order::priority], 0.9 * seconds[Order::gradient]);
  options.forward_seconds = options.backward_seconds = 0;
  options.order = Order::priority;
  EXPECT_ERROR(plan_of(devices(4, 4), roles_of(4, 4), w, options));
}

TEST(Proxies, OneQueueDeadlocksWhereClientsUseTheProxiesInOppositeOrder) {
  EXPECT_THAT(check(lower(figure_10(false, true))).faults, IsEmpty());
  EXPECT_THAT(check(lower(figure_10(true, true))).faults, Contains(HasSubstr("deadlock")));
  // Where both tensors of a client go to one proxy, the order is the same everywhere.
  EXPECT_THAT(check(lower(figure_10(true, false))).faults, IsEmpty());
}

TEST(Proxies, AStepIsMadeWhereItWasAskedForAndProved) {
  std::vector<Tensor> tensors;
  for (int t = 0; t < 9; ++t) {
    tensors.push_back({fmt::format("t{}", t), 30011U + static_cast<unsigned>(t), DType::fp32});
  }
  const Workload w = workload(std::move(tensors));
  for (const std::uint64_t servers : {1U, 2U, 4U}) {
    for (const UpdatePlace place : {UpdatePlace::server, UpdatePlace::worker}) {
      for (const char* strategy : {"coarse", "dense"}) {
        const Plan plan = plan_of(devices(4, servers), roles_of(4, servers), w,
                                  {.strategy = strategy,
                                   .part_bytes = 16384,
                                   .window_parts = 3,
                                   .optimizer = Optimizer::adam,
                                   .update_at = place},
                                  {.proxy_bytes = static_cast<double>(w.bytes()) / 2});
        ASSERT_TRUE(plan.update);
        EXPECT_EQ(plan.update->place, place);
        EXPECT_THAT(check(lower(plan)).faults, IsEmpty()) << strategy << " " << servers;
      }
    }
  }
}

TEST(Proxies, ACheckpointIsPredictedAsLongAsItsCopiesKeepLanesFromTheirWork) {
  // 12 MB of parameters and two states of Adam on two devices: each saves 36 MB / 2. At 1 MB/s that
  // takes 18 s, the whole iteration some tens of milliseconds, in part of which a lane may copy. At
  // 1 TB/s the copies take 36 us.
  const Workload w = workload({{"a", 1'500'000, DType::fp32}, {"b", 1'500'000, DType::fp32}});
  const PlanOptions options{
      .strategy = "coarse", .optimizer = Optimizer::adam, .update_at = UpdatePlace::server};
  for (const double rate : {1e6, 1e12}) {
    Profile p = devices(2, 2);
    add_time(p,
             {.test = "host_memcpy",
              .from = "gpu0",
              .to = "gpu0",
              .bytes = 1'000'000,
              .threads = 1,
              .state = "cold"},
             1e6 / rate);
    const Plan plan = plan_of(p, roles_of(2, 2), w, options, k_all_through_proxies);
    const Quantity* const cost = quantity_of(plan, "checkpoint_seconds");
    ASSERT_NE(cost, nullptr);
    EXPECT_EQ(cost->inputs.at("saved_bytes"), 36e6);
    double most = 0; // of a device: what it owns, three times
    for (const PlanRank& rank : plan.ranks) {
      most = std::max(most, 3 * static_cast<double>(rank.assigned_bytes) / rate);
    }
    EXPECT_GE(cost->value, most - plan.prediction.mid_seconds);
    EXPECT_LE(cost->value, most + 1e-9);
    EXPECT_GT(most, 17.9e6 / rate);
  }
  // Without a rate of copies nothing is claimed.
  const Plan plan = plan_of(devices(2, 2), roles_of(2, 2), w, options, k_all_through_proxies);
  EXPECT_EQ(quantity_of(plan, "checkpoint_seconds"), nullptr);
}

TEST(Proxies, RandomPlansAreProvedAndSendWhatTheirTreesSay) {
  for_cases(41, support::cases(200), [](Random& random) {
    const auto draw = [&](unsigned low, unsigned high) {
      return static_cast<unsigned>(random.whole(low, high));
    };
    const unsigned workers = draw(1, 6), servers = draw(1, 6);
    const Profile p = joined(
        workers, servers, [&](auto, auto) { return 1e-6 * draw(5, 2000); },
        [&](auto, auto) { return 1e6 * draw(50, 1000); });
    std::vector<Tensor> tensors;
    for (unsigned t = draw(1, 12); t > 0; --t) {
      const DType dtype = random() % 4 == 0 ? DType::fp16 : DType::fp32;
      tensors.push_back({fmt::format("t{}", t), draw(1, 1U << draw(1, 19)), dtype});
    }
    const Workload w = workload(std::move(tensors));
    PlanOptions options = k_coarse;
    options.part_bytes = std::uint64_t{1} << draw(12, 19);
    options.window_parts = draw(1, 12);
    ProxyOptions proxies;
    if (random() % 3 != 0) {
      proxies.proxy_bytes = static_cast<double>(w.bytes()) * draw(0, 8) / 8;
    }
    proxies.ring_directions = static_cast<int>(draw(1, 2));
    const Plan plan = plan_of(p, roles_of(workers, servers), w, options, proxies);
    // As a document it is valid, and the same.
    EXPECT_EQ(plan_from_json(to_json(plan), "plan"), plan);
    EXPECT_THAT(check(lower(plan)).faults, IsEmpty());
    // What goes through the proxies is the nearest to what was asked for that cuts no tensor.
    if (proxies.proxy_bytes) {
      double at = 0, chosen = 0, nearest = *proxies.proxy_bytes;
      for (std::size_t t = 0; t < w.tensors.size(); ++t) {
        at += static_cast<double>(w.tensors[t].bytes());
        nearest = std::min(nearest, std::abs(at - *proxies.proxy_bytes));
        chosen = plan.tensors[t].by_workers ? chosen : at;
      }
      EXPECT_EQ(std::abs(chosen - *proxies.proxy_bytes), nearest);
    }
    // Tensor by tensor, in order, in shards that are equal and not below S'.
    std::uint64_t next = 0;
    bool by_workers = false;
    ASSERT_EQ(plan.tensors.size(), w.tensors.size());
    for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
      const TensorRoute& route = plan.tensors[t];
      EXPECT_EQ(route.first_part, next);
      next += route.parts;
      EXPECT_TRUE(route.by_workers || !by_workers); // the last layers first: E20
      by_workers = route.by_workers;
      std::uint64_t bytes = 0, least = UINT64_MAX, greatest = 0;
      for (std::uint64_t s = route.first_part; s < next; ++s) {
        bytes += plan.parts.bytes[s];
        least = std::min(least, plan.parts.bytes[s]);
        greatest = std::max(greatest, plan.parts.bytes[s]);
        const SumTree& tree = plan.trees[plan.parts.tree[s]];
        for (std::size_t c = 0; !route.by_workers && c < workers; ++c) {
          const double size = static_cast<double>(w.tensors[t].bytes());
          EXPECT_EQ(tree.up[c], static_cast<std::int64_t>(plan.routing[c].proxy_of(size)));
          EXPECT_EQ(tree.down[c], tree.up[c]);
        }
      }
      EXPECT_EQ(bytes, w.tensors[t].bytes());
      EXPECT_LE(greatest - least, size_of(w.tensors[t].dtype));
      EXPECT_TRUE(route.parts == 1 || least >= *options.part_bytes);
    }
    EXPECT_EQ(next, plan.parts.size());
    double expected = 0, egress = 0, share = 0;
    for (std::size_t s = 0; s < plan.parts.size(); ++s) {
      expected += sent(plan, s, workers);
    }
    for (const PlanRank& rank : plan.ranks) {
      egress += static_cast<double>(rank.egress_bytes);
    }
    for (const SumTree& tree : plan.trees) {
      share += tree.share;
    }
    EXPECT_EQ(egress, expected);
    EXPECT_NEAR(share, 1, 1e-9);
    EXPECT_GE(plan.prediction.lo_seconds, plan.prediction.bound_seconds * (1 - 1e-9));
  });
}

} // namespace
} // namespace reckon
