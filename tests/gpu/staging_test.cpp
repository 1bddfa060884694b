// SPDX-License-Identifier: Apache-2.0
#include "gpu.hpp"

#include "kernels/scale.hpp"
#include "training/staging.hpp"

#include <atomic>
#include <cstdint>
#include <random>
#include <thread>

namespace reckon {
namespace {

class GpuScale : public test::OnGpu {};

TEST_F(GpuScale, HasTheProcessorsBits) {
  constexpr std::uint64_t k_seed = 4402;
  SCOPED_TRACE(k_seed);
  std::mt19937_64 engine(k_seed);
  std::uniform_real_distribution<float> numbers(-1000, 1000);
  for (const DType type : {DType::fp32, DType::fp16, DType::bf16}) {
    for (const std::size_t elements : {1U, 7U, 16U, 1000U, 70'001U}) {
      for (const std::size_t offset : {0U, 4U, 12U}) {
        std::vector<std::byte> here(offset + elements * 4);
        for (std::size_t i = 0; i + 4 <= here.size(); i += 4) { // halves get some bits of them
          const float number = numbers(engine);
          std::memcpy(&here[i], &number, 4);
        }
        const std::size_t bytes = elements * size_of(type);
        const GpuMemory memory(gpus(), 0, here.size());
        copy(memory.data(), here.data(), here.size());
        ok(gpus().scale(type, memory.data() + offset, elements, 0.25, stream()));
        ok(gpus().synchronize(stream()));
        std::vector<std::byte> there(here.size());
        copy(there.data(), memory.data(), there.size());
        scale(std::span(here).subspan(offset, bytes), type, 0.25);
        EXPECT_EQ(there, here) << name_of(type) << ", " << elements << " elements at " << offset;
      }
    }
  }
}

class GpuStaging : public test::OnGpu {};

/// What lanes and the network do: a part's sum is one more than its gradient, halved.
void sum_all(Staging& staging, std::span<std::byte> memory, std::size_t parts, std::size_t bytes) {
  for (std::uint32_t p = 0; p < parts; ++p) {
    while (!staging.arrived(p)) {
      std::this_thread::yield();
    }
    auto* const elements = reinterpret_cast<float*>(&memory[p * bytes]);
    for (std::size_t i = 0; i < bytes / sizeof(float); ++i) {
      elements[i] += 1;
    }
    staging.summed(p);
  }
}

TEST_F(GpuStaging, GivesTheSumsToTheStreamThatWaitsForThemWhileMemoryComesAndGoes) {
  constexpr std::size_t k_parts = 16, k_bytes = 1U << 18U, k_elements = k_parts * k_bytes / 4;
  Mapping memory(-1, k_parts * k_bytes, "gradients");
  std::vector<Stretch> parts;
  for (std::size_t p = 0; p < k_parts; ++p) {
    parts.push_back({p * k_bytes, k_bytes});
  }
  const std::uint64_t half = k_parts * k_bytes / 2 + 4096; // in the middle of a part
  const std::vector<Staging::Place> tensors{{{0, half}, DType::fp32},
                                            {{half, k_parts * k_bytes - half}, DType::fp32}};
  Staging staging(gpus(), 0, memory.bytes(), tensors, parts, 0.5);
  const GpuMemory gradient(gpus(), 0, k_parts * k_bytes), seen(gpus(), 0, k_parts * k_bytes);
  for (int step = 0; step < 5; ++step) {
    std::vector<float> made(k_elements);
    for (std::size_t i = 0; i < k_elements; ++i) {
      made[i] = static_cast<float>(2 * ((i + static_cast<std::size_t>(step)) % 1000));
    }
    staging.begin();
    ok(gpus().copy(gradient.data(), reinterpret_cast<const std::byte*>(made.data()),
                   k_parts * k_bytes, stream()));
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      staging.ready(t, gradient.data() + tensors[t].at.offset_bytes, stream());
    }
    std::atomic<bool> go{false};
    std::thread network([&] {
      while (!go) {
        std::this_thread::yield();
      }
      sum_all(staging, memory.bytes(), k_parts, k_bytes);
    });
    staging.wait(stream());
    ok(gpus().copy(seen.data(), gradient.data(), k_parts * k_bytes, stream()));
    go = true;
    for (int i = 0; i < 20; ++i) { // freeing waits for all streams, the held one among them
      const GpuMemory passing(gpus(), 0, 4U << 20U);
    }
    network.join();
    ok(gpus().synchronize(stream()));
    std::vector<float> got(k_elements);
    copy(reinterpret_cast<std::byte*>(got.data()), seen.data(), k_parts * k_bytes);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < k_elements; ++i) {
      wrong += got[i] == made[i] / 2 + 1 ? 0U : 1U;
    }
    EXPECT_EQ(wrong, 0U) << "step " << step;
    EXPECT_EQ(staging.failure(), "");
  }
}

} // namespace
} // namespace reckon
