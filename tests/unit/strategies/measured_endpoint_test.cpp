// SPDX-License-Identifier: Apache-2.0
#include "strategies/endpoint/measured.hpp"

#include "fixtures.hpp"
#include "overlap_fixtures.hpp"
#include "support/refusals.hpp"

#include <gtest/gtest.h>

namespace reckon {
namespace {

/// Beside gemm_256 on cores of their own 1.25 and 1.5 times, on all 2 and 4 times.
void add_factors(Profile& profile, const std::vector<int>& threads) {
  const auto add = [&](const std::string& test, int of, std::uint64_t bytes,
                       const std::string& operation, double seconds) {
    CellKey key{
        .test = test, .from = "node0", .bytes = bytes, .threads = of, .operation = operation};
    profile.cells.push_back(test::published(key, "seconds", seconds));
    if (bytes > 0 && !operation.empty() && of != threads.front() && threads.front() != 1) {
      profile.cells.back().status = CellStatus::skipped;
    }
  };
  for (const int of : {1, 2}) {
    const bool own = of == 1;
    add("contention_compute", of, 0, "gemm_256", 1);
    add("contention_compute", of, 1000, "gemm_256", own ? 1.25 : 2);
    add("contention_communication", of, 1000, "", 1);
    add("contention_communication", of, 1000, "gemm_256", own ? 1.5 : 4);
  }
}

Workload workload() {
  Computation ms;
  ms.seconds = 1e-3;
  Workload w = test::workload({{"b", 1'250'000}, {"a", 2'500'000}});
  w.layers = {{"A", {"a"}, ms, {}, ms, {}}, {"B", {"b"}, ms, ms, ms, {}}};
  return w;
}

double iteration_ms(const MeasuredEndpoint& measured, const std::string& name) {
  const auto with_factors = [&](OverlapQuestion& q) { q.contention = measured.factors.at(name); };
  return 1e3 * test::overlap_answer(workload(), measured.endpoint, name, with_factors)
                   .timeline.iteration_s;
}

TEST(MeasuredEndpoint, HasAConfigurationForEachPairOfFactors) {
  // Two machines with 10 GB/s: 5 MB of b take 0.5 ms, beside B's input and A's weights; 10 MB of a
  // take 1 ms, exposed; 5 ms of passes.
  Profile profile = test::cluster(10e9, 10e9);
  add_factors(profile, {1, 2});
  const MeasuredEndpoint measured = measured_endpoint(profile, "gemm_256", 2);
  EXPECT_EQ(measured.endpoint.rings[0].bytes_per_second, 10e9);
  EXPECT_NEAR(iteration_ms(measured, "ideal"), 6, 1e-9);
  EXPECT_NEAR(iteration_ms(measured, "no-overlap"), 6.5, 1e-9);
  // b takes 0.75 ms, in which 0.6 are computed: 0.15 ms more.
  EXPECT_NEAR(iteration_ms(measured, "dedicated"), 6.15, 1e-9);
  // b takes 2 ms, in which 1 is computed: 1 ms more.
  EXPECT_NEAR(iteration_ms(measured, "shared"), 7, 1e-9);
}

TEST(MeasuredEndpoint, OfOneMachineRanksShareWhatTheyWrite) {
  // 8 GB/s in total, of two.
  Profile profile = test::one_machine();
  add_factors(profile, {1, 2});
  EXPECT_EQ(measured_endpoint(profile, "gemm_256", 2).endpoint.rings[0].bytes_per_second, 4e9);
}

TEST(MeasuredEndpoint, WhatWasNotMeasuredIsNoConfiguration) {
  Profile profile = test::cluster(10e9, 10e9);
  EXPECT_ERROR(measured_endpoint(profile, "gemm_256", 2));
  add_factors(profile, {2}); // those of one thread were skipped
  const MeasuredEndpoint measured = measured_endpoint(profile, "gemm_256", 2);
  EXPECT_FALSE(measured.factors.contains("dedicated"));
  EXPECT_EQ(measured.factors.at("shared").communication, 4);
}

TEST(MeasuredEndpoint, OfOperationsItDoesNotKnowTheTime) {
  Workload w = workload();
  EXPECT_TRUE(says_seconds(w));
  w.layers[1].forward = {};
  EXPECT_TRUE(says_seconds(w));
  w.layers[1].forward.flops_per_sample = 1;
  EXPECT_FALSE(says_seconds(w));
}

} // namespace
} // namespace reckon
