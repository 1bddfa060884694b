// SPDX-License-Identifier: Apache-2.0
#include "gpu.hpp"

#include "probe/gpu_timer.hpp"

#include <cstdlib>
#include <new>

namespace reckon {
namespace {

class GpuQueues : public test::OnGpu {};

/// Page-aligned host memory that is registered.
struct Pinned {
  std::vector<std::byte> raw;
  std::span<std::byte> memory;
  GpuRegistration registration;
  Pinned(GpuLibrary& gpus, std::size_t bytes) : raw(bytes + 4096) {
    const auto at = reinterpret_cast<std::uintptr_t>(raw.data());
    memory = std::span(raw).subspan((4096 - at % 4096) % 4096, bytes);
    registration = GpuRegistration(gpus, memory);
  }
};

TEST_F(GpuQueues, CountWhatIsBehindAGateOnlyWhenItOpens) {
  const GpuOwned<GpuCounter> counter(gpus(), gpus().make_counter(0));
  std::uint32_t times = 99;
  ok(gpus().counted(counter.get(), times));
  EXPECT_EQ(times, 0U);
  ok(gpus().close_gate(stream()));
  for (int i = 0; i < 3; ++i) {
    ok(gpus().count(counter.get(), stream()));
  }
  for (int i = 0; i < 5000; ++i) { // asks the stream how it is as well
    ok(gpus().counted(counter.get(), times));
    EXPECT_EQ(times, 0U);
  }
  gpus().open_gate();
  ok(gpus().synchronize(stream()));
  ok(gpus().counted(counter.get(), times));
  EXPECT_EQ(times, 3U);
  EXPECT_FALSE(gpus().gate_expired());
}

TEST_F(GpuQueues, DoNotHangBehindAGateThatStaysClosed) {
  ok(gpus().close_gate(stream()));
  ok(gpus().synchronize(stream())); // 2 s
  EXPECT_TRUE(gpus().gate_expired());
}

TEST_F(GpuQueues, CarryBytesBetweenPinnedHostMemoryAndTheGpuByBothEngines) {
  constexpr std::size_t k_bytes = 3U << 20U;
  Pinned host(gpus(), k_bytes);
  Pinned back(gpus(), k_bytes);
  for (std::size_t i = 0; i < k_bytes; ++i) {
    host.memory[i] = static_cast<std::byte>(i * 31 + i / 4096);
  }
  const GpuMemory memory(gpus(), 0, k_bytes);
  copy(memory.data(), host.memory.data(), k_bytes);
  ok(gpus().copy_sm(back.memory.data(), memory.data(), k_bytes, 0, stream()));
  ok(gpus().synchronize(stream()));
  EXPECT_EQ(std::memcmp(back.memory.data(), host.memory.data(), k_bytes), 0);
}

TEST_F(GpuQueues, TimeTwiceTheCopiesAtAboutTwiceTheTime) {
  constexpr std::size_t k_bytes = 64U << 20U;
  Pinned host(gpus(), k_bytes);
  const GpuMemory memory(gpus(), 0, k_bytes);
  GpuTimer timer(gpus(),
                 {{0,
                   [&](GpuStream queue) {
                     return gpus().copy(memory.data(), host.memory.data(), k_bytes, queue);
                   }}},
                 true);
  static_cast<void>(timer.time(2));
  const double four = timer.time(4).count();
  const double eight = timer.time(8).count();
  EXPECT_GT(eight, 1.5 * four);
  EXPECT_LT(eight, 3 * four);
}

TEST_F(GpuQueues, RunMatrixProductsWhereThereIsALibraryAndLookups) {
  GpuTimer lookups(
      gpus(),
      {{0, [work = std::shared_ptr<GpuWork>(gpus().make_embedding(0, 10'000, 100, 20))](
               GpuStream queue) { return work->launch(queue); }}},
      true);
  EXPECT_GT(lookups.time(2).count(), 0);
  try {
    const std::unique_ptr<GpuWork> gemm = gpus().make_gemm(0, 256);
    ok(gemm->launch(stream()));
    ok(gpus().synchronize(stream()));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unavailable) << error.what();
  }
}

} // namespace
} // namespace reckon
