// SPDX-License-Identifier: Apache-2.0
//
// An all-reduce over a torus, played by the planner and simulated, beside ACE's closed form.

#include "equations/torus.hpp"
#include "fixtures.hpp"
#include "strategies/lower.hpp"
#include "strategies/play.hpp"
#include "strategies/prediction.hpp"
#include "strategies/torus/network.hpp"
#include "support/torus_plans.hpp"

#include <tuple>

namespace reckon {
namespace {

using namespace test;

SimNetwork links(const Plan& plan, const Endpoint& endpoint) {
  const Between between = torus_between(endpoint, plan.torus->shape);
  return {between.network, between.names, 0, [](std::size_t, const Op&) { return 0.0; }};
}

TEST(SimulatedTorus, ALonePartTakesEachHopOfEachPhase) {
  RECKON_NEEDS_SIMULATOR();
  // As in the planner's play (strategies/torus_test.cpp): 2 and 3 hops of 20 + 1 and 40 + 2 ms,
  // there and back, and the only one of 40 + 4 ms.
  const Endpoint endpoint = torus_endpoint({100e6, 50e6, 25e6}, {1e-3, 2e-3, 4e-3});
  const Plan plan = torus_plan("torus", {3, 4, 2}, 1, 1'000'000, 1);
  const double expected = 2 * (2 * 0.021 + 3 * 0.042 + 0.044);
  EXPECT_NEAR(simulated(build_graph(lower(plan), links(plan, endpoint))).seconds, expected,
              0.001 * expected);
}

TEST(SimulatedTorus, EachPartMoreCostsWhatTheBusiestRingsNeed) {
  RECKON_NEEDS_SIMULATOR();
  // Without latency the time of 2 k parts less that of k is k parts' at the rate of equation 44;
  // filling is in both. 4x4x4 is Table V of ACE: 300 GB/s.
  for (const auto& [shape, parts, gb_s] :
       {std::tuple(std::array<std::uint64_t, 3>{4, 4, 4}, 512U, 300.0),
        std::tuple(std::array<std::uint64_t, 3>{4, 2, 2}, 1024U, 400.0),
        std::tuple(std::array<std::uint64_t, 3>{2, 3, 1}, 576U, 200.0)}) {
    // 2x3x1: 1 byte sent locally and 2/3 vertically for each, at 400 and 50 GB/s: the vertical
    // rings need 2/3 / 50 s for 5/3 bytes, 125 GB/s; with 80 GB/s it is 200.
    const Endpoint endpoint = torus_endpoint({400e9, shape[2] == 1 ? 80e9 : 50e9, 50e9}, {0, 0, 0});
    const Torus torus{shape,
                      {endpoint.rings[0].bytes_per_second, endpoint.rings[1].bytes_per_second,
                       endpoint.rings[2].bytes_per_second}};
    const TorusTraffic traffic = torus_all_reduce(torus);
    EXPECT_NEAR(torus_limit(torus, traffic).bytes_per_s, gb_s * 1e9, 1);
    double simulated_s[2] = {}, played_s[2] = {};
    for (const std::uint64_t times : {1U, 2U}) {
      const Plan plan = torus_plan("torus", shape, times * parts, 65536, parts);
      const SimNetwork network = links(plan, endpoint);
      simulated_s[times - 1] = simulated(build_graph(lower(plan), network)).seconds;
      PlayNetwork play_network;
      static_cast<StationNetwork&>(play_network) = network.stations;
      played_s[times - 1] = play(lower(plan), play_network, network.op_seconds).total_seconds;
    }
    const double sent = traffic.sent_bytes * static_cast<double>(parts) * 65536;
    EXPECT_NEAR(sent / (simulated_s[1] - simulated_s[0]), gb_s * 1e9, 0.001 * gb_s * 1e9);
    EXPECT_NEAR(sent / (played_s[1] - played_s[0]), gb_s * 1e9, 0.001 * gb_s * 1e9);
    EXPECT_NEAR(simulated_s[1], played_s[1], 0.05 * played_s[1]);
  }
}

TEST(SimulatedTorus, ShortPartsTakeWhatIsPredictedFromTheirBeginning) {
  RECKON_NEEDS_SIMULATOR();
  // Table V of ACE at 94 %, with its latencies and without, less than half of the writes played.
  for (const double latency : {0.0, 1.0}) {
    const Endpoint endpoint =
        torus_endpoint({376e9, 47e9, 47e9}, {latency * 72e-9, latency * 402e-9, latency * 402e-9});
    for (const std::uint64_t part_bytes : {4096U, 16384U}) {
      const Plan plan = torus_plan("torus", {4, 2, 2}, 2400, part_bytes, 64);
      const double writes = torus_all_reduce({{4, 2, 2}, {1, 1, 1}}).sent_bytes * 16 * 2400;
      const std::optional<double> predicted = played_seconds(
          plan, torus_between(endpoint, plan.torus->shape),
          [](std::size_t, const Op&) { return 0.0; }, writes,
          busiest_station(lower(together(plan)), torus_between(endpoint, plan.torus->shape))
              .seconds,
          {0.45 * writes, 1e18, true});
      ASSERT_TRUE(predicted);
      const double expected = simulated(build_graph(lower(plan), links(plan, endpoint))).seconds;
      EXPECT_NEAR(*predicted, expected, 0.025 * expected)
          << "parts of " << part_bytes << ", latency " << latency;
    }
  }
}

} // namespace
} // namespace reckon
