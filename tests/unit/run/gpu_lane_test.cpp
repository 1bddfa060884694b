// SPDX-License-Identifier: Apache-2.0
// Jobs over GPUs that are made up: what their lanes are given is over later than it is started.
#include "movers/cuda.hpp"
#include "strategies/lower.hpp"
#include "support/fake_gpus.hpp"
#include "virtual_job.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>

namespace reckon {
namespace {

/// Two workers that send their gradients to a server, which adds them up.
void expect_right_sums(int gpu_count, const std::array<MoverPlace, 3>& places) {
  support::FakeGpus gpus(gpu_count);
  gpus.seconds = [](const support::FakeGpus::Work&) { return 20e-6; };
  gpus.let_all_be_peers();
  PlanOptions options;
  options.part_bytes = 4096;
  options.window_parts = 2;
  const Schedule schedule =
      lower(test::plan_of({"ps_noncolocated", 2, 1}, options, {{"a", 5000, DType::fp32}}));
  test::Job job(schedule, [&](int rank) {
    const MoverPlace& place = places[static_cast<std::size_t>(rank)];
    return make_cuda_mover(place.host_memory ? nullptr : &gpus, place);
  });
  job.expect_right(2);
  EXPECT_EQ(std::ranges::count(gpus.works, support::FakeGpus::Kind::sum,
                               &support::FakeGpus::Work::kind) > 0,
            !places[2].host_memory);
}

TEST(GpuLanes, SumOnAGpu) {
  expect_right_sums(2, {{{0, false}, {1, false}, {1, false}}});
}

TEST(GpuLanes, SumInAMemoryDevice) {
  expect_right_sums(1, {{{0, false}, {0, false}, {0, true}}});
}

} // namespace
} // namespace reckon
