// SPDX-License-Identifier: Apache-2.0
// How long planning takes: reading the profile and the workload is not counted, writing the plan's
// text is.
#include "documents/document.hpp"
#include "strategies/lower.hpp"
#include "strategies/planner.hpp"

#include <benchmark/benchmark.h>

namespace reckon {
namespace {

const Profile& cluster() {
  static const Profile profile = read_profile(RECKON_SOURCE_DIR "/profiles/byteps-cluster.json");
  return profile;
}

Workload tensors(std::uint64_t count, std::uint64_t elements) {
  Workload w;
  w.name = "generated";
  for (std::uint64_t t = 0; t < count; ++t) {
    w.tensors.push_back({"t" + std::to_string(t), elements + 64 * (t % 97), DType::fp32});
  }
  return w;
}

void plan(benchmark::State& state, const Workload& workload, std::uint64_t workers,
          std::uint64_t servers, const PlanOptions& options) {
  const Roles roles = default_roles(cluster(), workers, servers, 0);
  std::size_t parts = 0;
  for ([[maybe_unused]] auto _ : state) {
    const Plan made =
        make_plan({cluster(), workload, roles, {"p", ""}, {"w", ""}, std::nullopt}, options);
    parts = made.parts.size();
    benchmark::DoNotOptimize(canonical_text(made));
  }
  state.counters["parts"] = static_cast<double>(parts);
}

void bert_large_on_32_and_16(benchmark::State& state) {
  plan(state, read_workload(RECKON_SOURCE_DIR "/profiles/workloads/bert-large.json"), 32, 16, {});
}
BENCHMARK(bert_large_on_32_and_16)->Unit(benchmark::kMillisecond);

void tensors_10000_on_1024_and_512(benchmark::State& state) {
  plan(state, tensors(10'000, 100'000), 1024, 512, {});
}
BENCHMARK(tensors_10000_on_1024_and_512)->Unit(benchmark::kMillisecond);

/// Time against the number of parts: it should grow no worse than n log n.
void parts(benchmark::State& state) {
  PlanOptions options;
  options.part_bytes = 65536;
  const auto count = static_cast<std::uint64_t>(state.range(0));
  Workload w;
  w.name = "generated";
  w.tensors.push_back({"t", count * 65536 / 4, DType::fp32});
  plan(state, w, 1024, 512, options);
  state.SetComplexityN(state.range(0));
}
BENCHMARK(parts)
    ->RangeMultiplier(4)
    ->Range(1 << 14, 1 << 20)
    ->Unit(benchmark::kMillisecond)
    ->Complexity(benchmark::oNLogN);

/// Uneven parts take the longer way (longest first).
void uneven_parts(benchmark::State& state) {
  PlanOptions options;
  options.cutting = Cutting::tensors;
  options.part_bytes = 65536;
  plan(state, tensors(static_cast<std::uint64_t>(state.range(0)), 10'000), 64, 32, options);
  state.SetComplexityN(state.range(0));
}
BENCHMARK(uneven_parts)
    ->RangeMultiplier(4)
    ->Range(1 << 12, 1 << 18)
    ->Unit(benchmark::kMillisecond)
    ->Complexity(benchmark::oNLogN);

void lower_resnet50_on_8_and_8(benchmark::State& state) {
  const Workload w = read_workload(RECKON_SOURCE_DIR "/profiles/workloads/resnet50.json");
  const Roles roles = default_roles(cluster(), 8, 8, 0);
  PlanOptions options;
  options.part_bytes = 262144;
  const Plan made = make_plan({cluster(), w, roles, {"p", ""}, {"w", ""}, std::nullopt}, options);
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(lower(made));
  }
}
BENCHMARK(lower_resnet50_on_8_and_8)->Unit(benchmark::kMillisecond);

} // namespace
} // namespace reckon

BENCHMARK_MAIN();
