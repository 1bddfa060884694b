// SPDX-License-Identifier: Apache-2.0
#include "probe/machine_campaigns.hpp"

#include "documents/cells.hpp"
#include "stats/random.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <new>
#include <numeric>
#include <random>
#include <unistd.h>

namespace reckon {
namespace {

// ---------------------------------------------------------------- core to core

constexpr std::size_t k_usual_cores = 4, k_most_cores = 16;
constexpr std::size_t k_addresses = 6;

/// At most so many of the cores, evenly spread over their order, which is that of the machine.
std::vector<CorePlace> chosen_cores(const Workbench& bench) {
  const std::vector<CorePlace>& all = bench.cores();
  const std::size_t count = std::min(all.size(), bench.thorough() ? k_most_cores : k_usual_cores);
  std::vector<CorePlace> chosen;
  for (std::size_t i = 0; i < count; ++i) {
    chosen.push_back(all[i * all.size() / count]);
  }
  return chosen;
}

/// The two sides of one line. Neither pauses between looks, as that would be measured, too; both
/// look at `stop`, which stays in their caches until it changes.
struct Line {
  alignas(128) std::atomic<int> turn{0};
};

void answer(Line& line, const std::atomic<bool>& stop) noexcept {
  while (!stop.load(std::memory_order_relaxed)) {
    int expected = 1;
    line.turn.compare_exchange_weak(expected, 0, std::memory_order_acq_rel,
                                    std::memory_order_relaxed);
  }
}

/// False when nobody answered before `deadline` (looked at now and then only).
bool ask(Line& line, std::uint64_t times, const Clock& clock, Seconds deadline) noexcept {
  for (std::uint64_t i = 0; i < times; ++i) {
    line.turn.store(1, std::memory_order_release);
    for (std::uint64_t looks = 1;; ++looks) {
      if (line.turn.load(std::memory_order_acquire) == 0) {
        break;
      }
      if (looks % 65536 == 0 && clock.now() > deadline) {
        return false;
      }
    }
  }
  return true;
}

void measure_pair(Workbench& bench, const CorePlace& from, const CorePlace& to, Cell& cell,
                  Seconds budget) {
  const Clock& clock = bench.clock();
  const Seconds since = clock.now();
  Team& team = bench.team({from.cpu, to.cpu});
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  // Which slice of the last-level cache a line lives in depends on its address: several pages,
  // fresh ones for each pair.
  NodeMemory memory;
  bench.team({from.cpu}).run([&](std::size_t) {
    memory =
        NodeMemory(k_addresses * page, bench.nodes()[from.node].os_node, NodeMemory::Pages::small);
  });
  std::mt19937_64 engine(bench.seed());
  Samples all;
  bool answered = true;
  for (std::size_t a = 0; a < k_addresses && answered && !all.interrupted; ++a) {
    const std::size_t offset = a * page + 128 * uniform_index(engine, page / 128);
    Line& line = *new (memory.bytes().data() + offset) Line;
    SampleLimits limits;
    limits.budget = std::max(
        (budget - (clock.now() - since)) / static_cast<double>(k_addresses - a), Seconds(0.002));
    limits.warm_up_time = Seconds(0.001);
    limits.timer_step = bench.timer_step();
    // A processor that others share may come back after many slices only.
    const Seconds deadline = clock.now() + 4 * limits.budget + Seconds(2);
    Sampler sampler(limits, clock, bench.interrupted());
    std::atomic<bool> stop{false};
    team.run([&](std::size_t rank) noexcept {
      if (rank == 1) {
        answer(line, stop);
        return;
      }
      while (!sampler.done()) {
        const Seconds begin = clock.now();
        if (!ask(line, sampler.batch(), clock, deadline)) {
          answered = false;
          break;
        }
        sampler.add(clock.now() - begin);
      }
      stop.store(true, std::memory_order_relaxed);
    });
    for (const double round_trip : sampler.samples()) {
      all.seconds.push_back(round_trip / 2);
    }
    all.batch = std::max(all.batch, sampler.batch());
    all.interrupted = sampler.interrupted();
  }
  if (!answered) {
    discard(cell, CellStatus::timeout,
            fmt::format("processor {} did not answer: something else runs there", to.cpu));
    return;
  }
  fill_cell(cell, all, 0);
  if (const std::string doubt = memory.placement().doubt; !doubt.empty()) {
    remark(cell, CellStatus::noisy, doubt);
  }
}

// ---------------------------------------------------------------- pointer chase

constexpr std::size_t k_line = 64;
constexpr std::uint64_t k_smallest = 16 << 10U;
constexpr std::uint64_t k_steps = 512; // of one operation

void** follow(void** place) noexcept {
  for (std::uint64_t i = 0; i < k_steps; i += 8) {
    for (int unrolled = 0; unrolled < 8; ++unrolled) {
      place = static_cast<void**>(*place);
    }
  }
  return place;
}

/// Where chains through memory lie, which take too long to link for each visit.
constexpr std::size_t k_chains = 3;

/// Links the first `footprint` bytes of a node's memory `which`, by a thread next to `near`.
void** link_chain(Workbench& bench, std::size_t near, std::size_t node, std::size_t which,
                  std::uint64_t footprint) {
  const std::span<std::byte> memory = bench.memory(node, which, footprint).first(footprint);
  // In huge pages, any order does. In small ones, every step of a wholly random order would also
  // miss the TLB: stay within 64 pages for a while.
  const bool huge = bench.huge_fraction().value_or(0) >= 0.9;
  const std::size_t region =
      huge ? footprint : 64 * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void** first = nullptr;
  bench.team(bench.cpus_near(near, 1)).run([&](std::size_t) {
    first = build_chase(memory, region, bench.seed());
  });
  return first;
}

/// Goes on from `place`.
void measure_chase(Workbench& bench, std::size_t thread_node, std::uint64_t footprint,
                   void**& place, Cell& cell, Seconds budget) {
  const Seconds since = bench.clock().now();
  Team& team = bench.team(bench.cpus_near(thread_node, 1));
  SampleLimits limits;
  // What fits into a cache has to be brought there first.
  constexpr std::uint64_t k_largest_pass = 32 << 20U;
  limits.warm_up_operations = footprint <= k_largest_pass ? footprint / k_line / k_steps + 1 : 0;
  Samples samples = bench.sample(
      team, since, budget, [&](std::size_t, std::uint64_t) noexcept { place = follow(place); },
      limits);
  keep(place);
  divide(samples, k_steps);
  fill_cell(cell, samples, 0);
  remark(cell, to_text(Bytes(footprint)));
}

CellPlan chase_plan(Workbench& bench, std::size_t thread_node, std::size_t memory_node,
                    std::uint64_t footprint, const std::string& level) {
  return {.key = {.test = k_memory_latency,
                  .from = bench.nodes()[thread_node].id,
                  .to = bench.nodes()[memory_node].id,
                  .bytes = level.empty() ? footprint : 0,
                  .threads = 1,
                  .state = level}};
}

/// Of the home node's caches, linked anew for each visit.
CellPlan cache_plan(Workbench& bench, std::uint64_t footprint, const std::string& level) {
  CellPlan plan = chase_plan(bench, 0, 0, footprint, level);
  plan.measure = [&bench, footprint](Cell& cell, Seconds budget) {
    void** place = link_chain(bench, 0, 0, 0, footprint);
    measure_chase(bench, 0, footprint, place, cell, budget);
    bench.remark_placement(cell, 0, 0);
  };
  return plan;
}

} // namespace

void** build_chase(std::span<std::byte> memory, std::size_t region_bytes, std::uint64_t seed) {
  const std::size_t lines = memory.size() / k_line;
  const std::size_t per_region = std::clamp<std::size_t>(region_bytes / k_line, 1, lines);
  const std::size_t regions = (lines + per_region - 1) / per_region;
  std::mt19937_64 engine(seed);
  const auto shuffled = [&engine](std::size_t n) {
    std::vector<std::uint32_t> order(n);
    std::iota(order.begin(), order.end(), 0U);
    for (std::size_t i = n; i > 1; --i) {
      std::swap(order[i - 1], order[uniform_index(engine, i)]);
    }
    return order;
  };
  const auto at = [&](std::size_t line) {
    return reinterpret_cast<void**>(memory.data() + line * k_line);
  };
  void** first = nullptr;
  void** previous = nullptr;
  for (const std::uint32_t region : shuffled(regions)) {
    const std::size_t begin = region * per_region;
    for (const std::uint32_t line : shuffled(std::min(per_region, lines - begin))) {
      void** const place = at(begin + line);
      if (previous != nullptr) {
        *previous = place;
      } else {
        first = place;
      }
      previous = place;
    }
  }
  *previous = first;
  return first;
}

Campaign core_latency_campaign(Workbench& bench) {
  Campaign campaign{.name = "core to core latency", .last = true};
  const std::vector<CorePlace> cores = chosen_cores(bench);
  for (const CorePlace& from : cores) {
    for (const CorePlace& to : cores) {
      if (from.id != to.id) {
        campaign.plans.push_back({.key = {.test = k_core_to_core, .from = from.id, .to = to.id},
                                  .measure = [&bench, from, to](Cell& cell, Seconds budget) {
                                    measure_pair(bench, from, to, cell, budget);
                                  }});
      }
    }
  }
  return campaign;
}

Campaign processor_campaign(Workbench& bench) {
  std::vector<int> cpus;
  for (const CorePlace& core : bench.cores()) {
    cpus.push_back(core.cpu);
  }
  CellPlan plan{.key = {.test = k_processor_loop,
                        .from = bench.machine(),
                        .threads = static_cast<int>(cpus.size())},
                .visit = Seconds(0.3)};
  plan.measure = [&bench, cpus](Cell& cell, Seconds budget) {
    constexpr std::uint64_t k_steps = 20'000'000;
    fill_cell(cell,
              bench.sample(bench.team(cpus), bench.clock().now(), budget,
                           [](std::size_t rank, std::uint64_t) noexcept {
                             std::uint64_t x = rank;
                             for (std::uint64_t i = 0; i < k_steps; ++i) {
                               x = x * 6364136223846793005U + 1;
                               asm volatile("" : "+r"(x)); // every step must be made
                             }
                           }),
              0);
  };
  return {.name = "processors", .plans = {std::move(plan)}, .last = true};
}

Campaign memory_latency_campaign(Workbench& bench) {
  Campaign campaign{.name = "memory latency", .last = true};
  for (const auto& [level, bytes] : bench.caches()) {
    campaign.plans.push_back(
        cache_plan(bench, std::max(bytes / 2, k_smallest), fmt::format("L{}", level)));
  }
  const std::size_t nodes = bench.nodes().size();
  const auto chains = std::make_shared<std::vector<void**>>(nodes); // by memory's node
  const auto footprint = [&bench](std::size_t node) { return bench.cold_bytes(node); };
  for (std::size_t from = 0; from < nodes; ++from) {
    for (std::size_t to = 0; to < nodes && !bench.nodes()[from].cpus.empty(); ++to) {
      CellPlan& plan = campaign.plans.emplace_back(chase_plan(bench, from, to, 0, "memory"));
      plan.measure = [&bench, from, to, chains, footprint](Cell& cell, Seconds budget) {
        measure_chase(bench, from, footprint(to), (*chains)[to], cell, budget);
        bench.remark_placement(cell, to, k_chains);
      };
    }
  }
  for (std::uint64_t bytes = k_smallest; bench.thorough() && bytes < footprint(0); bytes *= 2) {
    campaign.plans.push_back(cache_plan(bench, bytes, ""));
    campaign.plans.push_back(cache_plan(bench, bytes + bytes / 2, ""));
  }
  campaign.begin = [&bench, chains, footprint] {
    for (std::size_t node = 0; node < chains->size(); ++node) {
      void**& place = (*chains)[node];
      place = place != nullptr ? place : link_chain(bench, node, node, k_chains, footprint(node));
    }
  };
  return campaign;
}

} // namespace reckon
