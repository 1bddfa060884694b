// SPDX-License-Identifier: Apache-2.0
// Asynchronous training over a virtual network: what the latest parameters must hold, and BytePS's
// theorem 2.
#include "stats/random.hpp"
#include "strategies/lower.hpp"
#include "support/refusals.hpp"
#include "virtual_job.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace reckon {
namespace {

using test::Depends;
using test::Job;
using test::Sources;

Plan plan_of(const test::Shape& shape, UpdatePlace place, std::uint64_t steps,
             std::uint64_t part_bytes = 4096, std::uint64_t elements = 5000) {
  PlanOptions options;
  options.part_bytes = part_bytes;
  options.window_parts = 2;
  options.optimizer = Optimizer::sgd;
  options.update_at = place;
  options.async_steps = steps;
  return test::plan_of(shape, options, {{"a", elements, DType::fp32}, {"b", 3, DType::fp32}});
}

TEST(Async, EveryChangeIsInTheLatestParametersOnce) {
  test::for_each_shape({1, 2, 5}, {0, 2}, {1, 2}, [](const test::Shape& shape) {
    if (!shape.has_servers()) {
      return; // no rank there keeps the latest
    }
    for (const UpdatePlace place : {UpdatePlace::server, UpdatePlace::worker}) {
      SCOPED_TRACE(name_of(place));
      const Schedule schedule = lower(plan_of(shape, place, 3));
      ASSERT_THAT(check(schedule).faults, testing::IsEmpty());
      Job job(schedule);
      job.expect_right(2);
      // Twice: the latest once, and a copy at each worker.
      EXPECT_EQ(job.found().checked_bytes, 2 * (shape.workers + 1) * 5003 * 4);
    }
  });
}

TEST(Async, ManyWorkersShareTheElements) {
  // With 3 steps a count takes 2 bits, and 11 workers fit into the 22 of an element: 25 workers
  // need three classes of elements.
  const Schedule schedule = lower(plan_of({"ps_colocated", 25}, UpdatePlace::worker, 3));
  Job job(schedule);
  job.expect_right(1);
}

TEST(Async, NobodyWaitsForAStraggler) {
  // Rank 0 does nothing until the others can do no more. Asynchronously the other workers are then
  // done with all of their steps; where gradients are summed, none is.
  const Schedule schedule = lower(plan_of({"ps_noncolocated", 3, 2}, UpdatePlace::worker, 3));
  Job job(schedule);
  job.hold(0);
  job.expect_right(1);
  EXPECT_THAT(job.done_without_held(), testing::ElementsAre(1, 2));

  Plan plan = plan_of({"ps_noncolocated", 3, 2}, UpdatePlace::worker, 3);
  plan.asynchronous.reset();
  const Schedule waiting = lower(plan);
  Job all(waiting);
  all.hold(0);
  all.expect_right(1);
  EXPECT_THAT(all.done_without_held(), testing::IsEmpty());
}

TEST(Async, ABitThatFlipsInTheLastReplyIsFound) {
  constexpr std::uint32_t k_local = 4;
  for (const UpdatePlace place : {UpdatePlace::server, UpdatePlace::worker}) {
    const Schedule schedule = lower(plan_of({"ps_colocated", 3}, place, 3));
    int replies = 0;
    {
      Job job(schedule);
      job.network().set_faults([&](const FakeWrite& w) {
        replies += w.destination.buffer == k_local ? 1 : 0;
        return FakeFault::none;
      });
      ASSERT_EQ(job.iterate(0), 0);
    }
    Job job(schedule);
    job.network().set_faults([&](const FakeWrite& w) {
      return w.destination.buffer == k_local && --replies == 0 ? FakeFault::corrupted
                                                               : FakeFault::none;
    });
    EXPECT_GT(job.iterate(0), 0) << name_of(place);
    EXPECT_THAT(job.error(), test::Says("parameter"));
  }
}

TEST(Async, AChangeThatIsNeverAddedIsFound) {
  Schedule schedule = lower(plan_of({"ps_noncolocated", 2, 1}, UpdatePlace::worker, 2));
  test::change_ops(schedule.ranks[2].lanes[0],
                   [sums = 0](Op& op, Depends&, Sources& sources) mutable {
                     if (op.kind == OpKind::reduce && ++sums == 1) {
                       sources.pop_back();
                     }
                   });
  Job job(schedule);
  EXPECT_GT(job.iterate(0), 0);
  EXPECT_THAT(job.error(), test::Says("2 changes"));
}

/// What the checker says first of a schedule of two workers (ranks 0, 1) and a server (rank 2)
/// after `change` of the ops of one rank.
template <class F>
std::string fault_after(std::uint32_t rank, F change) {
  Schedule schedule = lower(plan_of({"ps_noncolocated", 2, 1}, UpdatePlace::worker, 2));
  test::change_ops(schedule.ranks[rank].lanes[0], change);
  return test::fault_of(schedule);
}

TEST(Async, TheCheckerFindsAChangeThatIsAddedTwiceOrNever) {
  const auto with_sources = [](auto change) {
    return fault_after(2, [change, sums = 0](Op& op, Depends&, Sources& sources) mutable {
      if (op.kind == OpKind::reduce && ++sums == 3) {
        change(sources);
      }
    });
  };
  EXPECT_THAT(with_sources([](Sources& sources) { sources.push_back(sources[1]); }),
              testing::HasSubstr("2 times"));
  EXPECT_THAT(with_sources([](Sources& sources) { sources.pop_back(); }),
              testing::HasSubstr("0 times"));
}

TEST(Async, TheCheckerFindsATornReply) {
  // The latest sent from where others add to it, not from a copy.
  EXPECT_THAT(fault_after(2,
                          [latest = Slice{}](Op& op, Depends&, Sources&) mutable {
                            if (op.kind == OpKind::reduce) {
                              latest = op.destination;
                            } else if (op.kind == OpKind::write) {
                              op.source = latest;
                            }
                          }),
              testing::HasSubstr("races"));
}

TEST(Async, TheCheckerFindsAStepThatDoesNotWaitForItsParameters) {
  EXPECT_NE(fault_after(0,
                        [](Op& op, Depends& depends_on, Sources&) {
                          if (op.kind == OpKind::copy && op.bytes == 0) { // the second step begins
                            depends_on.clear();
                          }
                        }),
            "");
}

TEST(Async, WhatCannotBeAsynchronousIsRefused) {
  const auto plan = [](const std::string& strategy, Optimizer optimizer) {
    PlanOptions options;
    options.strategy = strategy;
    options.optimizer = optimizer;
    options.async_steps = 2;
    return test::plan_for(test::cluster(1e9, 1e9), test::workload({{"a", 5000, DType::fp32}}), 2, 1,
                          options);
  };
  EXPECT_REFUSED(input, "keeps", plan("ring", Optimizer::sgd));
  EXPECT_REFUSED(input, "--optimizer sgd", plan("auto", Optimizer::adam));
  EXPECT_NO_THROW(plan("auto", Optimizer::sgd));
}

/// The same schedule, with gradients that depend on the parameters as those of a quadratic loss do:
/// before a worker's gradient is used, it becomes parameters + what its gradient buffer held,
/// rounded to an eighth, so that all sums of changes are exact in fp32.
Schedule with_real_gradients(const Schedule& in) {
  constexpr std::uint32_t k_local = 4; // a worker's parameters, at the gradient's offsets
  Schedule out = in;
  for (std::uint32_t r = 0; r < in.ranks.size(); ++r) {
    const auto made = static_cast<std::uint32_t>(in.ranks[r].buffer_bytes.size());
    out.ranks[r].buffer_bytes.push_back(in.ranks[r].buffer_bytes[k_gradient_buffer]);
    for (LaneProgram& lane : out.ranks[r].lanes) {
      const LaneProgram old = lane;
      LaneProgram now;
      std::vector<std::uint32_t> number(old.ops().size());
      for (std::uint32_t i = 0; i < old.ops().size(); ++i) {
        Op op = old.ops()[i];
        std::vector<std::uint32_t> depends_on;
        for (const std::uint32_t d : old.dependencies(i)) {
          depends_on.push_back(number[d]);
        }
        std::vector<Slice> sources(old.sources(op).begin(), old.sources(op).end());
        Slice* const gradient = op.kind == OpKind::update                           ? &sources[0]
                                : op.kind == OpKind::write && op.source.buffer == 0 ? &op.source
                                                                                    : nullptr;
        if (gradient != nullptr && gradient->buffer == k_gradient_buffer) {
          Op make;
          make.part = op.part;
          make.bytes = op.bytes;
          make.destination = {made, gradient->offset};
          const Slice operands[] = {{k_local, gradient->offset}, *gradient};
          depends_on = {now.append_reduce(make, operands, depends_on)};
          make.source = make.destination;
          make.exponent = 3;
          make.limit = 1 << 20;
          for (const OpKind kind : {OpKind::to_fixed, OpKind::from_fixed}) {
            make.kind = kind;
            depends_on = {now.append(make, depends_on)};
          }
          *gradient = make.destination;
        }
        number[i] = op.source_count > 0 ? now.append_over(op, sources, depends_on)
                                        : now.append(op, depends_on);
      }
      lane = now;
    }
  }
  return out;
}

/// What the ranks hold in the end: latest and local parameters, in the order of the schedule.
std::vector<float> parameters_of(const Schedule& schedule, const Job& job) {
  std::vector<float> all;
  for (std::uint32_t r = 0; r < schedule.ranks.size(); ++r) {
    for (const ParameterRun& run : schedule.ranks[r].parameters) {
      const std::span<const float> held = floats_at(job.buffers(r), run.at, run.bytes);
      all.insert(all.end(), held.begin(), held.end());
    }
  }
  return all;
}

/// Small whole numbers everywhere: every parameter is then a multiple of 2^-9, and below 2^5.
void fill_small(const Schedule& schedule, const Job& job) {
  for (std::uint32_t r = 0; r < schedule.ranks.size(); ++r) {
    for (const ParameterRun& run : schedule.ranks[r].parameters) {
      std::uint64_t i = run.gradient_offset / sizeof(float);
      for (float& word : floats_at(job.buffers(r), run.at, run.bytes)) {
        word = static_cast<float>(i++ % 7) - 3;
      }
    }
    for (std::size_t d = 0; schedule.worker[r] && d < schedule.runs.size(); ++d) {
      const DTypeRun& run = schedule.runs[d];
      std::uint64_t i = 0;
      for (float& word :
           floats_at(job.buffers(r), {k_gradient_buffer, run.offset_bytes}, run.bytes)) {
        word = static_cast<float>((i++ * 5 + r * 3) % 11) - 5;
      }
    }
  }
}

TEST(AsyncTheorem2, ServersAndWorkersHoldWhatAnAsynchronousParameterServerWould) {
  // BytePS, theorem 2: given the same order of pushes and pulls, adding the workers' changes gives
  // what stepping with their gradients gives, at the servers and at every worker. The order is that
  // of workers which take random times until they look at what has come, the same in both; in half
  // of the cases one worker is a straggler and takes five times as long. Gradients are made from
  // the parameters that a worker has, so that a stale or a wrong version changes all that follows.
  constexpr std::uint64_t k_cases = 200;
  std::size_t different_orders = 0;
  for (std::uint64_t seed = 1; seed <= k_cases; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const std::uint64_t n = 2 + uniform_index(random, 3), k = 1 + uniform_index(random, 3);
    const test::Shape shape{"ps_noncolocated", n, k};
    const int straggler = seed % 4 < 2 ? static_cast<int>(uniform_index(random, n)) : -1;
    const std::uint64_t elements = 40 + uniform_index(random, 200);
    const auto run = [&](UpdatePlace place, std::uint64_t order) {
      const Schedule plain = lower(plan_of(shape, place, 3, 256, elements));
      EXPECT_TRUE(check(plain).ok());
      const Schedule schedule = with_real_gradients(plain);
      Job job(schedule, 64, [](int, int, std::uint64_t) { return Seconds(1); });
      job.set_gaps([&](int rank, std::uint64_t looked) {
        if (rank >= static_cast<int>(n)) {
          return Seconds(0); // a server
        }
        std::mt19937_64 time(order * 1'000'003 + looked * 64 + static_cast<std::uint64_t>(rank));
        return Seconds((rank == straggler ? 50 : 10) * uniform_unit(time));
      });
      job.set_prepare([&](Job& j) { fill_small(schedule, j); });
      EXPECT_GE(job.iterate(0), 0) << job.error(); // its values are not those that it can check
      return parameters_of(schedule, job);
    };
    const std::vector<float> byteps = run(UpdatePlace::worker, seed);
    ASSERT_EQ(byteps, run(UpdatePlace::server, seed));
    different_orders += byteps != run(UpdatePlace::worker, seed + k_cases) ? 1U : 0U;
  }
  // The order matters for the values: otherwise the equality would say nothing.
  EXPECT_GT(different_orders, k_cases / 2);
}

} // namespace
} // namespace reckon
