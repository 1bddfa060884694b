// SPDX-License-Identifier: Apache-2.0
#include "movers/cuda.hpp"
#include "run/executor.hpp"
#include "support/fake_gpus.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <vector>

namespace reckon {
namespace {

constexpr std::uint64_t k_part = 1024;

/// Rank 0 sends its gradient to rank 1, which adds it to its own and sends the sum back. What rank
/// 1 lacks when it begins, and rank 0 until it ends, shows in the result.
struct Job {
  LaneProgram of_worker, of_server;

  Job() {
    const std::uint32_t write = of_worker.append_write(0, 1, 1, {0, 0}, {1, 0}, k_part, {});
    const std::uint32_t await = of_worker.append_await(0, 1, 2);
    of_worker.append(
        {.kind = OpKind::copy, .source = {1, 0}, .destination = {0, 0}, .bytes = k_part},
        std::array{write, await});
    const std::uint32_t here = of_server.append_await(0, 0, 1);
    const std::uint32_t added =
        of_server.append_reduce({.destination = {0, 0}, .bytes = k_part},
                                std::array{Slice{0, 0}, Slice{1, 0}}, std::array{here});
    of_server.append_write(0, 0, 2, {0, 0}, {1, 0}, k_part, std::array{added});
  }
};

/// The job on made-up GPUs, driven by one thread. Returns what rank 0 ends with.
std::vector<float> run_job(const MoverPlace& worker, const MoverPlace& server, int gpu_count) {
  support::FakeGpus gpus(gpu_count);
  gpus.seconds = [](const support::FakeGpus::Work&) { return 20e-6; };
  for (int a = 0; a < gpu_count; ++a) {
    for (int b = 0; b < gpu_count; ++b) {
      gpus.peers.insert({a, b});
    }
  }
  const Job job;
  std::array<std::unique_ptr<Mover>, 2> movers{make_cuda_mover(gpus, worker),
                                               make_cuda_mover(gpus, server)};
  std::array<std::vector<std::span<std::byte>>, 2> buffers;
  std::vector<std::string> addresses;
  for (std::size_t r = 0; r < 2; ++r) {
    for (int b = 0; b < 2; ++b) {
      buffers[r].push_back(movers[r]->allocate(k_part));
    }
    movers[r]->open(1);
    addresses.push_back(movers[r]->address());
    const std::span<std::byte> view = movers[r]->view(buffers[r][0]);
    for (std::size_t i = 0; i < k_part / 4; ++i) {
      const float value = static_cast<float>(i) * (r == 0 ? 1.0F : 100.0F);
      std::memcpy(view.data() + 4 * i, &value, 4);
    }
    movers[r]->push(buffers[r][0]);
  }
  for (int r = 0; r < 2; ++r) {
    movers[static_cast<std::size_t>(r)]->connect(r, addresses);
  }
  LaneExecutor first(job.of_worker, movers[0]->lane(0), buffers[0]);
  LaneExecutor second(job.of_server, movers[1]->lane(0), buffers[1]);
  first.start(1);
  second.start(1);
  for (int i = 0; i < 100'000 && !(first.done() && second.done()); ++i) {
    static_cast<void>(first.advance());
    static_cast<void>(second.advance());
    EXPECT_FALSE(first.failed()) << first.error();
    EXPECT_FALSE(second.failed()) << second.error();
  }
  EXPECT_TRUE(first.done()) << first.first_open_op();
  EXPECT_TRUE(second.done()) << second.first_open_op();
  movers[0]->pull(buffers[0][0]);
  std::vector<float> result(k_part / 4);
  std::memcpy(result.data(), movers[0]->view(buffers[0][0]).data(), k_part);
  return result;
}

void expect_sums(const std::vector<float>& result) {
  for (std::size_t i = 0; i < result.size(); ++i) {
    ASSERT_EQ(result[i], 101.0F * static_cast<float>(i)) << i; // i + 100 i: exact
  }
}

TEST(LaneExecutor, RunsOpsOfGpusThatEndLaterThanTheyAreStarted) {
  expect_sums(run_job({0, false}, {1, false}, 2));
}
TEST(LaneExecutor, RunsAJobOfAGpuAndAMemoryDevice) {
  expect_sums(run_job({0, false}, {0, true}, 1));
}

} // namespace
} // namespace reckon
