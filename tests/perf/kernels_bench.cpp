// SPDX-License-Identifier: Apache-2.0
// Summation and optimizer steps against STREAM and memcpy on this machine, cold: every call goes
// through the whole arena, which is far larger than a last-level cache. Bytes are STREAM's: each
// array once, write-allocate excluded. All benchmarks are repeated in random interleaved order, so
// that ratios compare like with like.
#include "core/clock.hpp"
#include "core/dtype.hpp"
#include "kernels/optimizer.hpp"
#include "kernels/reduce.hpp"
#include "stream_loops.hpp"

#include <benchmark/benchmark.h>

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

namespace reckon::perf {
namespace {

constexpr std::size_t k_page = 4096;
constexpr std::size_t k_arena_bytes = 384ULL << 20U;

/// One mapping, in huge pages if the kernel grants them; carved anew by every benchmark.
std::uint8_t* arena() {
  static std::uint8_t* const start = [] {
    void* p =
        mmap(nullptr, k_arena_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
      std::perror("bench_kernels: mmap(384 MiB)");
      std::exit(4);
    }
    madvise(p, k_arena_bytes, MADV_HUGEPAGE);
    // The same small number everywhere, for every dtype (0x3C3C is 0.0115 in bf16, 1.06 in fp16):
    // sums stay finite and no step meets a subnormal.
    std::memset(p, 0x3C, k_arena_bytes);
    return static_cast<std::uint8_t*>(p);
  }();
  return start;
}

/// Runs each thread of a benchmark on a processor of its own, the first ones that this process may
/// use.
void pin(int thread_index) {
  static const cpu_set_t allowed = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof set, &set);
    return set;
  }();
  int left = thread_index % std::max(1, CPU_COUNT(&allowed));
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed) && left-- == 0) {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      sched_setaffinity(0, sizeof one, &one);
      return;
    }
  }
}

/// This thread's part of `arrays` equal arrays that fill the arena; page-aligned, as reckon's
/// buffers are.
struct Slices {
  std::vector<std::uint8_t*> arrays;
  std::size_t bytes = 0; ///< of each array, this thread's part
};

Slices slices_of(const benchmark::State& state, std::size_t arrays, std::size_t arena_bytes) {
  const auto threads = static_cast<std::size_t>(state.threads());
  Slices s;
  s.bytes = arena_bytes / arrays / threads / k_page * k_page;
  for (std::size_t k = 0; k < arrays; ++k) {
    const std::size_t part = k * threads + static_cast<std::size_t>(state.thread_index());
    s.arrays.push_back(arena() + part * s.bytes);
  }
  return s;
}

float* floats(std::uint8_t* bytes) {
  return reinterpret_cast<float*>(bytes);
}

template <class Work>
void measure(benchmark::State& state, std::size_t arrays, const Work& work,
             std::size_t arena_bytes = k_arena_bytes, double bytes_per_slice_byte = 0) {
  pin(state.thread_index());
  const Slices s = slices_of(state, arrays, arena_bytes);
  for (auto _ : state) {
    work(s);
    benchmark::ClobberMemory();
  }
  const double factor =
      bytes_per_slice_byte > 0 ? bytes_per_slice_byte : static_cast<double>(arrays);
  state.SetBytesProcessed(state.iterations() *
                          static_cast<std::int64_t>(factor * static_cast<double>(s.bytes)));
}

void memcpy_bench(benchmark::State& state) {
  measure(state, 2, [](const Slices& s) { std::memcpy(s.arrays[1], s.arrays[0], s.bytes); });
}

void copy_bench(benchmark::State& state) {
  measure(state, 2, [](const Slices& s) {
    stream_copy(floats(s.arrays[1]), floats(s.arrays[0]), s.bytes / sizeof(float));
  });
}

void add_bench(benchmark::State& state) {
  measure(state, 3, [](const Slices& s) {
    stream_add(floats(s.arrays[2]), floats(s.arrays[0]), floats(s.arrays[1]),
               s.bytes / sizeof(float));
  });
}

void sum_bench(benchmark::State& state, DType type, std::size_t sources, Stores stores,
               std::size_t arena_bytes) {
  measure(
      state, sources + 1,
      [=](const Slices& s) {
        const std::vector<const void*> from(s.arrays.begin() + 1, s.arrays.end());
        sum_into(type, s.arrays[0], from, s.bytes / size_of(type), stores);
      },
      arena_bytes);
}

/// destination += source: what a server does with each part that arrives. Two arrays, three
/// transfers.
void accumulate_bench(benchmark::State& state, DType type) {
  measure(
      state, 2,
      [=](const Slices& s) {
        const std::vector<const void*> from{s.arrays[0], s.arrays[1]};
        sum_into(type, s.arrays[0], from, s.bytes / size_of(type));
      },
      k_arena_bytes, 3);
}

/// STREAM's Add and sum_into of two sources by turns on the same arrays; the counter "of_add" is
/// the median of the pairs' ratios, which holds still when other work on the machine slows both.
void versus_add_bench(benchmark::State& state, Stores stores) {
  pin(state.thread_index());
  const Slices s = slices_of(state, 3, k_arena_bytes);
  const std::size_t n = s.bytes / sizeof(float);
  const std::vector<const void*> from{s.arrays[1], s.arrays[2]};
  const auto add = [&] {
    stream_add(floats(s.arrays[0]), floats(s.arrays[1]), floats(s.arrays[2]), n);
  };
  const auto sum = [&] { sum_into(DType::fp32, s.arrays[0], from, n, stores); };
  const auto seconds_of = [](const auto& work) {
    const std::int64_t start = monotonic_ns();
    work();
    benchmark::ClobberMemory();
    return static_cast<double>(monotonic_ns() - start) * 1e-9;
  };
  std::vector<double> ratios;
  for (auto _ : state) {
    if (ratios.size() % 2 == 0) {
      const double add_seconds = seconds_of(add);
      ratios.push_back(add_seconds / seconds_of(sum));
    } else {
      const double sum_seconds = seconds_of(sum);
      ratios.push_back(seconds_of(add) / sum_seconds);
    }
  }
  std::sort(ratios.begin(), ratios.end());
  state.counters["of_add"] =
      benchmark::Counter(ratios[ratios.size() / 2], benchmark::Counter::kAvgThreads);
}

/// What a server does with a part: sums n operands into a slot of its own, and with `send` the
/// transport then reads the sum. Eight slots in turn, as a window has, operands from memory, both
/// kinds of stores by turns. The counter "of_cached" is the median time with ordinary stores over
/// that with streaming ones: medians hold still when other work takes the processor now and then.
void stores_bench(benchmark::State& state, std::size_t sources, std::size_t part, bool send) {
  constexpr std::size_t k_slots = 8;
  pin(state.thread_index());
  const std::size_t rows = (k_arena_bytes - (k_slots + 1) * part) / (sources * part);
  std::uint8_t* const slots = arena();
  std::uint8_t* const socket = slots + k_slots * part;
  std::uint8_t* const operands = socket + part;
  std::size_t turn = 0;
  std::vector<const void*> from(sources);
  const auto seconds_of = [&](Stores stores) {
    for (std::size_t s = 0; s < sources; ++s) {
      from[s] = operands + (turn % rows * sources + s) * part;
    }
    std::uint8_t* const slot = slots + turn++ % k_slots * part;
    const std::int64_t start = monotonic_ns();
    sum_into(DType::fp32, slot, from, part / sizeof(float), stores);
    if (send) {
      std::memcpy(socket, slot, part);
    }
    benchmark::ClobberMemory();
    return static_cast<double>(monotonic_ns() - start) * 1e-9;
  };
  std::vector<double> cached, streaming;
  for (auto _ : state) {
    cached.push_back(seconds_of(Stores::cached));
    streaming.push_back(seconds_of(Stores::streaming));
  }
  std::sort(cached.begin(), cached.end());
  std::sort(streaming.begin(), streaming.end());
  state.counters["of_cached"] = cached[cached.size() / 2] / streaming[streaming.size() / 2];
}

void optimizer_bench(benchmark::State& state, Optimizer optimizer) {
  const std::size_t arrays = 2 + state_arrays(optimizer);
  measure(
      state, arrays,
      [=](const Slices& s) {
        const std::size_t n = s.bytes / sizeof(float);
        const auto array = [&](std::size_t a) {
          return a < arrays ? std::span(floats(s.arrays[a]), n) : std::span<float>();
        };
        optimizer_step(optimizer, array(1), array(2), array(3), array(0), 10);
      },
      k_arena_bytes, static_cast<double>(bytes_moved_per_element(optimizer)) / sizeof(float));
}

/// Names end in the number of threads, "/t1", by which the table at the end finds its yardstick.
template <class... Args>
void add_case(const std::string& name, int threads, void (*function)(benchmark::State&, Args...),
              std::type_identity_t<Args>... args) {
  auto* b =
      benchmark::RegisterBenchmark((name + "/t" + std::to_string(threads)).c_str(),
                                   [=](benchmark::State& state) { function(state, args...); });
  b->Threads(threads)
      ->UseRealTime()
      ->MinTime(name.starts_with("sum_by_turns") || name.starts_with("stores") ? 0.2 : 0.03)
      ->Unit(benchmark::kMillisecond);
}

void add_cases() {
  for (const int threads : {1, 2}) {
    add_case("memcpy", threads, memcpy_bench);
    add_case("stream_copy", threads, copy_bench);
    add_case("stream_add", threads, add_bench);
    add_case("sum_by_turns/cached", threads, versus_add_bench, Stores::cached);
    add_case("sum_by_turns/streaming", threads, versus_add_bench, Stores::streaming);
    for (const DType type : {DType::fp32, DType::fp16, DType::bf16}) {
      const std::string t = std::string("/") + std::string(name_of(type));
      for (const std::size_t n : {2U, 3U, 4U, 5U, 6U, 8U, 12U}) {
        add_case("sum" + t + "/n" + std::to_string(n), threads, sum_bench, type, n, Stores::cached,
                 k_arena_bytes);
      }
      add_case("sum_streaming" + t + "/n2", threads, sum_bench, type, 2, Stores::streaming,
               k_arena_bytes);
      add_case("accumulate" + t, threads, accumulate_bench, type);
    }
    for (const Optimizer o :
         {Optimizer::sgd, Optimizer::momentum, Optimizer::rmsprop, Optimizer::adam}) {
      add_case(std::string(name_of(o)), threads, optimizer_bench, o);
    }
  }
  // PHub's temporal and non-temporal stores.
  for (const bool send : {false, true}) {
    for (const std::size_t sources : {2U, 4U, 8U}) {
      for (const std::size_t part : {std::size_t{32} << 10U, std::size_t{256} << 10U,
                                     std::size_t{1} << 20U, std::size_t{4} << 20U}) {
        add_case(std::string("stores/") + (send ? "sum_and_send" : "sum_only") + "/n" +
                     std::to_string(sources) + "/" + std::to_string(part >> 10U) + "KiB",
                 1, stores_bench, sources, part, send);
      }
    }
  }
  // In the second-level cache: what the arithmetic can do when memory does not limit it.
  for (const DType type : {DType::fp32, DType::fp16, DType::bf16}) {
    for (const std::size_t n : {2U, 8U}) {
      add_case("warm_sum/" + std::string(name_of(type)) + "/n" + std::to_string(n), 1, sum_bench,
               type, n, Stores::cached, std::size_t{256} << 10U);
    }
  }
}

/// Keeps every repetition's rate; the table at the end is made from their medians.
class Collector : public benchmark::ConsoleReporter {
public:
  Collector() : ConsoleReporter(OO_Tabular) {}
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      const auto rate = run.counters.find("bytes_per_second");
      if (run.run_type == Run::RT_Iteration && rate != run.counters.end()) {
        m_rates[run.run_name.function_name].push_back(rate->second);
      }
      for (const auto& [name, value] : run.counters) {
        if (run.run_type == Run::RT_Iteration && name.starts_with("of_")) {
          m_ratios[name][run.run_name.function_name].push_back(value);
        }
      }
    }
  }

  /// Best against best, as STREAM reports its best time: what else runs on the machine can only
  /// slow a repetition down. The median tells how much it did.
  void print() const {
    for (const auto& [name, rates] : m_rates) {
      std::vector<double> sorted = rates;
      std::sort(sorted.begin(), sorted.end());
      std::printf("%-28s %8.2f %8.2f %8.2f", name.c_str(), sorted.front() / 1e9,
                  sorted[sorted.size() / 2] / 1e9, sorted.back() / 1e9);
      const auto add = m_rates.find("stream_add" + name.substr(name.rfind('/')));
      if (add != m_rates.end()) {
        std::printf("  %5.2f",
                    sorted.back() / *std::max_element(add->second.begin(), add->second.end()));
      }
      std::printf("\n");
    }
    print_ratios("of_add", "fp32 n2 over stream_add");
    print_ratios("of_cached", "streaming over cached stores");
  }

private:
  using Values = std::map<std::string, std::vector<double>>; ///< by case

  void print_ratios(const std::string& counter, const char* title) const {
    const auto found = m_ratios.find(counter);
    if (found == m_ratios.end()) {
      return;
    }
    std::printf("\n%-32s %8s %8s %8s\n", title, "min", "median", "max");
    for (const auto& [name, ratios] : found->second) {
      std::vector<double> sorted = ratios;
      std::sort(sorted.begin(), sorted.end());
      std::printf("%-32s %8.2f %8.2f %8.2f\n", name.c_str(), sorted.front(),
                  sorted[sorted.size() / 2], sorted.back());
    }
  }

  Values m_rates;
  std::map<std::string, Values> m_ratios; ///< by counter
};

} // namespace
} // namespace reckon::perf

int main(int argc, char** argv) {
  // Defaults first, so that the caller's flags win.
  std::vector<std::string> arguments{argv[0], "--benchmark_repetitions=9",
                                     "--benchmark_enable_random_interleaving=true"};
  arguments.insert(arguments.end(), argv + 1, argv + argc);
  std::vector<char*> pointers;
  for (std::string& a : arguments) {
    pointers.push_back(a.data());
  }
  int count = static_cast<int>(pointers.size());
  benchmark::Initialize(&count, pointers.data());
  if (benchmark::ReportUnrecognizedArguments(count, pointers.data())) {
    return 2;
  }
  reckon::perf::add_cases();
  reckon::perf::Collector collector;
  benchmark::RunSpecifiedBenchmarks(&collector);
  std::printf("\nSIMD target %s; 384 MiB in all arrays of a case together; t1, t2: threads\n"
              "%-28s %8s %8s %8s  %s\n",
              reckon::simd_target_name(), "GB/s (1e9 bytes)", "min", "median", "max",
              "max / max of stream_add");
  collector.print();
  return 0;
}
