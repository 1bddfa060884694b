// SPDX-License-Identifier: Apache-2.0
// How long planning takes: reading the profile and the workload is not counted, writing the plan's
// text is.
#include "documents/cells.hpp"
#include "documents/document.hpp"
#include "network/network.hpp"
#include "planning/request.hpp"
#include "present/document_text.hpp"
#include "schedule/checker.hpp"
#include "strategies/default_roles.hpp"
#include "strategies/forest/forest.hpp"
#include "strategies/lower.hpp"
#include "strategies/planner.hpp"

#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <vector>

namespace reckon {
namespace {

const Profile& cluster() {
  static const Profile profile = read_profile(RECKON_SOURCE_DIR "/profiles/byteps-cluster.json");
  return profile;
}

std::string workload_file(const std::string& name) {
  return RECKON_SOURCE_DIR "/profiles/workloads/" + name + ".json";
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
  plan(state, read_workload(workload_file("bert-large")), 32, 16, {});
}
BENCHMARK(bert_large_on_32_and_16)->Unit(benchmark::kMillisecond);

/// The best mix of trees alone, with its certificate: machines of a shipped profile, each with its
/// GPUs, and whole machines that only sum.
void best_trees(benchmark::State& state, const std::string& name, std::uint64_t workers,
                std::uint64_t servers) {
  Profile profile = read_profile(RECKON_SOURCE_DIR "/profiles/" + name + ".json");
  MachineGroup& group = profile.machines.front();
  group.count = workers + servers;
  std::vector<OpenMachine> machines;
  for (std::uint64_t i = 0; i < workers; ++i) {
    machines.push_back({group.id, i, profile.topology.ids_in(group.id, ObjectKind::gpu), {}});
  }
  for (std::uint64_t i = 0; i < servers; ++i) {
    machines.push_back({group.id, workers + i, {}, {}, false});
  }
  const Network network = network_between_machines(profile, machines, "");
  double open = 0;
  for ([[maybe_unused]] auto _ : state) {
    const Forest forest = solve_forest(network, 0.01, Gains::left_out);
    open = forest.optimum_seconds_per_byte / forest.certificate_seconds_per_byte - 1;
  }
  state.counters["places"] = static_cast<double>(network.places.size());
  state.counters["open_percent"] = 100 * open;
}

void best_trees_of_128_gpus(benchmark::State& state) {
  best_trees(state, "h100-cluster", 16, 0);
}
BENCHMARK(best_trees_of_128_gpus)->Unit(benchmark::kMillisecond);

void best_trees_of_32_gpus_and_4_servers(benchmark::State& state) {
  best_trees(state, "a100-cluster", 4, 4);
}
BENCHMARK(best_trees_of_32_gpus_and_4_servers)->Unit(benchmark::kMillisecond);

void best_trees_of_1024_gpus(benchmark::State& state) {
  best_trees(state, "h100-cluster", 128, 0);
}
BENCHMARK(best_trees_of_1024_gpus)->Unit(benchmark::kMillisecond)->Iterations(1);

/// What `plan` does once its documents are read.
Plan as_asked(const PlanDocuments& documents, const PlanRequest& request) {
  Plan made = plan_as_asked(documents, request);
  benchmark::DoNotOptimize(canonical_text(made));
  return made;
}

/// `plan --explain`: what prints the equations must cost nothing beside what solves them.
void bert_large_on_32_and_16_explained(benchmark::State& state) {
  const PlanDocuments documents =
      read_plan_documents("byteps-cluster", workload_file("bert-large"), "");
  PlanRequest request;
  request.workers = 32;
  request.servers = 16;
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(explain(as_asked(documents, request), Style{}));
  }
}
BENCHMARK(bert_large_on_32_and_16_explained)->Unit(benchmark::kMillisecond);

/// `plan --sweep part-bytes=64KiB,128KiB,...,8MiB`: the first argument is how many sizes.
void vgg16_on_16_in_part_sizes(benchmark::State& state) {
  const PlanDocuments documents = read_plan_documents("byteps-cluster", workload_file("vgg16"), "");
  PlanRequest request;
  request.workers = 16;
  for ([[maybe_unused]] auto _ : state) {
    for (std::int64_t size = 0; size < state.range(0); ++size) {
      request.options.part_bytes = std::uint64_t{64} << (10 + size);
      as_asked(documents, request);
    }
  }
}
BENCHMARK(vgg16_on_16_in_part_sizes)->Arg(8)->Unit(benchmark::kMillisecond);

/// `plan --places gpu`: the first argument is how many machines of 8 GPUs.
void bert_large_on_machines_of_8_gpus(benchmark::State& state) {
  const PlanDocuments documents =
      read_plan_documents("a100-cluster", workload_file("bert-large"), "");
  PlanRequest request;
  request.places = PlacesAsked::gpu;
  request.workers = static_cast<std::uint64_t>(state.range(0));
  for ([[maybe_unused]] auto _ : state) {
    as_asked(documents, request);
  }
}
BENCHMARK(bert_large_on_machines_of_8_gpus)->Arg(4)->Arg(16)->Unit(benchmark::kMillisecond);

/// `plan --cutting tensors` of 400 tensors, no two alike: 672 parts of as many lengths.
void unequal_tensors_on_16_and_4(benchmark::State& state) {
  Workload w;
  w.name = "generated";
  for (std::uint64_t t = 0; t < 400; ++t) {
    w.tensors.push_back({"t" + std::to_string(t), 50'000 + 5640 * (t * 37 % 400), DType::fp32});
  }
  PlanOptions options;
  options.cutting = Cutting::tensors;
  options.part_bytes = 4'096'000;
  plan(state, w, 16, 4, options);
}
BENCHMARK(unequal_tensors_on_16_and_4)->Unit(benchmark::kMillisecond);

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
  const Workload w = read_workload(workload_file("resnet50"));
  const Roles roles = default_roles(cluster(), 8, 8, 0);
  PlanOptions options;
  options.part_bytes = 262144;
  const Plan made = make_plan({cluster(), w, roles, {"p", ""}, {"w", ""}, std::nullopt}, options);
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(lower(made));
  }
}
BENCHMARK(lower_resnet50_on_8_and_8)->Unit(benchmark::kMillisecond);

/// Machines of which each pair was measured, from the cells on to the network's ways.
void measured_pairs(benchmark::State& state) {
  Profile profile;
  profile.machines.push_back({.id = "m0", .count = static_cast<std::uint64_t>(state.range(0))});
  MachineGroup& group = profile.machines.front();
  profile.topology.objects.push_back({.id = "m0", .kind = ObjectKind::machine});
  const auto add = [&](const CellKey& key, const char* unit, double value) {
    Cell& cell = profile.cells.emplace_back();
    cell.key = key;
    cell.unit = unit;
    cell.status = CellStatus::published;
    cell.min = cell.p50 = cell.p99 = cell.max = value;
  };
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    group.members.push_back("node" + std::to_string(i));
  }
  std::vector<OpenMachine> machines;
  for (const std::string& from : group.members) {
    add({.test = k_port_bandwidth, .from = from}, "bytes_per_second", 1e9);
    machines.push_back({.group = "m0", .number = machines.size(), .works = true});
    for (const std::string& to : group.members) {
      if (from != to) {
        add({.test = k_pair_latency, .from = from, .to = to}, "seconds", 20e-6);
        add({.test = k_pair_bandwidth, .from = from, .to = to}, "bytes_per_second", 1e9);
      }
    }
  }
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(network_between_machines(profile, machines, ""));
  }
  state.SetComplexityN(state.range(0));
}
BENCHMARK(measured_pairs)
    ->RangeMultiplier(2)
    ->Range(32, 256)
    ->Unit(benchmark::kMillisecond)
    ->Complexity(benchmark::oNSquared);

/// The proof of a ring's sums: ops, and so memory, grow with the square of the ranks.
void proof_of_a_ring(benchmark::State& state) {
  PlanOptions options;
  options.strategy = "ring";
  options.part_bytes = 4'194'304;
  const auto ranks = static_cast<std::uint64_t>(state.range(0));
  const Plan made = make_plan({cluster(),
                               tensors(1, 1'048'576 * ranks),
                               default_roles(cluster(), ranks, 0, 0),
                               {"p", ""},
                               {"w", ""},
                               std::nullopt},
                              options);
  const Schedule schedule = lower(made);
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(check(schedule));
  }
  state.SetComplexityN(state.range(0));
}
BENCHMARK(proof_of_a_ring)
    ->RangeMultiplier(2)
    ->Range(32, 256)
    ->Unit(benchmark::kMillisecond)
    ->Complexity();

} // namespace
} // namespace reckon

BENCHMARK_MAIN();
