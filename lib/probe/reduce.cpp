// SPDX-License-Identifier: Apache-2.0
#include "probe/reduce.hpp"

#include "core/error.hpp"
#include "kernels/optimizer.hpp"
#include "kernels/reduce.hpp"
#include "probe/pin.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>
#include <utility>

namespace reckon {
namespace {

constexpr std::uint64_t k_mib = std::uint64_t{1} << 20U;

/// Memory for each thread, on its own node, in rows of `arrays` arrays of `part` bytes that are
/// worked on one after another.
class Rows {
public:
  Rows(Workbench& bench, const std::vector<CorePlace>& cores, std::size_t arrays,
       std::uint64_t part)
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
      const std::span<std::byte> memory = bench.memory(core.node, 0, whole);
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

void fill_all(Workbench& bench) {
  for (std::size_t n = 0; n < bench.nodes().size(); ++n) {
    const std::span<std::byte> memory = bench.memory(n, 0, bench.cold_bytes(n));
    bench.team(bench.cpus_near(n, 1)).run([&](std::size_t) { fill_numbers(memory); });
  }
}

void finish(Workbench& bench, Cell& cell, const Samples& samples, double bytes,
            const std::vector<CorePlace>& cores) {
  fill_cell(cell, samples, bytes);
  bench.remark_placement(cell, cores.front().node, 0);
}

/// A cell of `threads` threads whose operands lie in cold memory; its key may get more.
CellPlan cold_plan(const Workbench& bench, const char* test, DType dtype, int threads,
                   std::uint64_t bytes) {
  CellPlan plan;
  plan.key.test = test;
  plan.key.from = bench.machine();
  plan.key.dtype = name_of(dtype);
  plan.key.threads = threads;
  plan.key.bytes = bytes;
  plan.key.state = "cold";
  plan.unit = "bytes_per_second";
  plan.bytes_convention = "payload";
  plan.least = Seconds(0.02);
  plan.wanted = Seconds(0.1);
  return plan;
}

/// Where the first `count` arrays of a row begin, at most 8.
std::array<const void*, 8> operands_of(const Rows& rows, std::size_t rank, std::uint64_t index,
                                       std::size_t count) noexcept {
  std::array<const void*, 8> from{};
  for (std::size_t s = 0; s < count; ++s) {
    from[s] = rows.array<std::byte>(rank, index, s);
  }
  return from;
}

CellPlan sum_plan(Workbench& bench, DType dtype, int threads, int sources, std::uint64_t part) {
  CellPlan plan = cold_plan(bench, k_reduce_sum, dtype, threads, part);
  plan.key.sources = sources;
  // What a server does most: two operands, one thread and all, parts of 1 MiB.
  const bool usual_threads = threads == 1 || threads == bench.thread_counts().back();
  plan.rank = (sources == 2 ? 0 : 1) + (usual_threads ? 0 : 1) + (part == k_mib ? 0 : 1);
  plan.measure = [&bench, dtype, threads, sources, part](Cell& cell, Seconds budget) {
    const Seconds since = bench.clock().now();
    const std::vector<CorePlace> cores = bench.spread(threads);
    const auto operands = static_cast<std::size_t>(sources);
    const Rows rows(bench, cores, operands, part);
    const std::size_t elements = part / size_of(dtype);
    const Samples samples = bench.sample(
        bench.team(rows.cpus()), since, budget,
        [&](std::size_t rank, std::uint64_t index) noexcept {
          const std::array<const void*, 8> from = operands_of(rows, rank, index, operands);
          sum_into(dtype, rows.array<std::byte>(rank, index, 0), {from.data(), operands}, elements);
        });
    finish(bench, cell, samples,
           static_cast<double>(part) * static_cast<double>(sources - 1) * threads, cores);
  };
  return plan;
}

/// Slots of a window, used in turn, and where a part is sent to, for each thread.
constexpr std::size_t k_slots = 8;

CellPlan stores_plan(Workbench& bench, Stores stores, int threads, int sources,
                     std::uint64_t part) {
  CellPlan plan = cold_plan(bench, k_sum_and_send, DType::fp32, threads, part);
  plan.key.operation = name_of(stores);
  plan.key.sources = sources;
  plan.rank = sources == 8 ? 0 : 1;
  plan.measure = [&bench, stores, threads, sources, part](Cell& cell, Seconds budget) {
    const Seconds since = bench.clock().now();
    const std::vector<CorePlace> cores = bench.spread(threads);
    const auto operands = static_cast<std::size_t>(sources);
    const Rows rows(bench, cores, operands, part);
    std::vector<NodeMemory> near;
    for (const CorePlace& core : cores) {
      near.emplace_back((k_slots + 1) * part, bench.nodes()[core.node].os_node);
    }
    const Samples samples = bench.sample(
        bench.team(rows.cpus()), since, budget,
        [&](std::size_t rank, std::uint64_t index) noexcept {
          const std::array<const void*, 8> from = operands_of(rows, rank, index, operands);
          std::byte* const slots = near[rank].bytes().data();
          std::byte* const slot = slots + index % k_slots * part;
          sum_into(DType::fp32, slot, {from.data(), operands}, part / sizeof(float), stores);
          std::memcpy(slots + k_slots * part, slot, part);
        });
    finish(bench, cell, samples,
           static_cast<double>(part) * static_cast<double>(sources - 1) * threads, cores);
  };
  return plan;
}

void step(Optimizer optimizer, const Rows& rows, std::size_t rank, std::uint64_t index,
          std::size_t n) noexcept {
  const auto array = [&](std::size_t a) {
    return std::span<float>(rows.array<float>(rank, index, a), n);
  };
  switch (optimizer) {
  case Optimizer::sgd:
    sgd_step(array(0), array(1), {});
    break;
  case Optimizer::momentum:
    momentum_step(array(0), array(2), array(1), {});
    break;
  case Optimizer::rmsprop:
    rmsprop_step(array(0), array(2), array(1), {});
    break;
  case Optimizer::adam:
    adam_step(array(0), array(2), array(3), array(1), index + 1, {});
    break;
  }
}

CellPlan optimizer_plan(Workbench& bench, Optimizer optimizer, int threads) {
  constexpr std::uint64_t k_part = k_mib;
  CellPlan plan = cold_plan(bench, k_optimizer_step, DType::fp32, threads, k_part);
  plan.key.operation = name_of(optimizer);
  plan.rank = threads == 1 || threads == bench.thread_counts().back() ? 0 : 1;
  plan.measure = [&bench, optimizer, threads](Cell& cell, Seconds budget) {
    const Seconds since = bench.clock().now();
    const std::vector<CorePlace> cores = bench.spread(threads);
    const Rows rows(bench, cores, 2 + state_arrays(optimizer), k_part);
    const Samples samples =
        bench.sample(bench.team(rows.cpus()), since, budget,
                     [&](std::size_t rank, std::uint64_t index) noexcept {
                       step(optimizer, rows, rank, index, k_part / sizeof(float));
                     });
    finish(bench, cell, samples, static_cast<double>(k_part) * threads, cores);
  };
  return plan;
}

} // namespace

Campaign reduce_campaign(Workbench& bench) {
  Campaign campaign;
  campaign.name = "summation";
  campaign.share = 0.12;
  campaign.begin = [&bench] { fill_all(bench); };
  campaign.plan = [&bench] {
    std::vector<CellPlan> plans;
    for (const DType dtype : {DType::fp32, DType::fp16, DType::bf16}) {
      for (const int threads : bench.thread_counts()) {
        for (const int sources : {2, 4, 8}) {
          for (const std::uint64_t part : {k_mib / 4, k_mib, 4 * k_mib}) {
            plans.push_back(sum_plan(bench, dtype, threads, sources, part));
          }
        }
      }
    }
    return plans;
  };
  return campaign;
}

Campaign stores_campaign(Workbench& bench) {
  Campaign campaign;
  campaign.name = "stores of sums";
  campaign.share = 0.06;
  campaign.begin = [&bench] { fill_all(bench); };
  campaign.plan = [&bench] {
    std::vector<CellPlan> plans;
    for (const int threads :
         std::set<int>{bench.thread_counts().front(), bench.thread_counts().back()}) {
      for (const int sources : {2, 8}) {
        for (const std::uint64_t part : {k_mib / 32, k_mib / 4, k_mib, 4 * k_mib}) {
          for (const Stores stores : {Stores::cached, Stores::streaming}) {
            plans.push_back(stores_plan(bench, stores, threads, sources, part));
          }
        }
      }
    }
    return plans;
  };
  return campaign;
}

Campaign optimizer_campaign(Workbench& bench) {
  Campaign campaign;
  campaign.name = "optimizers";
  campaign.share = 0.03;
  campaign.begin = [&bench] { fill_all(bench); };
  campaign.plan = [&bench] {
    std::vector<CellPlan> plans;
    for (const Optimizer optimizer :
         {Optimizer::sgd, Optimizer::momentum, Optimizer::rmsprop, Optimizer::adam}) {
      for (const int threads : bench.thread_counts()) {
        plans.push_back(optimizer_plan(bench, optimizer, threads));
      }
    }
    return plans;
  };
  return campaign;
}

} // namespace reckon
