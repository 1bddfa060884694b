// SPDX-License-Identifier: Apache-2.0
#include "probe/machine_campaigns.hpp"

#include "documents/cells.hpp"
#include "kernels/optimizer.hpp"
#include "kernels/reduce.hpp"
#include "movers/mover.hpp"
#include "probe/pin.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>

namespace reckon {
namespace {

/// Memory for each thread, on its own node, in rows of `arrays` arrays of `part` bytes that are
/// worked on one after another.
class Rows {
public:
  /// Memory of a node, at least so many bytes.
  using MemoryOf = std::function<std::span<std::byte>(std::size_t node, std::uint64_t bytes)>;
  Rows(Workbench& bench, const std::vector<CorePlace>& cores, std::size_t arrays,
       std::uint64_t part)
      : Rows(bench, cores, arrays, part,
             [&](std::size_t node, std::uint64_t bytes) { return bench.memory(node, 0, bytes); }) {}
  Rows(const Workbench& bench, const std::vector<CorePlace>& cores, std::size_t arrays,
       std::uint64_t part, const MemoryOf& memory_of)
      : m_arrays(arrays), m_part(part) {
    std::map<std::size_t, std::size_t> threads; // by node
    for (const CorePlace& core : cores) {
      ++threads[core.node];
    }
    std::map<std::size_t, std::size_t> used;
    for (const CorePlace& core : cores) {
      const std::size_t here = threads[core.node];
      const std::uint64_t row = arrays * part;
      const std::uint64_t whole = std::max(bench.cold_bytes(core.node), here * row);
      const std::span<std::byte> memory = memory_of(core.node, whole);
      const std::uint64_t rows = std::max<std::uint64_t>(whole / here / row, 1);
      m_first.push_back(memory.data() + used[core.node]++ * rows * row);
      m_rows = m_rows == 0 ? rows : std::min(m_rows, rows);
      m_cpus.push_back(core.cpu);
    }
  }
  [[nodiscard]] const std::vector<int>& cpus() const { return m_cpus; }
  /// The array `a` of thread `rank` for operation number `index`.
  template <class T>
  [[nodiscard]] T* array(std::size_t rank, std::uint64_t index, std::size_t a) const noexcept {
    return reinterpret_cast<T*>(m_first[rank] + (index % m_rows * m_arrays + a) * m_part);
  }

private:
  std::size_t m_arrays;
  std::uint64_t m_part;
  std::uint64_t m_rows = 0;
  std::vector<std::byte*> m_first;
  std::vector<int> m_cpus;
};

/// Times `step(rows, rank, index)` on the cell's threads; an operation of one thread counts as
/// `bytes`. `budget` is for everything since `since`.
template <class Step>
void measure_on(Workbench& bench, const Rows& rows, double bytes, const Step& step, Cell& cell,
                Seconds since, Seconds budget) {
  const Samples samples = bench.sample(
      bench.team(rows.cpus()), since, budget,
      [&](std::size_t rank, std::uint64_t index) noexcept { step(rows, rank, index); });
  fill_cell(cell, samples, bytes * cell.key.threads);
}

/// The same on rows of `arrays` arrays of the cell's size in the bench's own memory.
template <class Step>
void measure_rows(Workbench& bench, std::size_t arrays, double bytes, const Step& step, Cell& cell,
                  Seconds budget) {
  const Seconds since = bench.clock().now();
  const std::vector<CorePlace> cores = bench.spread(cell.key.threads);
  const Rows rows(bench, cores, arrays, cell.key.bytes);
  measure_on(bench, rows, bytes, step, cell, since, budget);
  bench.remark_placement(cell, cores.front().node, 0);
}

/// A cell whose operands lie in cold memory; all else of its key is the caller's.
CellPlan cold_plan(const Workbench& bench, CellKey key,
                   std::function<void(Cell&, Seconds)> measure) {
  key.from = bench.machine();
  key.state = "cold";
  return {.key = std::move(key), .measure = std::move(measure)};
}

/// Where the first `count` arrays of a row begin, at most 8.
std::array<void*, 8> operands_of(const Rows& rows, std::size_t rank, std::uint64_t index,
                                 std::size_t count) noexcept {
  std::array<void*, 8> from{};
  for (std::size_t s = 0; s < count; ++s) {
    from[s] = rows.array<std::byte>(rank, index, s);
  }
  return from;
}

CellPlan sum_plan(Workbench& bench, DType dtype, int threads, int sources, std::uint64_t part) {
  return cold_plan(
      bench,
      {.test = k_reduce_sum,
       .bytes = part,
       .threads = threads,
       .sources = sources,
       .dtype = std::string(name_of(dtype))},
      [&bench, dtype, sources, part](Cell& cell, Seconds budget) {
        const auto operands = static_cast<std::size_t>(sources);
        const auto sum = [&](const Rows& rows, std::size_t thread, std::uint64_t index) noexcept {
          const std::array<void*, 8> from = operands_of(rows, thread, index, operands);
          sum_into(dtype, rows.array<std::byte>(thread, index, 0), {from.data(), operands},
                   part / size_of(dtype));
        };
        measure_rows(bench, operands, static_cast<double>(part) * (sources - 1), sum, cell, budget);
      });
}

/// So many bytes for each thread, on its own node.
std::vector<NodeMemory> memory_near(const Workbench& bench, int threads, std::uint64_t bytes) {
  std::vector<NodeMemory> near;
  for (const CorePlace& core : bench.spread(threads)) {
    near.emplace_back(bytes, bench.nodes()[core.node].os_node);
  }
  return near;
}

/// Memory that processes can share, as the ranks of a run have it: its pages are small where the
/// system gives shared memory no large ones. Kept from one cell to the next.
class SharedMemory {
public:
  std::span<std::byte> of(Workbench& bench, std::size_t node, std::uint64_t bytes) {
    std::span<std::byte>& memory = m_memory[node];
    if (memory.size() < bytes) {
      m_movers[node] = make_mover("host");
      memory = m_movers[node]->allocate(bytes);
      // Who writes a page first has it on its node.
      bench.team(bench.cpus_near(node, 1)).run([&](std::size_t) { fill_numbers(memory); });
    }
    return memory;
  }

private:
  std::map<std::size_t, std::unique_ptr<Mover>> m_movers;
  std::map<std::size_t, std::span<std::byte>> m_memory;
};

CellPlan in_place_plan(Workbench& bench, const std::shared_ptr<SharedMemory>& memory, DType dtype,
                       int threads, int sources, std::uint64_t part) {
  return cold_plan(
      bench,
      {.test = k_sum_in_place,
       .bytes = part,
       .threads = threads,
       .sources = sources,
       .dtype = std::string(name_of(dtype))},
      [&bench, memory, dtype, sources, part](Cell& cell, Seconds budget) {
        const Seconds since = bench.clock().now();
        const auto operands = static_cast<std::size_t>(sources);
        const std::vector<CorePlace> cores = bench.spread(cell.key.threads);
        const Rows rows(bench, cores, operands, part, [&](std::size_t node, std::uint64_t bytes) {
          return memory->of(bench, node, bytes);
        });
        const auto sum = [&](const Rows& all, std::size_t thread, std::uint64_t index) noexcept {
          const std::array<void*, 8> of = operands_of(all, thread, index, operands);
          sum_in_place(dtype, {of.data(), operands}, part / size_of(dtype));
        };
        const double traffic = 2 * static_cast<double>(part) * sources; // read and written
        measure_on(bench, rows, traffic, sum, cell, since, budget);
      });
}

/// Slots of a window, used in turn, and where a part is sent to, for each thread.
constexpr std::size_t k_slots = 8;

CellPlan stores_plan(Workbench& bench, Stores stores, int threads, int sources,
                     std::uint64_t part) {
  return cold_plan(
      bench,
      {.test = k_sum_and_send,
       .bytes = part,
       .threads = threads,
       .sources = sources,
       .dtype = std::string(name_of(DType::fp32)),
       .operation = std::string(name_of(stores))},
      [&bench, stores, threads, sources, part](Cell& cell, Seconds budget) {
        const Seconds since = bench.clock().now();
        const auto operands = static_cast<std::size_t>(sources);
        const std::vector<NodeMemory> near = memory_near(bench, threads, (k_slots + 1) * part);
        const auto sum = [&](const Rows& rows, std::size_t thread, std::uint64_t index) noexcept {
          const std::array<void*, 8> from = operands_of(rows, thread, index, operands);
          std::byte* const slots = near[thread].bytes().data();
          std::byte* const slot = slots + index % k_slots * part;
          sum_into(DType::fp32, slot, {from.data(), operands}, part / sizeof(float), stores);
          std::memcpy(slots + k_slots * part, slot, part);
        };
        measure_rows(bench, operands, static_cast<double>(part) * (sources - 1), sum, cell,
                     bench.left(since, budget));
      });
}

void step(Optimizer optimizer, const Rows& rows, std::size_t rank, std::uint64_t index,
          std::size_t n) noexcept {
  const auto array = [&](std::size_t a) {
    return std::span<float>(rows.array<float>(rank, index, a), n);
  };
  const auto state = [&](std::size_t number) {
    return number <= state_arrays(optimizer) ? array(1 + number) : std::span<float>();
  };
  optimizer_step(optimizer, array(0), state(1), state(2), array(1), index + 1);
}

CellPlan optimizer_plan(Workbench& bench, Optimizer optimizer, int threads) {
  return cold_plan(bench,
                   {.test = k_optimizer_step,
                    .bytes = k_mib,
                    .threads = threads,
                    .dtype = std::string(name_of(DType::fp32)),
                    .operation = std::string(name_of(optimizer))},
                   [&bench, optimizer](Cell& cell, Seconds budget) {
                     measure_rows(
                         bench, 2 + state_arrays(optimizer), static_cast<double>(k_mib),
                         [&](const Rows& rows, std::size_t thread, std::uint64_t index) noexcept {
                           step(optimizer, rows, thread, index, k_mib / sizeof(float));
                         },
                         cell, budget);
                   });
}

Campaign numbers_campaign(Workbench& bench, const char* name, std::vector<CellPlan> plans) {
  return {.name = name, .plans = std::move(plans), .begin = [&bench] { bench.fill_numbers(0); }};
}

/// Usually fp32 by size, and the other types in parts of 1 MiB; of 4 operands only thoroughly.
std::vector<CellPlan> sum_plans(Workbench& bench) {
  std::vector<CellPlan> plans;
  for (const DType dtype : {DType::fp32, DType::fp16, DType::bf16}) {
    for (const int threads : bench.thread_counts()) {
      for (const int sources : {2, 4, 8}) {
        for (const std::uint64_t part : {k_mib / 4, k_mib, 4 * k_mib}) {
          if (bench.thorough() || (sources != 4 && (dtype == DType::fp32 || part == k_mib))) {
            plans.push_back(sum_plan(bench, dtype, threads, sources, part));
          }
        }
      }
    }
  }
  return plans;
}

/// What ranks of one machine do, with what others sent them or in place: fp32 by the number of
/// ranks, halves of two.
std::vector<CellPlan> shared_memory_plans(Workbench& bench) {
  const auto memory = std::make_shared<SharedMemory>();
  std::vector<CellPlan> plans;
  for (const DType dtype : {DType::fp32, DType::fp16, DType::bf16}) {
    for (const int threads : bench.thread_counts()) {
      for (const int sources : {2, 4, 8}) {
        if (bench.thorough() || dtype == DType::fp32 || sources == 2) {
          plans.push_back(in_place_plan(bench, memory, dtype, threads, sources, k_mib));
        }
      }
    }
  }
  return plans;
}

std::vector<CellPlan> stores_plans(Workbench& bench) {
  std::vector<CellPlan> plans;
  for (const int threads :
       std::set<int>{bench.thread_counts().front(), bench.thread_counts().back()}) {
    for (const int sources : {2, 8}) {
      for (const std::uint64_t part : {k_mib / 32, k_mib / 4, k_mib, 4 * k_mib}) {
        for (const Stores stores : {Stores::cached, Stores::streaming}) {
          if (bench.thorough() || part == k_mib) {
            plans.push_back(stores_plan(bench, stores, threads, sources, part));
          }
        }
      }
    }
  }
  return plans;
}

std::vector<CellPlan> optimizer_plans(Workbench& bench) {
  std::vector<CellPlan> plans;
  for (const Optimizer optimizer :
       {Optimizer::sgd, Optimizer::momentum, Optimizer::rmsprop, Optimizer::adam}) {
    for (const int threads : bench.thread_counts()) {
      plans.push_back(optimizer_plan(bench, optimizer, threads));
    }
  }
  return plans;
}

} // namespace

Campaign reduce_campaign(Workbench& bench) {
  return numbers_campaign(bench, "summation", sum_plans(bench));
}

Campaign in_place_campaign(Workbench& bench) {
  return {.name = "sums between ranks", .plans = shared_memory_plans(bench), .begin = {}};
}

Campaign stores_campaign(Workbench& bench) {
  return numbers_campaign(bench, "stores of sums", stores_plans(bench));
}

Campaign optimizer_campaign(Workbench& bench) {
  return numbers_campaign(bench, "optimizers", optimizer_plans(bench));
}

} // namespace reckon
