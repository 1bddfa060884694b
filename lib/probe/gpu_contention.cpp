// SPDX-License-Identifier: Apache-2.0
#include "probe/gpu_places.hpp"

#include "core/error.hpp"
#include "documents/contention.hpp"
#include "probe/gpu_timer.hpp"
#include "probe/machine_campaigns.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

namespace reckon {
namespace {

/// As the defaults of PARAM's benchmark: tables far larger than caches, bags of 28 rows.
constexpr std::uint32_t k_rows = 1'000'000, k_bag = 28;

constexpr std::array<ComputeKind, 4> k_operations{
    ComputeKind{false, 500}, {false, 1000}, {true, 1000}, {true, 10000}};

struct ContentionCell {
  std::size_t gpu = 0;
  bool sums = false;       ///< else copies to the host
  std::uint64_t bytes = 0; ///< 0: no communication
  std::optional<ComputeKind> operation;
  bool of_compute = false;
};

std::unique_ptr<GpuWork> make_work(GpuLibrary& library, int device, const ComputeKind& operation) {
  return operation.embedding
             ? library.make_embedding(device, k_rows, static_cast<std::uint32_t>(operation.size),
                                      k_bag)
             : library.make_gemm(device, static_cast<int>(operation.size));
}

GpuTimer::Flow communication(GpuPlaces& places, const ContentionCell& cell) {
  GpuLibrary& library = places.library();
  const GpuPlace& gpu = places.gpus()[cell.gpu];
  const std::uint64_t bytes = cell.bytes;
  std::byte* const here = places.target({true, cell.gpu});
  if (cell.sums) {
    const std::byte* const other = places.source({true, cell.gpu});
    return {gpu.device, [=, &library](GpuStream stream) {
              const std::array<const void*, 2> from{here, other};
              return library.sum(DType::fp32, here, from, bytes / sizeof(float), 0, stream);
            }};
  }
  GpuCopy copy{{true, cell.gpu}, {false, gpu.near_node}};
  copy.bytes = bytes;
  return flow_of(places, copy);
}

/// Times `measured` while `other` runs, as many of the other as cover it. Who ends later does not
/// matter: what counts is the measured flow's own time, and a sample in which the other one ended
/// first is repeated with more of it.
void measure_together(GpuPlaces& places, const GpuTimer::Flow& measured,
                      const GpuTimer::Flow& other, Cell& cell, Seconds budget) {
  Workbench& bench = places.bench();
  GpuLibrary& library = places.library();
  const Seconds since = bench.clock().now();
  GpuTimer alone_one(library, {measured}, true);
  GpuTimer alone_other(library, {other}, true);
  static_cast<void>(alone_one.time(1));
  static_cast<void>(alone_other.time(1));
  const double one = std::max(alone_one.time(3).count() / 3, 1e-9);
  const double another = std::max(alone_other.time(3).count() / 3, 1e-9);
  // The measured one a few times in a row, so that both are well under way; the other beside it for
  // twice as long at first.
  constexpr double k_most = 400; // of what a queue of CUDA holds
  const auto repeats =
      static_cast<std::uint64_t>(std::clamp(std::ceil(4 * another / one), 1.0, 8.0));
  double ratio = 2 * static_cast<double>(repeats) * one / another;
  if (ratio > k_most) {
    fail(ErrorKind::unavailable, "the computation is too short beside the communication, or the "
                                 "other way round, to cover it");
  }
  const auto repeated = [](const GpuTimer::Flow& flow, std::uint64_t times) {
    return GpuTimer::Flow{flow.device, [flow, times](GpuStream stream) {
                            GpuStatus status = 0;
                            for (std::uint64_t i = 0; i < times && status == 0; ++i) {
                              status = flow.step(stream);
                            }
                            return status;
                          }};
  };
  Samples samples;
  bool covered = false;
  bool all_of_it = true;
  while (!covered) {
    const auto times = static_cast<std::uint64_t>(std::ceil(std::min(ratio, k_most)));
    GpuTimer both(library, {repeated(measured, repeats), repeated(other, times)}, true);
    SampleLimits limits;
    limits.budget = bench.left(since, budget);
    limits.max_samples = 1000;
    limits.timer_step = Seconds(1e-9); // one operation each: what is queued is long enough
    Sampler sampler(limits, bench.clock(), bench.interrupted());
    covered = true;
    while (!sampler.done()) {
      static_cast<void>(both.time(sampler.batch()));
      const double seconds = both.flow_seconds()[0];
      if (both.flow_seconds()[1] < seconds) {
        if (times < static_cast<std::uint64_t>(k_most)) {
          covered = false;
          break;
        }
        all_of_it = false;
      }
      sampler.add(Seconds(seconds));
    }
    samples = sampler.result();
    ratio *= 2;
  }
  divide(samples, repeats);
  fill_cell(cell, samples, 0);
  if (!all_of_it) {
    remark(cell, CellStatus::noisy, "what runs beside it ended first at times");
  }
}

void measure(GpuPlaces& places, const ContentionCell& what, Cell& cell, Seconds budget) {
  const Seconds since = places.bench().clock().now();
  GpuLibrary& library = places.library();
  const int device = places.gpus()[what.gpu].device;
  std::optional<GpuTimer::Flow> transfer;
  std::unique_ptr<GpuWork> work;
  std::optional<GpuTimer::Flow> compute;
  if (what.bytes > 0) {
    transfer = communication(places, what);
    if (!what.sums) {
      places.spoil({false, places.gpus()[what.gpu].near_node}, 0, what.bytes);
    }
  }
  if (what.operation) {
    work = make_work(library, device, *what.operation);
    compute = GpuTimer::Flow{device, [&work](GpuStream stream) { return work->launch(stream); }};
  }
  if (transfer && compute) {
    measure_together(places, what.of_compute ? *compute : *transfer,
                     what.of_compute ? *transfer : *compute, cell, budget);
  } else {
    fill_cell(cell, places.sample({transfer ? *transfer : *compute}, true, since, budget), 0);
  }
  if (what.bytes > 0 && !what.sums) {
    places.verify(cell, {true, what.gpu}, {false, places.gpus()[what.gpu].near_node}, 0,
                  what.bytes);
  }
}

CellPlan plan_of(const std::shared_ptr<GpuPlaces>& places, const ContentionCell& what) {
  CellKey key{.test = what.of_compute ? k_contention_compute : k_contention_communication,
              .from = places->gpus()[what.gpu].id,
              .bytes = what.bytes,
              .operation = what.operation ? what.operation->name() : "",
              .state = what.bytes > 0 && !what.sums ? "pinned" : ""};
  describe_traffic(key, what.sums, places->id_of({false, places->gpus()[what.gpu].near_node}));
  return {.key = std::move(key),
          .visit = Seconds(0.05),
          .measure = [places, what](Cell& cell, Seconds budget) {
            measure(*places, what, cell, budget);
          }};
}

} // namespace

std::vector<CellPlan> gpu_contention_plans(const std::shared_ptr<GpuPlaces>& places) {
  std::vector<CellPlan> plans;
  const bool thorough = places->bench().thorough();
  for (std::size_t gpu = 0; gpu < places->gpus().size(); ++gpu) {
    if (gpu > 0 && !thorough) {
      break; // GPUs of a machine are alike
    }
    for (const ComputeKind& operation : k_operations) {
      plans.push_back(plan_of(places, {gpu, false, 0, operation, true}));
    }
    for (const bool sums : {false, true}) {
      for (const std::uint64_t bytes : {k_mib, 10 * k_mib, 100 * k_mib}) {
        if (bytes > places->large_bytes() || (bytes != 10 * k_mib && !thorough)) {
          continue;
        }
        plans.push_back(plan_of(places, {gpu, sums, bytes, std::nullopt, false}));
        for (const ComputeKind& operation : k_operations) {
          plans.push_back(plan_of(places, {gpu, sums, bytes, operation, false}));
          plans.push_back(plan_of(places, {gpu, sums, bytes, operation, true}));
        }
      }
    }
  }
  return plans;
}

} // namespace reckon
