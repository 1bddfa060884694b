// SPDX-License-Identifier: Apache-2.0
#include "probe/machine_campaigns.hpp"
#include "probe/pattern.hpp"

#include "core/dtype.hpp"
#include "documents/cells.hpp"
#include "documents/contention.hpp"
#include "kernels/compute_load.hpp"
#include "kernels/reduce.hpp"
#include "probe/team.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

namespace reckon {
namespace {

/// Which of a node's memories: what communication and lookups read, what communication writes, and
/// what belongs to the computation.
constexpr std::size_t k_sources = 0;
constexpr std::size_t k_destinations = 1;
constexpr std::size_t k_computed = 2;

/// Numbers whose sums are exact for 60 000 passes.
float source_number(std::size_t i) {
  return static_cast<float>(i % 251);
}

void fill_sources(std::span<std::byte> memory) {
  for (std::size_t i = 0; i < memory.size() / sizeof(float); ++i) {
    const float value = source_number(i);
    std::memcpy(memory.data() + i * sizeof value, &value, sizeof value);
  }
}

/// Who works where.
struct Places {
  std::vector<int> communication, compute;
  bool same_cores = false;
};

Places places(const Workbench& bench, std::size_t node, std::size_t threads) {
  const std::vector<int> all = bench.cpus_near(node, SIZE_MAX);
  Places p;
  p.same_cores = threads >= all.size();
  p.communication.assign(all.begin(),
                         all.begin() + static_cast<std::ptrdiff_t>(std::min(threads, all.size())));
  p.compute = p.same_cores
                  ? all
                  : std::vector(all.begin() + static_cast<std::ptrdiff_t>(threads), all.end());
  return p;
}

enum class Traffic { copy, sum };

/// Communications one after another, through all of the memory in turn.
class Communication {
public:
  Communication(Workbench& bench, Traffic traffic, std::size_t from, std::size_t to,
                std::uint64_t bytes, std::size_t threads)
      : m_traffic(traffic), m_bytes(bytes), m_stride((bytes + k_page - 1) / k_page * k_page),
        m_from(bench.memory(from, k_sources, bench.cold_bytes(from))),
        m_to(bench.memory(to, k_destinations, bench.cold_bytes(to))),
        m_slices(std::max<std::uint64_t>(std::min(m_from.size(), m_to.size()) / m_stride, 1)),
        m_first_slice(threads) {
    std::memset(m_to.data(), traffic == Traffic::copy ? k_poison : 0, bytes);
  }

  /// The part of thread `rank` in communication `index`.
  void step(std::size_t rank, std::uint64_t index) noexcept {
    const auto [first, last] = floats_of(rank);
    const std::uint64_t slice = index % m_slices;
    const std::size_t offset = slice * m_stride + first * sizeof(float);
    std::byte* const to = m_to.data() + offset;
    const std::byte* const from = m_from.data() + offset;
    if (m_traffic == Traffic::copy) {
      std::memcpy(to, from, (last - first) * sizeof(float));
    } else {
      const std::array<const void*, 2> operands{to, from};
      sum_into(DType::fp32, to, operands, last - first);
    }
    m_first_slice[rank].value += slice == 0 ? 1 : 0;
  }

  /// What is wrong in the first slice; empty: nothing. Not while any thread is in step().
  [[nodiscard]] std::string mistake() const {
    for (std::size_t rank = 0; rank < m_first_slice.size(); ++rank) {
      const std::uint64_t passes = m_first_slice[rank].value;
      const auto [first, last] = floats_of(rank);
      // One number of each cache line, in turn the first to the last: all of them would take longer
      // than the measurement.
      for (std::size_t line = first; passes > 0 && line < last; line += k_line) {
        const std::size_t i = line + line / k_line % k_line;
        float is = 0;
        std::memcpy(&is, m_to.data() + i * sizeof is, sizeof is);
        const float expected =
            source_number(i) * (m_traffic == Traffic::copy ? 1.0F : static_cast<float>(passes));
        if (is != expected) {
          return fmt::format("the {} differs in number {}: expected {}, got {}",
                             m_traffic == Traffic::copy ? "copy" : "sum", i, expected, is);
        }
      }
    }
    return "";
  }

private:
  static constexpr std::size_t k_line = 64 / sizeof(float);

  [[nodiscard]] std::pair<std::size_t, std::size_t> floats_of(std::size_t rank) const {
    const auto [first, last] = part_of(m_bytes / 64, rank, m_first_slice.size());
    return {first * k_line, last * k_line};
  }

  Traffic m_traffic;
  std::uint64_t m_bytes, m_stride;
  std::span<std::byte> m_from, m_to;
  std::uint64_t m_slices;
  std::vector<ThreadCount> m_first_slice; ///< how often each thread has worked on it
};

/// A batch of rows, drawn anew for each operation.
class Embedding final : public ComputeLoad {
public:
  Embedding(Workbench& bench, std::size_t node, std::size_t batch, std::size_t threads)
      : m_batch(batch), m_seed(bench.seed()),
        m_table(bench.memory(node, k_sources, bench.cold_bytes(node))),
        m_rows(m_table.size() / k_row), m_out(bench.memory(node, k_computed, batch * k_row)),
        m_done(threads) {
    std::memset(m_out.data(), k_poison, batch * k_row);
  }

  [[nodiscard]] std::uint64_t steps() const override { return 1; }

  void step(std::size_t rank, std::uint64_t index) noexcept override {
    const auto [begin, end] = part_of(m_batch, rank, m_done.size());
    for (std::size_t i = begin; i < end; ++i) {
      std::memcpy(m_out.data() + i * k_row, m_table.data() + row_of(index, i) * k_row, k_row);
    }
    m_done[rank].value = index + 1;
  }

  [[nodiscard]] std::string mistake() const override {
    for (std::size_t rank = 0; rank < m_done.size(); ++rank) {
      const auto [begin, end] = part_of(m_batch, rank, m_done.size());
      for (std::size_t i = begin; m_done[rank].value > 0 && i < end; ++i) {
        const std::uint64_t row = row_of(m_done[rank].value - 1, i);
        float is = 0;
        for (const std::size_t column : {std::size_t{0}, k_row / sizeof is - 1}) {
          std::memcpy(&is, m_out.data() + i * k_row + column * sizeof is, sizeof is);
          const float expected = source_number(row * k_row / sizeof is + column);
          if (is != expected) {
            return fmt::format("lookup {} of row {} gave {}, not {}", i, row, is, expected);
          }
        }
      }
    }
    return "";
  }

private:
  static constexpr std::size_t k_row = 128 * sizeof(float);

  /// Sebastiano Vigna's splitmix64 of the lookup's number.
  [[nodiscard]] std::uint64_t row_of(std::uint64_t index, std::size_t i) const noexcept {
    std::uint64_t z = m_seed + (index * m_batch + i) * 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
    return ((z ^ (z >> 31U)) >> 32U) * m_rows >> 32U;
  }

  std::size_t m_batch;
  std::uint64_t m_seed;
  std::span<std::byte> m_table;
  std::uint64_t m_rows;
  std::span<std::byte> m_out;
  std::vector<ThreadCount> m_done;
};

std::unique_ptr<ComputeLoad> make_load(const ComputeKind& kind, Workbench& bench, std::size_t node,
                                       std::size_t threads) {
  if (kind.embedding) {
    return std::make_unique<Embedding>(bench, node, kind.size, threads);
  }
  return std::make_unique<GemmLoad>(bench.memory(node, k_computed, GemmLoad::bytes_of(kind.size)),
                                    kind.size, threads);
}

/// ACE's figure 4a has matrices up to 1000 and batches up to 10 000.
constexpr std::array<ComputeKind, 4> k_kinds{
    {{false, 256}, {false, 1000}, {true, 1000}, {true, 10'000}}};

struct ContentionCell {
  Workbench& bench;
  Traffic traffic;
  std::size_t from = 0, to = 0, threads = 0;
  std::uint64_t bytes = 0;         ///< 0: without communication
  std::optional<ComputeKind> kind; ///< nullopt: without computation
  bool of_compute = false;         ///< which of the two is timed

  void measure(Cell& cell, Seconds budget) const {
    const Seconds since = bench.clock().now();
    const std::uint64_t memory = std::min(bench.cold_bytes(from), bench.cold_bytes(to));
    if (bytes > memory) {
      discard(cell, CellStatus::skipped,
              fmt::format("there is only {} of memory to go through", to_text(Bytes(memory))));
      return;
    }
    const Places where = places(bench, from, threads);
    std::optional<Communication> communication;
    if (bytes > 0) {
      communication.emplace(bench, traffic, from, to, bytes, where.communication.size());
    }
    std::unique_ptr<ComputeLoad> compute;
    if (kind) {
      compute = make_load(*kind, bench, from, where.compute.size());
    }
    Team& team = bench.team(of_compute ? where.compute : where.communication);
    const std::uint64_t steps = of_compute ? compute->steps() : 1;
    const auto step = [&](bool computing, std::size_t rank, std::uint64_t index) noexcept {
      if (computing) {
        compute->step(rank, index);
      } else {
        communication->step(rank, index);
      }
    };
    const auto run = [&](std::size_t rank, std::uint64_t first, std::uint64_t count) noexcept {
      for (std::uint64_t s = first * steps; s < (first + count) * steps; ++s) {
        step(of_compute, rank, s);
      }
    };
    const std::uint64_t times = where.same_cores ? times_in_turns(team, run) : 1;
    std::optional<Background> background;
    if (communication && compute) {
      background.emplace(
          of_compute ? where.communication : where.compute,
          [&](std::size_t rank, std::uint64_t index) noexcept { step(!of_compute, rank, index); });
    }
    SampleLimits limits;
    limits.max_samples = 1000;
    Samples samples = bench.sample(
        team, since, budget,
        [&](std::size_t rank, std::uint64_t index) noexcept { run(rank, index * times, times); },
        limits);
    background.reset();
    divide(samples, times);
    fill_cell(cell, samples, static_cast<double>(bytes));
    if (bytes > 0 && kind && cell.has_value()) {
      remark(cell, where.same_cores
                       ? std::string("both on the same cores")
                       : fmt::format("computing on {} other core{}", where.compute.size(),
                                     where.compute.size() == 1 ? "" : "s"));
    }
    if (bytes > 0) {
      bench.remark_placement(cell, from, k_sources);
      bench.remark_placement(cell, to, k_destinations);
    }
    std::string mistake = communication ? communication->mistake() : "";
    if (mistake.empty() && compute) {
      mistake = compute->mistake();
    }
    if (!mistake.empty() && cell.has_value()) {
      discard(cell, CellStatus::mismatch, mistake);
    }
  }

private:
  /// A processor's threads take turns of some milliseconds: a time that should say what sharing it
  /// costs has to span several turns. So many in a row take that long alone.
  template <class Run>
  std::uint64_t times_in_turns(Team& team, const Run& run) const {
    constexpr Seconds k_turns(0.02);
    Seconds one(1);
    for (int i = 0; i < 3; ++i) { // the fastest: at first caches are cold and threads wake up
      const Seconds begin = bench.clock().now();
      team.run([&](std::size_t rank) noexcept { run(rank, 0, 1); });
      one = std::min(one, std::max(bench.clock().now() - begin, Seconds(1e-6)));
    }
    return static_cast<std::uint64_t>(std::ceil(k_turns / one));
  }
};

CellPlan contention_plan(Workbench& bench, const ContentionCell& cell) {
  CellKey key{.test = cell.of_compute ? k_contention_compute : k_contention_communication,
              .from = bench.nodes()[cell.from].id,
              .bytes = cell.bytes,
              .threads = static_cast<int>(cell.threads),
              .operation = cell.kind ? cell.kind->name() : "",
              .state = cell.bytes > 0 ? "cold" : ""};
  describe_traffic(key, cell.traffic == Traffic::sum, bench.nodes()[cell.to].id);
  // What one of them takes decides how many there can be: a product of 1000 x 1000 some 0.1 s.
  const bool slow = cell.of_compute && !cell.kind->embedding && cell.kind->size > 500;
  const bool turns = places(bench, cell.from, cell.threads).same_cores;
  const bool large = cell.bytes >= 100 * k_mib;
  return {.key = std::move(key),
          .visit = Seconds(slow || turns ? 0.3
                           : large       ? 0.15
                                         : 0.04),
          .measure = [cell](Cell& measured, Seconds budget) { cell.measure(measured, budget); }};
}

/// Usually one of each kind, thoroughly all.
std::vector<ComputeKind> kinds_of(const Workbench& bench) {
  return bench.thorough() ? std::vector(k_kinds.begin(), k_kinds.end())
                          : std::vector{k_kinds.front(), k_kinds.back()};
}

/// What is asked of one pair of nodes and one number of threads.
void add_plans(Workbench& bench, std::vector<CellPlan>& plans, ContentionCell cell,
               const std::vector<Traffic>& traffics) {
  constexpr std::array<std::uint64_t, 3> k_sizes{k_mib, 10 * k_mib, 100 * k_mib};
  for (const Traffic traffic : traffics) {
    cell.traffic = traffic;
    for (const std::uint64_t bytes : k_sizes) {
      if (bytes != k_sizes[1] && !bench.thorough()) {
        continue;
      }
      cell.bytes = bytes;
      cell.of_compute = false;
      cell.kind.reset();
      plans.push_back(contention_plan(bench, cell));
      for (const ComputeKind& kind : kinds_of(bench)) {
        cell.kind = kind;
        for (const bool of_compute : {false, true}) {
          cell.of_compute = of_compute;
          plans.push_back(contention_plan(bench, cell));
        }
      }
    }
  }
}

} // namespace

std::string ComputeKind::name() const {
  return fmt::format("{}_{}", embedding ? "embedding" : "gemm", size);
}

void describe_traffic(CellKey& key, bool sum, const std::string& to) {
  if (key.bytes > 0 && sum) {
    key.sources = 2;
    key.dtype = name_of(DType::fp32);
  } else if (key.bytes > 0) {
    key.to = to;
    key.direction = k_one_way;
  }
}

Campaign contention_campaign(Workbench& bench) {
  Campaign campaign{
      .name = "contention",
      .begin =
          [&bench] {
            const std::span<std::byte> sources = bench.memory(0, k_sources, bench.cold_bytes(0));
            bench.team(bench.cpus_near(0, 1)).run([&](std::size_t) { fill_sources(sources); });
          },
      .last = true};
  const std::size_t all = bench.cpus_near(0, SIZE_MAX).size();
  const std::size_t some = std::max<std::size_t>(all / 4, 1);
  for (const std::size_t threads :
       all > 1 && bench.thorough() ? std::vector{some, all} : std::vector{some}) {
    ContentionCell cell{bench, Traffic::copy, 0, 0, threads, 0, std::nullopt, true};
    for (const ComputeKind& kind : kinds_of(bench)) {
      cell.kind = kind;
      campaign.plans.push_back(contention_plan(bench, cell));
    }
    add_plans(bench, campaign.plans, cell, {Traffic::sum, Traffic::copy});
    if (bench.nodes().size() > 1 && bench.thorough()) {
      cell.to = 1; // the others are as far, or farther
      add_plans(bench, campaign.plans, cell, {Traffic::copy});
    }
  }
  return campaign;
}

} // namespace reckon
