// SPDX-License-Identifier: Apache-2.0
#include "strategies/endpoint/overlap.hpp"

#include "overlap_fixtures.hpp"
#include "support/refusals.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace reckon {
namespace {

using test::overlap_answer;

/// 10 SMs that move 6 GB/s each and compute 1e12 operations a second together, 100 GB/s of memory;
/// two nodes, each sends the other 10 GB/s. An all-reduce of two sends each byte once (42), so 10
/// GB/s of gradients unless the endpoint holds it up.
Endpoint endpoint_of(double latency_s = 0) {
  Endpoint e;
  e.sms = 10;
  e.sm_bytes_per_second = 6e9;
  e.flops_per_second = 1e12;
  e.memory_bytes_per_second = 100e9;
  e.bus_bytes_per_second = 1e12;
  e.rings[0] = {10e9, latency_s};
  e.aside = EndpointPart{1, 10e9};
  e.configurations = {{"no-overlap", "", EndpointMover::cores, std::nullopt},
                      {"comm-opt", "", EndpointMover::cores, EndpointPart{6, 60e9}},
                      {"comp-opt", "", EndpointMover::cores, EndpointPart{2, 7.5e9}},
                      {"ace", "", EndpointMover::engine, EndpointPart{0, 7.5e9}},
                      {"ideal", "", EndpointMover::none, EndpointPart{0, 0}}};
  return e;
}

/// 1 ms on all SMs, for each sample.
Computation one_ms() {
  Computation c;
  c.flops_per_sample = 1'000'000'000;
  return c;
}

/// A: 10 MB, B: 5 MB; the first layer has no input gradient. 5 ms of passes.
Workload two_layers() {
  Workload w;
  w.name = "two";
  w.tensors = {{"b", 1'250'000}, {"a", 2'500'000}};
  w.layers = {{"A", {"a"}, one_ms(), {}, one_ms(), {}},
              {"B", {"b"}, one_ms(), one_ms(), one_ms(), {}}};
  return w;
}

constexpr double k_near = 1e-12;

TEST(CommunicationShare, HasTheWholeBusUnlessNothingMoves) {
  const Endpoint endpoint = endpoint_of();
  for (const EndpointConfiguration& configuration : endpoint.configurations) {
    const CommunicationShare share = communication_share(endpoint, configuration, {}, true);
    EXPECT_EQ(share.bus_bytes_per_s, configuration.mover == EndpointMover::none
                                         ? CommunicationShare().bus_bytes_per_s
                                         : endpoint.bus_bytes_per_second)
        << configuration.name;
  }
}

TEST(PredictOverlap, TheFiveConfigurationsOfTwoLayers) {
  // Forward A, B, then B's weights (b is posted), B's input, A's weights (a is posted): b is summed
  // beside the last two, all of a is exposed, as the next forward pass begins with A.
  const Workload workload = two_layers();
  const Endpoint endpoint = endpoint_of();
  struct Expected {
    const char* name;
    double computation_ms, exposed_ms, rate_gb_s;
    CollectiveLimit limit;
  };
  for (const Expected& e :
       {// Nothing overlaps: all 15 MB at the end.
        Expected{"no-overlap", 5, 1.5, 10, CollectiveLimit::network},
        // 4 of 10 SMs compute: 2.5 times as long. 40 GB/s of memory and 24 of SMs would be there.
        Expected{"comm-opt", 12.5, 1, 10, CollectiveLimit::network},
        // 8 of 10 SMs; 7.5 GB/s of memory, 1.5 read for each byte sent: 5 GB/s.
        Expected{"comp-opt", 6.25, 2, 5, CollectiveLimit::memory},
        // All SMs; the engine reads each byte once: 7.5 GB/s.
        Expected{"ace", 5, 10 / 7.5, 7.5, CollectiveLimit::memory},
        Expected{"ideal", 5, 1, 10, CollectiveLimit::network}}) {
    SCOPED_TRACE(e.name);
    const OverlapAnswer a = overlap_answer(workload, endpoint, e.name);
    EXPECT_NEAR(a.timeline.computation_s, 1e-3 * e.computation_ms, k_near);
    EXPECT_NEAR(a.timeline.exposed_s, 1e-3 * e.exposed_ms, k_near);
    EXPECT_NEAR(a.timeline.iteration_s, 1e-3 * (e.computation_ms + e.exposed_ms), k_near);
    EXPECT_NEAR(a.all_reduce.rate.bytes_per_s, 1e9 * e.rate_gb_s, 1);
    EXPECT_EQ(a.all_reduce.rate.limit, e.limit);
    EXPECT_EQ(a.payload_bytes, 15e6);
    EXPECT_EQ(a.sent_bytes, 15e6);
  }
}

TEST(PredictOverlap, EachCollectiveHasItsFillAndOneKernelOne) {
  // 2 (n - 1) hops of 0.1 ms.
  const Workload workload = two_layers();
  const Endpoint endpoint = endpoint_of(1e-4);
  EXPECT_NEAR(overlap_answer(workload, endpoint, "ideal").timeline.iteration_s, 6.2e-3, k_near);
  EXPECT_NEAR(overlap_answer(workload, endpoint, "comp-opt").timeline.iteration_s, 8.45e-3, k_near);
  EXPECT_NEAR(overlap_answer(workload, endpoint, "no-overlap").timeline.iteration_s, 6.7e-3,
              k_near);
}

TEST(PredictOverlap, TheFirstChunkPassesTheDimensionsOneByOne) {
  // 2x2x1: a byte is sent once round the local rings and half of it round the others, 15 GB/s in
  // all: chunks of 1 MB follow each other in 0.1 ms, and the first needs 0.15.
  const Workload workload = two_layers();
  Endpoint endpoint = endpoint_of();
  endpoint.rings[1] = endpoint.rings[0];
  const auto iteration_s = [&](const char* name) {
    return overlap_answer(workload, endpoint, name,
                          [](OverlapQuestion& q) {
                            q.shape = {2, 2, 1};
                          })
        .timeline.iteration_s;
  };
  EXPECT_NEAR(iteration_s("ideal"), 6.05e-3, k_near);
  EXPECT_NEAR(iteration_s("no-overlap"), 6.55e-3, k_near);
  // 5 GB/s of memory are busy with the first chunk, too: b 3.75 to 5.25 ms, a 6.25 to 9.25.
  EXPECT_NEAR(iteration_s("comp-opt"), 9.25e-3, k_near);
}

TEST(PredictOverlap, BatchSpeedTypeAndContentionCountWhereTheyShould) {
  const Workload workload = two_layers();
  const Endpoint endpoint = endpoint_of();
  const auto iteration_ms = [&](const std::function<void(OverlapQuestion&)>& change) {
    return 1e3 * overlap_answer(workload, endpoint, "ideal", change).timeline.iteration_s;
  };
  EXPECT_NEAR(iteration_ms([](OverlapQuestion& q) { q.batch = 3; }), 16, 1e-9);
  EXPECT_NEAR(iteration_ms([](OverlapQuestion& q) { q.compute_speed = 2; }), 3.5, 1e-9);
  EXPECT_NEAR(iteration_ms([](OverlapQuestion& q) { q.dtype = DType::fp16; }), 5.5, 1e-9);
  // Half as fast beside b's 0.5 ms: a quarter of a ms is lost. Nothing goes on beside a.
  EXPECT_NEAR(iteration_ms([](OverlapQuestion& q) { q.contention.compute = 2; }), 5.25 + 1, 1e-9);
  // b takes 1 ms then, and is done with B's input gradient.
  EXPECT_NEAR(iteration_ms([](OverlapQuestion& q) { q.contention.communication = 2; }), 6, 1e-9);
}

/// two_layers() whose forward passes and weights' gradients were measured: 1 ms each.
Workload layers_of_a_millisecond() {
  Workload workload = two_layers();
  for (Layer& layer : workload.layers) {
    Computation took;
    took.seconds = 1e-3;
    layer.forward = layer.weight_gradient = took;
    layer.input_gradient = {};
  }
  return workload;
}

TEST(PredictOverlap, MeasuredTimesAreTheSameInEveryConfigurationButMemoryIsShared) {
  Workload workload = layers_of_a_millisecond();
  const Endpoint endpoint = endpoint_of();
  // A and B forward, B's weights, A's: 4 ms; a waits for b's last half chunk: none, lifo.
  EXPECT_NEAR(overlap_answer(workload, endpoint, "comm-opt").timeline.computation_s, 4e-3, k_near);
  // 1 ms at 100 GB/s: a sample of 25e6 elements of fp32; 40 GB/s are left beside 60.
  for (Layer& layer : workload.layers) {
    Computation moves;
    moves.elements_per_sample = 25'000'000;
    layer.forward = layer.weight_gradient = moves;
  }
  EXPECT_NEAR(overlap_answer(workload, endpoint, "ideal").timeline.computation_s, 4e-3, k_near);
  EXPECT_NEAR(overlap_answer(workload, endpoint, "comm-opt").timeline.computation_s, 10e-3, k_near);
}

TEST(PredictOverlap, WhatHoldsUpMeasuredTimesSaysHowTheyStretch) {
  Workload workload = layers_of_a_millisecond();
  const Endpoint endpoint = endpoint_of();
  const auto computation_ms = [&](const char* name, ComputationBound bound, double speed = 1) {
    return 1e3 * overlap_answer(workload, endpoint, name, [&](OverlapQuestion& q) {
                   q.bound = bound;
                   q.compute_speed = speed;
                 }).timeline.computation_s;
  };
  // 4 ms on the whole endpoint. Of its memory comm-opt leaves 40 of 100 GB/s, comp-opt and
  // ace 92.5; of its SMs 4, 8 and all 10.
  EXPECT_NEAR(computation_ms("ideal", ComputationBound::memory), 4, 1e-9);
  EXPECT_NEAR(computation_ms("no-overlap", ComputationBound::memory), 4, 1e-9);
  EXPECT_NEAR(computation_ms("comm-opt", ComputationBound::memory), 10, 1e-9);
  EXPECT_NEAR(computation_ms("comp-opt", ComputationBound::memory), 4 / 0.925, 1e-9);
  EXPECT_NEAR(computation_ms("ace", ComputationBound::memory), 4 / 0.925, 1e-9);
  EXPECT_NEAR(computation_ms("comm-opt", ComputationBound::arithmetic), 10, 1e-9);
  EXPECT_NEAR(computation_ms("comp-opt", ComputationBound::arithmetic), 5, 1e-9);
  EXPECT_NEAR(computation_ms("ace", ComputationBound::arithmetic), 4, 1e-9);
  EXPECT_NEAR(computation_ms("comp-opt", ComputationBound::arithmetic, 2), 2.5, 1e-9);
}

TEST(PredictOverlap, TheLastPostedGoesFirstOrTheFirst) {
  // Three layers of 20 MB, 2 ms each on the wire, and 1 ms for each forward and weights' pass:
  // c, b and a are posted at 4, 5 and 6 ms.
  Workload workload;
  for (const char* name : {"A", "B", "C"}) {
    workload.tensors.insert(workload.tensors.begin(), {name, 5'000'000});
    workload.layers.push_back({name, {name}, one_ms(), {}, one_ms(), {}});
  }
  const Endpoint endpoint = endpoint_of();
  const auto iteration_ms = [&](SchedulePolicy policy) {
    return 1e3 * overlap_answer(workload, endpoint, "ideal", [&](OverlapQuestion& q) {
                   q.policy = policy;
                 }).timeline.iteration_s;
  };
  // fifo: c 4 to 6, b to 8, a to 10, and only then A's forward pass.
  EXPECT_NEAR(iteration_ms(SchedulePolicy::fifo), 10, 1e-9);
  // lifo: c 4 to 5, b 5 to 6, a 6 to 8; then the halves of b, to 9, and c, to 10, as B's and C's
  // forward passes need them. By priority the same.
  EXPECT_NEAR(iteration_ms(SchedulePolicy::lifo), 8, 1e-9);
  EXPECT_NEAR(iteration_ms(SchedulePolicy::priority), 8, 1e-9);
}

TEST(PredictOverlap, AnExchangeIsHiddenOrBlocks) {
  // E's output, 20 MB, goes to all before T: with two nodes half of it is sent, 1 ms. It is on its
  // way while M computes, and back, from T's input gradient on, while M's weights' pass does; E's
  // follows that. t and m, 5 MB each, are hidden, too: m beside E. 7 passes.
  Workload workload;
  workload.tensors = {{"t", 1'250'000}, {"m", 1'250'000}};
  workload.layers = {{"E", {}, one_ms(), {}, one_ms(), Exchange{5'000'000, "T"}},
                     {"M", {"m"}, one_ms(), {}, one_ms(), {}},
                     {"T", {"t"}, one_ms(), one_ms(), one_ms(), {}}};
  const Endpoint endpoint = endpoint_of();
  const OverlapAnswer hidden = overlap_answer(workload, endpoint, "ideal");
  EXPECT_NEAR(hidden.timeline.iteration_s, 7e-3, k_near);
  EXPECT_EQ(hidden.sent_bytes, 10e6 + 2 * 10e6);
  // Where nothing overlaps it blocks on its way there, 1 ms, and with t and m, 2 ms, at the end.
  EXPECT_NEAR(overlap_answer(workload, endpoint, "no-overlap").timeline.iteration_s, 10e-3, k_near);
  // Aside, on 1 of 10 SMs, E takes 10 ms forward and 10 backward in each iteration: nothing else
  // takes as long.
  const OverlapAnswer aside = overlap_answer(workload, endpoint, "ideal",
                                             [](OverlapQuestion& q) { q.exchange_aside = true; });
  EXPECT_NEAR(aside.timeline.iteration_s, 20e-3, 0.05 * 20e-3);
}

TEST(PredictOverlap, WhatIsMissingIsNamed) {
  Workload workload = two_layers();
  workload.layers.clear();
  EXPECT_ERROR(overlap_answer(workload, endpoint_of(), "ideal"));
  Endpoint endpoint = endpoint_of();
  endpoint.aside.reset();
  EXPECT_ERROR(overlap_answer(two_layers(), endpoint, "ideal",
                              [](OverlapQuestion& q) { q.exchange_aside = true; }));
  endpoint.configurations[2].communication = EndpointPart{10, 7.5e9};
  EXPECT_ERROR(overlap_answer(two_layers(), endpoint, "comp-opt"));
}

// An SM moves 6 GB/s of reads, 1.5 for each byte sent: 4 GB/s; memory as many. An engine reads each
// byte once. The ring takes 10 GB/s. The first of 1000 chunks passes its two phases one by one.
TEST(SweepEndpoint, IsLimitedByItsPartAndThenByTheRing) {
  const auto sweep = [](SweptPart swept) {
    return sweep_endpoint(endpoint_of(), {2, 1, 1}, 1e9, 1'000'000, swept);
  };
  const EndpointSweep sms = sweep(SweptPart::sms);
  ASSERT_EQ(sms.points.size(), 10U);
  EXPECT_NEAR(sms.ideal, 10e9, 0.01 * 10e9);
  EXPECT_EQ(sms.points[1].given, 2);
  EXPECT_NEAR(sms.points[0].cores, 4e9, 0.01 * 4e9);
  EXPECT_NEAR(sms.points[1].cores, 8e9, 0.01 * 8e9);
  EXPECT_NEAR(sms.points[2].cores, 10e9, 0.01 * 10e9);
  const EndpointSweep memory = sweep(SweptPart::memory);
  ASSERT_EQ(memory.points.size(), 18U);
  EXPECT_DOUBLE_EQ(memory.points[0].given, 100e9 / 18);
  EXPECT_NEAR(memory.points[0].cores, 100e9 / 18 / 1.5, 0.01 * 4e9);
  EXPECT_NEAR(memory.points[0].engine, 100e9 / 18, 0.01 * 6e9);
  EXPECT_NEAR(memory.points[2].cores, 10e9, 0.01 * 10e9);
}

} // namespace
} // namespace reckon
