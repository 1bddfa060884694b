// SPDX-License-Identifier: Apache-2.0
#include "documents/json.hpp"
#include "fixtures.hpp"

#include "core/file.hpp"
#include "core/json.hpp"
#include "documents/ceilings.hpp"
#include "documents/quantity_names.hpp"
#include "strategies/forest/planner.hpp"
#include "strategies/lower.hpp"
#include "strategies/model.hpp"
#include "strategies/plan_network.hpp"
#include "strategies/play.hpp"
#include "strategies/predict.hpp"
#include "strategies/strategy.hpp"
#include "strategies/torus/planner.hpp"
#include "support/cases.hpp"
#include "support/random_cases.hpp"
#include "support/refusals.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace reckon {
namespace {

using namespace test;

const Workload k_model = one_tensor(16U << 20U); // 64 MiB

TEST(Planner, ReproducesTheLineOfBytePSFigure12) {
  // 8 machines, k = 0..8, 90 Gb/s: throughput of the bound 2M/... in Gb/s as facts: 8M/t with t of
  // equation 7.
  const double line[] = {51.43, 56.25, 61.07, 65.89, 70.71, 75.54, 80.36, 85.18, 90.0};
  const double bandwidth = 90e9 / 8;
  PlanOptions options{.strategy = "byteps_split"};
  for (std::uint64_t k = 0; k <= 8; k += support::k_sanitized ? 4 : 1) {
    const Plan plan = plan_for(cluster(bandwidth, bandwidth), k_model, 8, k, options);
    const double gbit_per_s = 8 * 64.0 * 1024 * 1024 / plan.prediction.bound_seconds / 1e9;
    EXPECT_NEAR(gbit_per_s, line[k], 0.006) << "k = " << k;
  }
}

/// Of each candidate: bound <= lo <= mid <= hi, and terms that add up to mid.
void expect_orderly(const Plan& plan) {
  for (const Candidate& c : plan.candidates) {
    if (!c.prediction) {
      continue;
    }
    const Prediction& p = *c.prediction;
    EXPECT_GE(p.lo_seconds, p.bound_seconds * (1 - 1e-9)) << c.strategy;
    EXPECT_LE(p.lo_seconds, p.mid_seconds) << c.strategy;
    EXPECT_LE(p.mid_seconds, p.hi_seconds) << c.strategy;
    double sum = 0;
    for (const Term& t : p.terms) {
      EXPECT_GE(t.seconds, 0) << c.strategy;
      sum += t.seconds;
    }
    EXPECT_NEAR(sum, p.mid_seconds, 1e-9 * sum) << c.strategy;
  }
}

/// Reading a plan back refuses one that promises less than its bound.
void expect_reads_back(const Plan& plan) {
  const std::string text = canonical_text(plan);
  EXPECT_EQ(canonical_text(plan_from_json(parse_json(text, "plan"), "plan")), text);
}

/// Colocated servers have equal shares, up to a part.
void expect_equal_shares(const Plan& plan) {
  for (const PlanRank& r : plan.ranks) {
    EXPECT_TRUE(plan.strategy != "ps_colocated" || !r.worker ||
                std::abs(static_cast<double>(r.assigned_bytes) - r.share_bytes) <=
                    static_cast<double>(plan.part_bytes))
        << r.assigned_bytes << " for " << r.share_bytes;
  }
}

TEST(Planner, PredictionIsNeverBelowItsBound) {
  for (const std::uint64_t n : support::values({4U, 2U, 7U})) {
    for (const std::uint64_t k : {0U, 2U, 7U, 9U}) {
      for (const std::uint64_t part : {65536U, 4U << 20U}) {
        for (const Profile& profile : {cluster(1e9, 1e9), cluster(1e9, 3e8), one_machine()}) {
          expect_orderly(plan_for(profile, k_model, n, k, {.part_bytes = part}));
        }
      }
    }
  }
}

TEST(Planner, ChoosesTheSplitWhenServersHelpAndTheLeastBytesOnOneMachine) {
  const Plan network = plan_for(cluster(1e9, 1e9), k_model, 4, 4, {});
  EXPECT_EQ(network.strategy, "byteps_split");
  // On one machine every byte to a server is one more byte through the same memory: colocated sums
  // (or the ring) win.
  const Plan box = plan_for(one_machine(), k_model, 4, 4, {});
  EXPECT_TRUE(box.strategy == "ps_colocated" || box.strategy == "ring") << box.strategy;
  EXPECT_FALSE(box.runner_up.empty());
  EXPECT_GE(box.margin, 0);
}

TEST(Planner, FewLargePartsCostFillAndDrain) {
  const auto seconds = [](std::uint64_t part_bytes) {
    return plan_for(cluster(6.25e7, 6.25e7), k_model, 4, 4,
                    {.strategy = "byteps_split", .part_bytes = part_bytes})
        .prediction.mid_seconds;
  };
  EXPECT_GT(seconds(4U << 20U), 1.1 * seconds(256U << 10U));
}

TEST(Planner, WhatCannotBePlannedSaysWhatIsMissing) {
  EXPECT_REFUSED(input, "add --servers",
                 plan_for(cluster(1e9, 1e9), k_model, 4, 0, {.strategy = "ps_noncolocated"}));
  Profile p = cluster(1e9, 1e9);
  p.cells.clear();
  EXPECT_REFUSED(input, "port_bandwidth", plan_for(p, k_model, 4, 0, {}));
}

TEST(Planner, OnUnequalPortsNoPredictionIsBelowItsBoundAndEqualSharesStayEqual) {
  for_cases(1, support::cases(200), [](Random& random) {
    const std::uint64_t workers = random.whole(2, 6), servers = random.whole(0, 3);
    Profile p = empty_profile("unequal");
    for (std::uint64_t m = 0; m < workers + servers; ++m) {
      const std::string id = "m" + std::to_string(m);
      p.machines.push_back({id, id, 1, 8, 0, "", {id}});
      add_port(p, id, 6.25e6 * static_cast<double>(random.whole(2, 4)));
    }
    const PlanOptions options{.strategy = strategy_names()[random() % 4],
                              .part_bytes = std::uint64_t{1} << random.whole(16, 23)};
    if (options.strategy == "ps_noncolocated" && servers == 0) {
      return;
    }
    SCOPED_TRACE(options.strategy + " " + std::to_string(*options.part_bytes));
    const Plan plan = plan_for(p, k_model, workers, servers, options);
    expect_orderly(plan);
    expect_reads_back(plan);
    expect_equal_shares(plan);
  });
}

TEST(ShippedProfiles, AreCanonicalAndCanBePlannedWith) {
  std::size_t seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(RECKON_SOURCE_DIR "/profiles")) {
    if (entry.path().extension() == ".json") {
      SCOPED_TRACE(entry.path().filename().string());
      const Profile profile = read_profile(entry.path().string());
      if (std::getenv("UPDATE_GOLDEN") != nullptr) {
        write_file(entry.path().string(), canonical_text(profile));
      }
      EXPECT_TRUE(canonical_text(profile) == read_file(entry.path().string()))
          << "not canonical; UPDATE_GOLDEN=1 rewrites it";
      if (profile.endpoint) {
        continue; // what `solve overlap` is for: no machines with ports
      }
      const bool inside = profile.topology.find("m0") != nullptr; // of one machine
      const Plan plan =
          inside ? plan_inside({profile, k_model, {"p", digest_of("p")}, {"w", digest_of("w")}}, {})
                 : plan_for(profile, k_model, 2, 1, {});
      EXPECT_GT(plan.prediction.mid_seconds, 0);
      ++seen;
    }
  }
  EXPECT_GT(seen, 0U);
}

TEST(ReplaceByPlayed, TermsAddUpWhateverIsLonger) {
  Prediction p;
  p.bound_seconds = 1;
  p.lo_seconds = p.mid_seconds = p.hi_seconds = 2;
  p.terms = {{"transport", 1.5}, {"reduction", 0.5}, {"fill", 0}};
  Prediction longer = p, shorter = p;
  replace_by_played(longer, 2.5); // half a second that the formula has no name for
  EXPECT_DOUBLE_EQ(longer.terms[0].seconds, 1.5);
  EXPECT_DOUBLE_EQ(longer.terms[2].seconds, 0.5);
  replace_by_played(shorter, 1.6); // four fifths of what the formula has
  EXPECT_DOUBLE_EQ(shorter.terms[0].seconds, 1.2);
  EXPECT_DOUBLE_EQ(shorter.terms[1].seconds, 0.4);
  EXPECT_DOUBLE_EQ(shorter.terms[2].seconds, 0);
}

TEST(Planner, RacksAreSummedFirstWhenTheirUplinksAreThin) {
  // Two racks of four workers and an aggregator each, ports of 1 GB/s. Flat: up a rack's uplink go
  // at least the four gradients' halves and the other rack's half of the sums, 4 M; by racks it is
  // 2 M / R = M, and an aggregator's port takes 4 M + M = 5 M (equation 17).
  for (const double uplink : {0.1e9, 100e9}) {
    Profile p = empty_profile("racks");
    Roles roles;
    roles.name = "two racks";
    for (const bool worker : {true, false}) {
      for (const std::string rack : {"r0", "r1"}) {
        const std::string id = (worker ? "gpu" : "cpu") + rack;
        const std::uint64_t count = worker ? 4 : 1;
        p.machines.push_back({id, id, count, 8, 0, rack});
        add_rate(p, {.test = "port_bandwidth", .from = id, .transport = "tcp;ofi_rxm"}, 1e9);
        roles.groups.push_back({id, count, worker, true, 1});
        if (worker) {
          add_rate(p, {.test = "uplink_bandwidth", .from = rack}, uplink);
        }
      }
    }
    const Plan plan = make_plan({p, k_model, roles, {}, {}, {}}, {.transport = "tcp;ofi_rxm"});
    const double m = static_cast<double>(k_model.bytes());
    if (uplink < 1e9) {
      EXPECT_EQ(plan.strategy, "rack_hierarchical");
      EXPECT_NEAR(plan.prediction.bound_seconds, m / uplink, 1e-9);
      EXPECT_NEAR(static_cast<double>(plan.ranks[8].ingress_bytes), 5 * m, 0.001 * m);
      EXPECT_EQ(plan.trees.size(), 2U); // one a rack
      EXPECT_DOUBLE_EQ(quantity_of(plan, "rack_uplink_bytes")->value, m);
      EXPECT_NEAR(quantity_of(plan, "rack_port_seconds")->value, 5 * m / 1e9, 0.001 * m / 1e9);
      for (const Candidate& c : plan.candidates) {
        if (c.strategy == "ps_noncolocated") {
          EXPECT_NEAR(c.prediction->busy_seconds(), 4 * m / uplink, 1e-9);
        }
      }
    } else {
      EXPECT_EQ(plan.strategy, "byteps_split");
    }
    EXPECT_GE(plan.prediction.mid_seconds, plan.prediction.bound_seconds * (1 - 1e-9));
  }
}

TEST(Planner, RacksShareTheirSumsEvenlyWhateverTheyAre) {
  // 4 workers and 5 servers by turns in two racks: 2 workers and 3 servers, 2 and 2. Each rack is
  // the root of half, and each of its servers sums its part of all.
  const Plan plan = plan_in_racks(k_model, 4, 5, 2, {});
  double roots[2] = {0, 0}, summed[2] = {0, 0};
  for (const SumTree& tree : plan.trees) {
    roots[tree.root() % 2] += tree.share;
    summed[0] += tree.up[0] == 4 ? tree.share : 0;
    summed[1] += tree.up[1] == 5 ? tree.share : 0;
  }
  EXPECT_NEAR(std::max(std::abs(roots[0] - 0.5), std::abs(roots[1] - 0.5)), 0, 1e-12);
  EXPECT_NEAR(std::max(std::abs(summed[0] - 1.0 / 3), std::abs(summed[1] - 0.5)), 0, 1e-12);
  expect_orderly(plan);
  expect_reads_back(plan);
}

TEST(Planner, SumsOverRacksSayWhyTheyDoNotApply) {
  EXPECT_REFUSED(input, "rack_hierarchical",
                 plan_for(cluster(1e9, 1e9), k_model, 4, 2, {.strategy = k_rack_hierarchical}));
  EXPECT_REFUSED(input, "rack_hierarchical",
                 plan_for(one_machine(), k_model, 4, 0, {.strategy = k_rack_hierarchical}));
  EXPECT_REFUSED(input, "workers", plan_in_racks(k_model, 4, 2, 1, {}));
  EXPECT_REFUSED(input, "--async",
                 plan_in_racks(k_model, 4, 2, 2, {.fixed_point = FixedPointRequest{}}));
  EXPECT_REFUSED(input, "600 trees", plan_in_racks(k_model, 600, 0, 2, {}));
}

TEST(Planner, PriorityLeavesLessTrafficExposed) {
  // 20 equal layers, 100 MB at 100 MB/s beside 0.5 s of backward and 0.5 s of forward pass: in
  // gradient order the first layer's sum comes last, and the whole forward pass after it. By
  // priority the forward pass goes on while sums still come.
  const Workload model = equal_tensors(20, 1'250'000);
  std::map<Order, double> seconds;
  for (const Order order : {Order::gradient, Order::priority}) {
    const PlanOptions options{.strategy = "byteps_split",
                              .forward_seconds = 0.5,
                              .backward_seconds = 0.5,
                              .order = order};
    const Plan plan = plan_for(cluster(1e8, 1e8), model, 4, 4, options);
    seconds[order] = plan.prediction.mid_seconds;
    EXPECT_NEAR(plan.prediction.terms.at(0).seconds, 1.0, 1e-9);
    EXPECT_NEAR(plan.prediction.terms.at(1).seconds, plan.prediction.mid_seconds - 1, 1e-9);
  }
  // First gradient at 0.025, then 1 s of traffic, then the forward pass: 1.525 and some filling.
  EXPECT_NEAR(seconds[Order::gradient], 1.525, 0.03);
  EXPECT_LT(seconds[Order::priority], 1.15);
}

TEST(Planner, LanesKeepUpWithThePort) {
  const auto lanes = [](double sums, const PlanOptions& options, std::uint64_t workers,
                        std::uint64_t servers, int asked) {
    Profile p = cluster(1e9, 1e9);
    p.cells.push_back(sum_rate("gpu", 1, sums));
    return plan_for(p, k_model, workers, servers, options, asked).ranks.front().lanes;
  };
  // All ranks have lanes for the strategy that needs most. A ring on 8 workers sums 7 M/8 in the
  // first half of its 2 * 7 M/8 at 1 GB/s: at 0.3 GB/s a thread that is 1 / 0.3 = 3.3 -> 4 lanes.
  EXPECT_EQ(lanes(0.3e9, {}, 8, 0, 0), 4);
  EXPECT_EQ(lanes(0.3e9, {}, 8, 8, 0), 4);
  EXPECT_EQ(lanes(0.3e9, {}, 8, 8, 5), 5);
  // One asynchronous server adds 4 gradients M and copies the latest for each: 8 M at 0.6 GB/s
  // against 4 M at 1 GB/s, 3.3. Colocated, each worker does so with quarters, 2 M, and copies M and
  // subtracts M for its changes: 4 M against the 3/2 M that its port sends, 4.4 -> 5 lanes.
  EXPECT_EQ(lanes(0.6e9,
                  {.strategy = "ps_noncolocated", .optimizer = Optimizer::sgd, .async_steps = 2}, 4,
                  1, 0),
            5);
}

TEST(Planner, LanesOfATorusKeepUpWithThePort) {
  // 2x2x2: 1/2 M locally, then 1/4 and 1/8 of it (or 3/8 scattered), each way round: of 7/4 M that
  // come in 7/8 M are added. At 0.3 GB/s a thread that is 0.5 / 0.3 = 1.7 -> 2 lanes.
  Profile p = cluster(1e9, 1e9);
  p.cells.push_back(sum_rate("gpu", 1, 0.3e9));
  for (const auto& [asked, lanes] : {std::pair(0, 2), {3, 3}}) {
    const Roles roles = default_roles(p, 8, 0, asked);
    const Plan plan =
        plan_torus(inputs_of(p, k_model, roles), {.strategy = "torus_scatter"}, {2, 2, 2});
    EXPECT_EQ(plan.ranks.front().lanes, lanes);
  }
}

/// sum_and_send of 2 operands: streaming over cached stores.
void add_stores(Profile& p, std::uint64_t bytes, double ratio) {
  for (const auto& [stores, rate] : {std::pair("cached", 5e9), {"streaming", 5e9 * ratio}}) {
    add_rate(p,
             {.test = "sum_and_send",
              .from = "cpu",
              .bytes = bytes,
              .threads = 1,
              .sources = 2,
              .dtype = "fp32",
              .operation = stores},
             rate);
  }
}

double value_of(const Plan& plan, const std::string& name) {
  const Quantity* const quantity = quantity_of(plan, name);
  EXPECT_NE(quantity, nullptr) << name;
  return quantity != nullptr ? quantity->value : 0;
}

/// One whose equation has these words.
bool has_quantity(const Plan& plan, const std::string& words) {
  return std::any_of(plan.quantities.begin(), plan.quantities.end(), [&](const Quantity& q) {
    return q.equation.find(words) != std::string::npos;
  });
}

TEST(Planner, SumsOfAServerAreWrittenWithTheStoresThatWereFasterAtItsPartSize) {
  // Ports of 10 GB/s and sums at 1 GB/s: two workers' M is one M of operand bytes to add, and that
  // is what the time is, but for filling: M / 1 GB/s, or M / 1.2 GB/s with stores that gain 1.2.
  Profile p = cluster(10e9, 10e9);
  p.cells.push_back(sum_rate("", 1, 1e9));
  const auto planned = [&](const char* strategy, std::uint64_t part) {
    return plan_for(p, k_model, 2, 1, {.strategy = strategy, .part_bytes = part}, 1);
  };
  const double before = planned("ps_noncolocated", 1U << 20U).prediction.mid_seconds;
  add_stores(p, 32U << 10U, 0.7);
  add_stores(p, 1U << 20U, 1.2);
  const Plan large = planned("ps_noncolocated", 1U << 20U);
  EXPECT_EQ(large.stores, Stores::streaming);
  EXPECT_NEAR(before / large.prediction.mid_seconds, 1.2, 0.02);
  const Plan small = planned("ps_noncolocated", 32U << 10U);
  EXPECT_EQ(small.stores, Stores::cached);
  EXPECT_DOUBLE_EQ(value_of(small, "streaming_over_cached_stores"), 0.7);
  EXPECT_TRUE(has_quantity(small, "cached stores are taken"));
  // A worker that serves adds to its own gradient: nothing is gained by going around the caches.
  EXPECT_EQ(planned("ps_colocated", 1U << 20U).stores, Stores::cached);
  // A gain that comes and goes with what else the machine does is none.
  p = cluster(10e9, 10e9);
  add_stores(p, 1U << 20U, 1.04);
  EXPECT_EQ(planned("ps_noncolocated", 1U << 20U).stores, Stores::cached);
}

TEST(Planner, LanesAreAMultipleOfThePortsOfAMachine) {
  // Two ports were measured on each machine and one lane would sum fast enough.
  Profile p = cluster(2e9, 2e9);
  for (const char* from : {"gpu/port0", "gpu/port1", "cpu/port0", "cpu/port1"}) {
    add_single_port(p, from, 1e9);
  }
  EXPECT_EQ(plan_for(p, k_model, 4, 2, {}, 0).ranks.front().lanes, 2);
  EXPECT_EQ(plan_for(p, k_model, 4, 2, {}, 3).ranks.front().lanes, 3); // as asked
  PlanOptions another{.transport = "tcp"};
  another.what_if.worker_port_bytes_per_s = 1e9;
  EXPECT_EQ(plan_for(p, k_model, 4, 2, another, 0).ranks.front().lanes, 1);
}

TEST(Planner, AServerWithTenPortsCountsAllOfThemAndGivesEachLaneOne) {
  // Workers with a port of 1 GB/s; a server that three of them tried together at 3 GB/s, which was
  // all that they have, and each of its ten ports alone at 0.8 GB/s: 8 GB/s. Eight workers send M
  // at 1 GB/s and all their M go into 8 GB/s: the same time.
  Profile p = cluster(1e9, 3e9);
  for (Cell& cell : p.cells) {
    if (cell.key.test == "port_bandwidth" && cell.key.from == "cpu") {
      cell.ceiling = Ceiling{k_peers_ceiling, 3e9};
    }
  }
  for (int i = 0; i < 10; ++i) {
    const std::string id = fmt::format("cpu/port{}", i);
    add_single_port(p, id, 0.8e9);
    p.topology.objects.push_back({.id = id,
                                  .kind = ObjectKind::nic,
                                  .parent = i < 5 ? "cpu" : "cpu/numa1",
                                  .name = fmt::format("eth{}", i)});
  }
  p.topology.objects.push_back({.id = "cpu/numa1",
                                .kind = ObjectKind::numa_node,
                                .parent = "cpu",
                                .os_index = 1,
                                .cpus = {4, 5}});
  const PlanOptions options{.strategy = "ps_noncolocated"};
  const Plan plan = plan_for(p, k_model, 8, 1, options, 0);
  const PlanRank& server = plan.ranks[8];
  EXPECT_DOUBLE_EQ(server.port_bytes_per_second, 8e9);
  EXPECT_EQ(server.lanes % 10, 0);
  ASSERT_EQ(server.lane_places.size(), static_cast<std::size_t>(server.lanes));
  EXPECT_EQ(server.lane_places[5], (LanePlace{"eth5", 1, 4}));
  EXPECT_EQ(server.lane_places[6], (LanePlace{"eth6", 1, 5}));
  EXPECT_TRUE(plan.ranks[0].lane_places.empty()); // one port
  EXPECT_NEAR(plan.prediction.bound_seconds, static_cast<double>(k_model.bytes()) / 1e9, 1e-9);

  // One tensor that is not cut has one lane, and so one port: all eight send it there, 8 M at 0.8
  // GB/s, and then its sum takes as long to leave.
  PlanOptions whole = options;
  whole.cutting = Cutting::tensors;
  whole.part_bytes = 64U << 20U;
  EXPECT_NEAR(plan_for(p, k_model, 8, 1, whole, 10).prediction.mid_seconds,
              2 * 8 * static_cast<double>(k_model.bytes()) / 0.8e9, 0.02);

  // Had the workers been able to bring more, 3 GB/s would be what its ports share.
  for (Cell& cell : p.cells) {
    if (cell.ceiling) {
      cell.ceiling->value = 8e9;
    }
  }
  EXPECT_DOUBLE_EQ(plan_for(p, k_model, 8, 1, options, 0).ranks[8].port_bytes_per_second, 3e9);
  // Of one lane the port still does what it does alone; all lanes together have 3 GB/s.
  EXPECT_NEAR(plan_for(p, k_model, 8, 1, whole, 10).prediction.mid_seconds,
              2 * 8 * static_cast<double>(k_model.bytes()) / 0.8e9, 0.02);
  const Prediction all = plan_for(p, k_model, 8, 1, options, 10).prediction;
  EXPECT_NEAR(all.busy_seconds(), 8 * static_cast<double>(k_model.bytes()) / 3e9, 1e-9);
  EXPECT_GE(all.mid_seconds, all.busy_seconds());
  EXPECT_LE(all.mid_seconds, 1.05 * all.busy_seconds());
}

TEST(Planner, NoCandidateBeatsItsBoundOnUnequalPortsAndEveryPlanReadsBack) {
  // One worker's port has half of the others': dealt by the ports, colocated servers would be done
  // before the equal shares that equation 3 assumes.
  for (const double slow : support::values({0.5e9, 0.9e9, 0.99e9})) {
    for (const std::uint64_t others : {1U, 3U, 6U}) {
      Roles roles;
      roles.name = "one slow worker";
      roles.groups = {{"gpu", 1, true, true, 1}, {"cpu", others, true, true, 1}};
      for (const std::uint64_t part : {65536U, 1U << 20U, 5U << 20U}) {
        for (const char* strategy : {"auto", "ring", "ps_colocated", "byteps_split"}) {
          SCOPED_TRACE(testing::Message() << slow << " " << others << " " << part << strategy);
          const Plan plan = make_plan(inputs_of(cluster(slow, 1e9), k_model, roles),
                                      {.strategy = strategy, .part_bytes = part});
          expect_orderly(plan);
          expect_reads_back(plan);
          expect_equal_shares(plan);
        }
      }
    }
  }
}

TEST(CostModel, ShortWritesAreHeldAgainstThePortNotAgainstALongWriteThatSeemsFaster) {
  // A port of 1 GB/s. Writes of 64 KiB reach 0.99 of it. The few of 4 MiB seem to reach 1.06: short
  // ones are still 1 % slower than the port, not 6.6 %. Where one connection cannot fill the port,
  // its own best counts: 0.495 of 0.5.
  for (const double connection : {1.0, 0.5}) {
    Profile p = cluster(1e9, 1e9);
    const double longest = connection == 1.0 ? 1.06 : 0.5;
    for (const auto& [bytes, part] : {std::pair(65536U, 0.99 * connection), {4194304U, longest}}) {
      add_time(p,
               {.test = "fabric_write",
                .from = "gpu",
                .to = "gpu",
                .bytes = bytes,
                .transport = "verbs",
                .direction = "two_way"},
               bytes / (part * 1e9));
    }
    const CostModel model(p, default_roles(p, 2, 0, 1), "verbs", {});
    EXPECT_NEAR(model.port_efficiency(65536), 0.99, 0.011) << connection;
    EXPECT_LT(model.port_efficiency(65536), 1);
    EXPECT_NEAR(model.port_efficiency(4194304), 1, 0.012);
  }
}

TEST(CostModel, KnowsTheLongestWayWhicheverRankIsFirst) {
  Profile p = cluster(1e9, 1e9);
  add_time(p, {.test = "fabric_write_latency", .from = "gpu", .transport = "verbs"}, 1e-3);
  add_time(p, {.test = "fabric_write_latency", .from = "cpu", .transport = "verbs"}, 5e-3);
  const CostModel near(p, default_roles(p, 3, 0, 1), "verbs", {});
  EXPECT_DOUBLE_EQ(near.latency_s(), 1e-3);
  const CostModel both(p, default_roles(p, 3, 1, 1), "verbs", {});
  EXPECT_DOUBLE_EQ(both.latency_s(), 5e-3);
  EXPECT_DOUBLE_EQ(both.mean_latency_s(), 2e-3); // 3 of 1 ms and 1 of 5 ms
  // What was measured of the ways between these machines comes first; others' do not count.
  add_time(p, {.test = "pair_latency", .from = "gpu", .to = "cpu", .transport = "verbs"}, 2e-3);
  add_time(p, {.test = "pair_latency", .from = "cpu", .to = "gpu", .transport = "verbs"}, 4e-3);
  add_time(p, {.test = "pair_latency", .from = "cpu", .to = "tpu", .transport = "verbs"}, 9e-3);
  const CostModel pairs(p, default_roles(p, 3, 1, 1), "verbs", {});
  EXPECT_DOUBLE_EQ(pairs.latency_s(), 4e-3);
  EXPECT_DOUBLE_EQ(pairs.mean_latency_s(), 3e-3);
}

TEST(CostModel, TakesTheFastestTransportThatAllMachinesHave) {
  Profile p = test::cluster(2e9, 2e9); // over verbs, which comes after tcp
  for (const char* machine : {"gpu", "cpu"}) {
    add_rate(p, {.test = "port_bandwidth", .from = machine, .transport = "tcp"}, 1e9);
  }
  // Faster still, of one machine alone.
  add_rate(p, {.test = "port_bandwidth", .from = "gpu", .transport = "efa"}, 3e9);
  const CostModel both(p, default_roles(p, 2, 1, 1), "", {});
  EXPECT_EQ(both.transport(), "verbs");
  const CostModel one(p, default_roles(p, 2, 0, 1), "", {});
  EXPECT_EQ(one.transport(), "efa");
}

TEST(CostModel, ComparesTransportsOfOneMachineByColdWritesAlone) {
  Profile p = empty_profile("one machine");
  p.machines = {{"m", "", 1, 1, 0, "", {}}};
  const auto moves = [&](const char* transport, const char* state, double rate) {
    add_rate(p,
             {.test = "fabric_aggregate",
              .from = "m",
              .to = "m",
              .bytes = 1U << 20U,
              .pairs = 1,
              .transport = transport,
              .direction = "two_way",
              .state = state},
             rate);
  };
  moves("host", "cold", 9e9);
  moves("shm", "cold", 8e9);
  moves("shm", "cached_source", 14e9);
  EXPECT_EQ(CostModel(p, default_roles(p, 2, 0, 1), "", {}).transport(), "host");
}

TEST(CostModel, TakesTheMeasuredLatencyWherePortsAreMadeUp) {
  Profile p = empty_profile("latencies alone");
  p.machines = {{"m", "", 2, 1, 0, "", {"a", "b"}}};
  for (const auto& [transport, seconds] : {std::pair("mpi", 7e-6), {"tcp", 30e-6}}) {
    add_time(p, {.test = "fabric_write_latency", .from = "m", .transport = transport}, seconds);
  }
  const CostModel model(p, default_roles(p, 2, 0, 1), "", {.worker_port_bytes_per_s = 1e9});
  EXPECT_EQ(model.transport(), "mpi");
  EXPECT_EQ(model.latency_s(), 7e-6);
}

TEST(Planner, ARingOnUnequalPortsHasTheLeastWindowThatIsAsGoodAsTheOthers) {
  PlanOptions options{.strategy = "ring"};
  // Parts as tensors make them need more than equal ones: a short one leaves the window as soon as
  // a long one does.
  std::vector<Tensor> mixed;
  for (std::uint64_t i = 0; i < 150; ++i) {
    mixed.push_back({"t" + std::to_string(i), i % 3 == 0 ? 20'000U : 100U, DType::fp32});
  }
  const Workload model = workload(mixed);
  Roles roles;
  for (const std::uint64_t n : support::values({4U, 2U, 7U})) {
    for (const double slow : {1e9, 0.98e9, 0.75e9}) {
      roles.groups = {{"gpu", 1, true, true, 1}, {"cpu", n - 1, true, true, 1}};
      for (const bool tensors : {false, true}) {
        SCOPED_TRACE(testing::Message() << n << " workers, " << slow << ", tensors " << tensors);
        options.cutting = tensors ? Cutting::tensors : Cutting::fused;
        options.part_bytes = 65536;
        const auto plan_with = [&](std::optional<std::uint64_t> window) {
          PlanOptions given = options;
          given.window_parts = window;
          return make_plan({cluster(slow, 1e9), model, roles, {}, {}, {}}, given);
        };
        const Plan plan = plan_with(std::nullopt);
        EXPECT_GE(plan.prediction.mid_seconds, plan.prediction.bound_seconds * (1 - 1e-9));
        // 1 MiB = 16 parts of 64 KiB over all ranks; 4 n = 8, 16 and 28 parts a rank where ports
        // are as good as equal.
        const std::uint64_t first = slow == 0.75e9 ? 16 / n : std::max<std::uint64_t>(8, 4 * n);
        if (plan.window_parts != first) {
          EXPECT_GT(plan.window_parts, first);
          EXPECT_GT(plan_with(plan.window_parts / 2).prediction.mid_seconds,
                    plan.prediction.mid_seconds);
        }
        for (std::uint64_t window = first; window <= 64 * first; window *= 2) {
          EXPECT_GE(plan_with(window).prediction.mid_seconds, 0.998 * plan.prediction.mid_seconds)
              << window;
        }
      }
    }
  }
}

TEST(DefaultRoles, PutRankIOnMachineIOfAMeasuredCluster) {
  Profile profile = empty_profile("measured");
  profile.machines = {{"m0", "", 1, 1, 0, "", {"a"}},
                      {"m1", "", 3, 1, 0, "", {"b", "c", "d"}},
                      {"m2", "", 2, 1, 0, "", {"e", "f"}}};
  // Workers on a, b; servers on c, d, e: m1 is cut where the servers begin.
  EXPECT_EQ(default_roles(profile, 2, 3, 1).groups,
            (std::vector<RoleGroup>{{"m0", 1, true, true, 1},
                                    {"m1", 1, true, true, 1},
                                    {"m1", 2, false, true, 1},
                                    {"m2", 1, false, true, 1}}));
  EXPECT_EQ(default_roles(profile, 6, 0, 1).groups.size(), 3U);
  EXPECT_ERROR(default_roles(profile, 4, 3, 1));
}

TEST(DefaultRoles, WithPortsOfTheirOwnMoreRanksAreOnMachinesLikeTheFirst) {
  Profile profile = empty_profile("measured");
  profile.machines = {{"m", "", 2, 1, 0, "", {"a", "b"}}};
  EXPECT_EQ(default_roles(profile, 3, 1, 1, true).groups,
            (std::vector<RoleGroup>{
                {"m", 2, true, true, 1}, {"m", 1, true, true, 1}, {"m", 1, false, true, 1}}));
  const CostModel model(profile, default_roles(profile, 3, 1, 1, true), "",
                        {.worker_port_bytes_per_s = 1e9});
  EXPECT_FALSE(model.one_machine());
  EXPECT_EQ(model.ranks().size(), 4U);
}

/// An optimizer_step cell of all optimizers: `bytes_per_s` of parameters with `threads` threads.
void add_steps(Profile& profile, const std::string& machine, int threads, double bytes_per_s) {
  for (const Optimizer o :
       {Optimizer::sgd, Optimizer::momentum, Optimizer::rmsprop, Optimizer::adam}) {
    add_rate(profile,
             {.test = "optimizer_step",
              .from = machine,
              .threads = threads,
              .operation = std::string(name_of(o))},
             bytes_per_s);
  }
}

PlanOptions split_with_step(std::optional<UpdatePlace> place = std::nullopt) {
  return {.strategy = "byteps_split",
          .part_bytes = 1U << 20U,
          .optimizer = Optimizer::adam,
          .update_at = place};
}

/// Machines of 1 GB/s whose optimizers step as many parameters.
Profile stepping(double worker_bytes_per_s, double server_bytes_per_s) {
  Profile profile = cluster(1e9, 1e9);
  add_steps(profile, "gpu", 1, worker_bytes_per_s);
  add_steps(profile, "cpu", 1, server_bytes_per_s);
  return profile;
}

TEST(PlannerUpdate, GoesWhereItTakesLessTime) {
  // n = k = 4 over 1 GB/s: servers own M/4 each, T = M/B = 67.1 ms. At 0.5 GB/s of parameters a
  // server steps its 16 MiB in 33.6 ms, beside the traffic; only the last part, 1 MiB, comes on
  // top: 2.097 ms. A worker steps 64 MiB in 134.2 ms: 67.1 ms beyond its traffic, and the last
  // part.
  const Profile profile = stepping(0.5e9, 0.5e9);
  const Plan plan = plan_for(profile, k_model, 4, 4, split_with_step());
  ASSERT_TRUE(plan.update.has_value());
  EXPECT_EQ(plan.update->place, UpdatePlace::server);
  EXPECT_EQ(plan.update->optimizer, Optimizer::adam);
  const double last = 1048576 / 0.5e9;
  const double server = value_of(plan, "update_at_server_seconds");
  const double worker = value_of(plan, "update_at_worker_seconds");
  EXPECT_NEAR(server, last, 0.5 * last);
  EXPECT_NEAR(worker, 67108864 / 0.5e9 - 67108864 / 1e9, 3 * last);
  // The margin is of the whole iteration: that of the plan without the step, and what it adds.
  PlanOptions without = split_with_step();
  without.optimizer.reset();
  const double sums = plan_for(profile, k_model, 4, 4, without).prediction.mid_seconds;
  EXPECT_NEAR(plan.prediction.mid_seconds, sums + server, 1e-9);
  EXPECT_NEAR(value_of(plan, "update_margin_ratio"), (sums + worker) / (sums + server) - 1, 1e-9);
}

TEST(PlannerUpdate, EachMachineHasItsOwnRate) {
  const Profile profile = stepping(500e9, 0.1e9); // workers' steps are fast, as BytePS's GPUs'
  const Plan plan = plan_for(profile, k_model, 4, 4, split_with_step());
  EXPECT_EQ(plan.update->place, UpdatePlace::worker);
  const Plan asked = plan_for(profile, k_model, 4, 4, split_with_step(UpdatePlace::server));
  EXPECT_EQ(asked.update->place, UpdatePlace::server);
  // 16 MiB at 0.1 GB/s: 167.8 ms, 100.7 ms beyond the traffic.
  EXPECT_NEAR(value_of(asked, "update_at_server_seconds"), 16777216 / 0.1e9 - 67108864 / 1e9,
              1.5 * 1048576 / 0.1e9);                   // and a part or so
  EXPECT_LT(value_of(asked, "update_margin_ratio"), 0); // the other place would be faster
}

TEST(PlannerUpdate, OnOneMachineEveryStepCostsItsTime) {
  // Two threads step 2 GB/s together: 64 MiB once at the owners, or at both workers, not a server.
  Profile profile = one_machine();
  add_steps(profile, "m0", 2, 2e9);
  const Plan plan = plan_for(profile, k_model, 2, 1, split_with_step());
  EXPECT_EQ(plan.update->place, UpdatePlace::server);
  EXPECT_NEAR(value_of(plan, "update_at_server_seconds"), 67108864 / 2e9, 1e-9);
  EXPECT_NEAR(value_of(plan, "update_at_worker_seconds"), 2 * 67108864 / 2e9, 1e-9);
}

/// One cell each of what copies take: 1 MiB by one thread, and STREAM with `threads`.
void add_copies(Profile& profile, double bytes_per_s, int threads, double stream_bytes_per_s) {
  add_time(profile,
           {.test = "host_memcpy",
            .from = "m0",
            .to = "m0",
            .bytes = 1048576,
            .threads = 1,
            .state = "cold"},
           1048576 / bytes_per_s);
  add_rate(profile, {.test = "stream_copy", .from = "m0", .threads = threads}, stream_bytes_per_s);
}

TEST(PlannerUpdate, ACheckpointCostsItsCopiesOnOneMachine) {
  // Adam: parameters and two states, 3 x 64 MiB in all, wherever the step is made. Two threads at 4
  // GB/s would copy 8 GB/s; STREAM's 12 GB/s are 6 GB/s of copied bytes.
  Profile profile = one_machine();
  add_copies(profile, 4e9, 2, 12e9);
  for (const UpdatePlace place : {UpdatePlace::server, UpdatePlace::worker}) {
    const Plan plan = plan_for(profile, k_model, 2, 0, split_with_step(place));
    EXPECT_NEAR(value_of(plan, "checkpoint_seconds"), 3 * 67108864 / 6e9, 1e-9) << name_of(place);
  }
}

TEST(PlannerUpdate, ACheckpointCostsNothingWhileLanesWaitForThePort) {
  // n = k = 4 over 1 GB/s: 67.1 ms of traffic. A server saves 3 x 16 MiB: at 4 GB/s in 12.6 ms,
  // beside it; at 0.5 GB/s in 100.7 ms, 33.6 ms more than the port takes (sums and steps are free
  // in this profile).
  for (const bool slow : {false, true}) {
    Profile profile = cluster(1e9, 1e9);
    add_copies(profile, slow ? 0.5e9 : 4e9, 1, 100e9);
    const Plan plan = plan_for(profile, k_model, 4, 4, split_with_step(UpdatePlace::server));
    EXPECT_NEAR(value_of(plan, "checkpoint_seconds"),
                slow ? 3 * 16777216 / 0.5e9 - 67108864 / 1e9 : 0, slow ? 1e-3 : 1e-9);
  }
}

TEST(PlannerUpdate, WithoutARateItIsFree) {
  const Plan plan = plan_for(cluster(1e9, 1e9), k_model, 4, 4, split_with_step());
  EXPECT_EQ(plan.update->place, UpdatePlace::worker);
  EXPECT_EQ(value_of(plan, "update_at_server_seconds"), 0);
  EXPECT_FALSE(has_quantity(plan, "optimizer_step"));
}

TEST(PlannerUpdate, EveryCandidateMakesTheStep) {
  PlanOptions options = split_with_step();
  options.strategy = "auto";
  int steps = 0;
  for (const Candidate& c : plan_for(stepping(0.5e9, 0.5e9), k_model, 4, 4, options).candidates) {
    if (c.prediction) {
      EXPECT_EQ(c.prediction->terms.back().name, "update") << c.strategy;
      ++steps;
    }
  }
  EXPECT_EQ(steps, 4); // all but the hierarchy: there are no racks
}

/// Machines in this order, all pairs at 1 GB/s but a -> b at 0.1.
Profile one_slow_way(const std::vector<std::string>& names) {
  Profile p = empty_profile("slow way");
  for (const std::string& from : names) {
    p.machines.push_back({from, from, 1, 8, 0});
    add_port(p, from, 1e9);
    for (const std::string& to : names) {
      if (from != to) {
        add_rate(p,
                 {.test = "pair_bandwidth",
                  .from = from,
                  .to = to,
                  .transport = "verbs",
                  .direction = "one_way"},
                 from == "a" && to == "b" ? 0.1e9 : 1e9);
        add_time(p, {.test = "pair_latency", .from = from, .to = to, .transport = "verbs"}, 1e-5);
      }
    }
  }
  return p;
}

TEST(Planner, ARingAvoidsASlowWayWhateverTheOrderOfTheMachines) {
  PlanOptions options;
  options.strategy = "ring";
  const Workload w = equal_tensors(8, 1 << 20);
  const Plan best = plan_for(one_slow_way({"a", "b", "c", "d"}), w, 4, 0, options);
  EXPECT_EQ(best.ring_order.size(), 4U);
  options.ring_order = RingOrdering::given;
  const Plan given = plan_for(one_slow_way({"a", "b", "c", "d"}), w, 4, 0, options);
  EXPECT_TRUE(given.ring_order.empty());
  EXPECT_GT(given.prediction.mid_seconds, 5 * best.prediction.mid_seconds);
  EXPECT_LE(best.prediction.bound_seconds, best.prediction.mid_seconds);
  options.ring_order = RingOrdering::best;
  for (const auto& names : {std::vector<std::string>{"d", "a", "c", "b"}, {"c", "b", "a", "d"}}) {
    const Plan other = plan_for(one_slow_way(names), w, 4, 0, options);
    EXPECT_NEAR(other.prediction.mid_seconds / best.prediction.mid_seconds, 1, 0.002);
    EXPECT_NEAR(other.prediction.bound_seconds / best.prediction.bound_seconds, 1, 1e-9);
  }
}

} // namespace
} // namespace reckon
