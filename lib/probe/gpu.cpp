// SPDX-License-Identifier: Apache-2.0
#include "probe/gpu.hpp"

#include "core/error.hpp"
#include "documents/cells.hpp"
#include "kernels/cuda_probe.hpp"
#include "kernels/reduce.hpp"
#include "probe/gpu_places.hpp"
#include "probe/gpu_timer.hpp"
#include "stats/random.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <utility>

namespace reckon {
namespace {

using Copy = GpuCopy;
using End = GpuPlaces::End;
using Engine = GpuCopy::Engine;
using Places = std::shared_ptr<GpuPlaces>;

/// Measures copies that run at once. Seconds, or the rate of all together.
void measure_copies(GpuPlaces& places, const std::vector<Copy>& copies, Cell& cell,
                    Seconds budget) {
  const Seconds since = places.bench().clock().now();
  std::vector<GpuTimer::Flow> flows;
  bool gated = true;
  std::uint64_t bytes = 0;
  for (const Copy& copy : copies) {
    settle_access(places, copy);
    flows.push_back(flow_of(places, copy));
    places.spoil(copy.to, copy.offset, copy.bytes);
    gated = gated && copy.pinned() && copy.engine != Engine::staged;
    bytes += copy.bytes;
  }
  const Samples samples = places.sample(std::move(flows), gated, since, budget);
  fill_cell(cell, samples, static_cast<double>(bytes));
  if (cell.has_value() && copies.size() > 1) {
    std::string rates;
    for (std::size_t i = 0; i < copies.size(); ++i) {
      rates += fmt::format("{}{} to {} {:.2f}", i == 0 ? "" : ", ", places.id_of(copies[i].from),
                           places.id_of(copies[i].to),
                           static_cast<double>(copies[i].bytes) /
                               std::max(samples.rank_seconds[i], 1e-12) * 1e-9);
    }
    remark(cell, rates + " GB/s");
  }
  if (cell.has_value() && !gated) {
    remark(cell, "queueing is part of the time");
  }
  for (const Copy& copy : copies) {
    places.verify(cell, copy.from, copy.to, copy.offset, copy.bytes);
  }
  for (const Copy& copy : copies) {
    places.remark_placement(cell, copy.from, false);
    places.remark_placement(cell, copy.to, true);
  }
}

CellPlan copies_plan(const Places& places, const char* test, const std::string& from,
                     const std::string& to, std::vector<Copy> copies) {
  std::uint64_t bytes = 0;
  for (const Copy& copy : copies) {
    bytes = std::max(bytes, copy.bytes);
  }
  return {.key = {.test = test, .from = from, .to = to, .bytes = bytes},
          .visit = Seconds(0.03),
          .measure = [places, copies = std::move(copies)](Cell& cell, Seconds budget) {
            measure_copies(*places, copies, cell, budget);
          }};
}

CellPlan pair_plan(const Places& places, const char* test, const Copy& copy) {
  CellPlan plan =
      copies_plan(places, test, places->id_of(copy.from), places->id_of(copy.to), {copy});
  plan.key.direction = k_one_way;
  const bool two_gpus = copy.from.is_gpu && copy.to.is_gpu;
  plan.key.state = !copy.pinned()                     ? "pageable"
                   : !two_gpus                        ? "pinned"
                   : copy.engine == Engine::staged    ? "staged"
                   : copy.from.index == copy.to.index ? ""
                                                      : "peer";
  plan.key.threads = copy.blocks;
  return plan;
}

// ---------------------------------------------------------------- bandwidth

/// Both ways at once between two ends.
CellPlan two_way_plan(const Places& places, const char* test, const Copy& copy, const char* state) {
  Copy back = copy;
  std::swap(back.from, back.to);
  CellPlan plan =
      copies_plan(places, test, places->id_of(copy.from), places->id_of(copy.to), {copy, back});
  plan.key.direction = k_two_way;
  plan.key.state = state;
  return plan;
}

/// Usually what copy engines do with pinned memory, and both ways at once with the nearest node.
void add_host_plans(const Places& places, std::size_t node, std::size_t gpu,
                    std::vector<CellPlan>& plans) {
  struct Way {
    const char *down, *up;
    Engine engine;
    bool pinned, usual;
  };
  const bool thorough = places->bench().thorough();
  for (const Way& way : {Way{k_host_to_device_ce, k_device_to_host_ce, Engine::ce, true, true},
                         {k_host_to_device_sm, k_device_to_host_sm, Engine::sm, true, false},
                         {k_host_to_device_ce, k_device_to_host_ce, Engine::ce, false, false}}) {
    if (!way.usual && !thorough) {
      continue;
    }
    Copy copy{{false, node, way.pinned}, {true, gpu}, way.engine};
    copy.bytes = way.pinned ? places->large_bytes()
                            : std::min(places->large_bytes(), GpuPlaces::k_pageable_bytes);
    plans.push_back(pair_plan(places, way.down, copy));
    std::swap(copy.from, copy.to);
    plans.push_back(pair_plan(places, way.up, copy));
  }
  if (thorough || places->gpus()[gpu].near_node == node) {
    Copy both{{false, node}, {true, gpu}};
    both.bytes = places->large_bytes();
    plans.push_back(two_way_plan(places, k_host_device_two_way_ce, both, "pinned"));
  }
}

/// Usually what the source writes: directly where it can, else by way of the host.
void add_pair_plans(const Places& places, std::size_t from, std::size_t to,
                    std::vector<CellPlan>& plans) {
  struct Way {
    const char* test;
    Engine engine;
    bool by_source, usual;
  };
  const bool thorough = places->bench().thorough(), direct = places->peers(from, to);
  Copy copy{{true, from}, {true, to}};
  copy.bytes = places->large_bytes();
  if (from < to && thorough) {
    plans.push_back(two_way_plan(places, k_device_two_way_ce, copy, "peer"));
  }
  for (const Way& way : {Way{k_device_write_ce, Engine::ce, true, direct},
                         {k_device_read_ce, Engine::ce, false, false},
                         {k_device_write_sm, Engine::sm, true, false},
                         {k_device_read_sm, Engine::sm, false, false},
                         {k_device_write_ce, Engine::staged, true, !direct}}) {
    if (way.usual || thorough) {
      copy.engine = way.engine;
      copy.by_source = way.by_source;
      plans.push_back(pair_plan(places, way.test, copy));
    }
  }
}

/// All GPUs at once, each in its own part of the buffer of the NUMA node that it is next to.
void add_all_plans(const Places& places, std::vector<CellPlan>& plans) {
  const std::size_t count = places->gpus().size();
  if (count < 2) {
    return;
  }
  std::vector<Copy> down;
  std::vector<Copy> up;
  const std::uint64_t part = places->large_bytes() / count / 4096 * 4096;
  for (std::size_t gpu = 0; gpu < count; ++gpu) {
    Copy copy{{false, places->gpus()[gpu].near_node}, {true, gpu}};
    copy.offset = gpu * part;
    copy.bytes = part;
    down.push_back(copy);
    std::swap(copy.from, copy.to);
    up.push_back(copy);
  }
  const std::string& machine = places->bench().machine();
  for (const bool is_up : {false, true}) {
    plans.push_back(copies_plan(places, is_up ? k_all_to_host_ce : k_host_to_all_ce, machine,
                                machine, is_up ? up : down));
    plans.back().key.pairs = static_cast<int>(count);
    plans.back().key.state = "pinned";
  }
}

std::vector<CellPlan> bandwidth_plans(const Places& places) {
  std::vector<CellPlan> plans;
  for (std::size_t gpu = 0; gpu < places->gpus().size(); ++gpu) {
    for (std::size_t node = 0; node < places->bench().nodes().size(); ++node) {
      add_host_plans(places, node, gpu, plans);
    }
    Copy local{{true, gpu}, {true, gpu}};
    local.bytes = places->large_bytes();
    plans.push_back(pair_plan(places, k_device_local_copy, local));
    for (std::size_t other = 0; other < places->gpus().size(); ++other) {
      if (other != gpu) {
        add_pair_plans(places, gpu, other, plans);
      }
    }
  }
  add_all_plans(places, plans);
  return plans;
}

// ---------------------------------------------------------------- time by size

/// Each ordered pair of a GPU and its own NUMA node, and of two GPUs: directly where they can,
/// else, or thoroughly as well, by way of the host.
std::vector<Copy> curve_pairs(const GpuPlaces& places) {
  std::vector<Copy> pairs;
  for (std::size_t gpu = 0; gpu < places.gpus().size(); ++gpu) {
    const End host{false, places.gpus()[gpu].near_node};
    pairs.push_back({host, {true, gpu}});
    pairs.push_back({{true, gpu}, host});
    for (std::size_t other = 0; other < places.gpus().size(); ++other) {
      if (other != gpu) {
        Copy copy{{true, gpu}, {true, other}};
        if (places.peers(gpu, other)) {
          pairs.push_back(copy);
        }
        if (!places.peers(gpu, other) || places.bench().thorough()) {
          copy.engine = Engine::staged;
          pairs.push_back(copy);
        }
      }
    }
  }
  return pairs;
}

std::vector<CellPlan> curve_plans(const Places& places) {
  std::vector<CellPlan> plans;
  const bool thorough = places->bench().thorough();
  for (Copy copy : curve_pairs(*places)) {
    for (std::uint64_t size = 4096; size <= places->large_bytes(); size *= thorough ? 2 : 16) {
      copy.bytes = size;
      plans.push_back(pair_plan(places, k_gpu_copy, copy));
      plans.back().visit = Seconds(0.01);
    }
  }
  return plans;
}

// ---------------------------------------------------------------- latency

constexpr std::uint64_t k_link_bytes = 128;
constexpr std::uint64_t k_chain_bytes = 2 * k_mib;

/// One cycle through all lines in random order; the place of a line is its first 32-bit word.
std::vector<std::uint32_t> random_chain(std::uint64_t bytes, std::uint64_t seed) {
  constexpr std::uint32_t k_words = k_link_bytes / 4;
  const auto lines = static_cast<std::uint32_t>(bytes / k_link_bytes);
  std::vector<std::uint32_t> order(lines);
  std::iota(order.begin(), order.end(), 0U);
  std::mt19937_64 engine(seed);
  for (std::uint32_t i = lines; i > 2; --i) { // line 0 stays first
    std::swap(order[i - 1], order[1 + uniform_index(engine, i - 1)]);
  }
  std::vector<std::uint32_t> chain(static_cast<std::size_t>(lines) * k_words, 0);
  for (std::uint32_t i = 0; i < lines; ++i) {
    chain[order[i] * std::size_t{k_words}] = order[(i + 1) % lines] * k_words;
  }
  return chain;
}

void measure_latency(GpuPlaces& places, std::size_t gpu, End memory, Cell& cell, Seconds budget) {
  Workbench& bench = places.bench();
  GpuLibrary& library = places.library();
  const Seconds since = bench.clock().now();
  if (memory.is_gpu && memory.index != gpu) {
    Copy access{{true, gpu}, memory};
    settle_access(places, access);
  }
  std::byte* const chain = places.target(memory);
  const std::uint64_t bytes = std::min(k_chain_bytes, places.large_bytes());
  const std::vector<std::uint32_t> links = random_chain(bytes, bench.seed());
  const auto* const raw = reinterpret_cast<const std::byte*>(links.data());
  if (memory.is_gpu) {
    const int device = places.gpus()[memory.index].device;
    const GpuOwned<GpuStream> stream(library, library.make_stream(device));
    check_gpu(library, library.copy(chain, raw, bytes, stream.get()), "cudaMemcpyAsync");
    check_gpu(library, library.synchronize(stream.get()), "cudaMemcpyAsync");
  } else {
    std::memcpy(chain, raw, bytes);
  }
  const std::uint64_t steps = bytes / k_link_bytes;
  Samples samples = places.sample({{places.gpus()[gpu].device,
                                    [&library, chain, steps](GpuStream stream) {
                                      return library.chase(chain, steps, stream);
                                    }}},
                                  true, since, budget);
  divide(samples, steps);
  fill_cell(cell, samples, 0);
}

CellPlan latency_plan(const Places& places, std::size_t gpu, End memory) {
  return {.key = {.test = memory.is_gpu ? k_device_device_latency : k_host_device_latency,
                  .from = places->gpus()[gpu].id,
                  .to = places->id_of(memory),
                  .bytes = std::min(k_chain_bytes, places->large_bytes())},
          .visit = Seconds(0.015),
          .measure = [places, gpu, memory](Cell& cell, Seconds budget) {
            measure_latency(*places, gpu, memory, cell, budget);
          }};
}

std::vector<CellPlan> latency_plans(const Places& places) {
  std::vector<CellPlan> plans;
  for (std::size_t gpu = 0; gpu < places->gpus().size(); ++gpu) {
    for (std::size_t node = 0; node < places->bench().nodes().size(); ++node) {
      if (node == places->gpus()[gpu].near_node || places->bench().thorough()) {
        plans.push_back(latency_plan(places, gpu, {false, node}));
      }
    }
    for (std::size_t other = 0; other < places->gpus().size(); ++other) {
      plans.push_back(latency_plan(places, gpu, {true, other}));
    }
  }
  return plans;
}

// ---------------------------------------------------------------- kernels

CellPlan blocks_plan(const Places& places, const Copy& copy) {
  CellPlan plan = pair_plan(places, k_gpu_copy_blocks, copy);
  plan.visit = Seconds(0.015);
  return plan;
}

/// Ordinary numbers that differ from place to place, whether read as fp32, fp16 or bf16.
std::vector<std::byte> numbers(std::uint64_t bytes, std::uint64_t seed) {
  std::vector<std::byte> memory(bytes);
  for (std::uint64_t i = 0; i + 2 <= bytes; i += 2) {
    const auto half = static_cast<std::uint16_t>(0x3c00U | (gpu_pattern_word(i, seed) & 0xFFU));
    std::memcpy(memory.data() + i, &half, 2);
  }
  return memory;
}

/// Compares one sum of the GPU with the processor's kernel, bit for bit.
void verify_sum(GpuPlaces& places, std::size_t gpu, DType dtype, int sources, Cell& cell) {
  constexpr std::uint64_t k_bytes = 64 * 1024;
  GpuLibrary& library = places.library();
  const GpuOwned<GpuStream> stream(library, library.make_stream(places.gpus()[gpu].device));
  std::byte* const memory = places.target({true, gpu});
  const auto count = static_cast<std::size_t>(sources);
  std::vector<std::vector<std::byte>> operands;
  std::vector<const void*> there;
  std::vector<const void*> here;
  for (std::size_t s = 0; s < count; ++s) {
    operands.push_back(numbers(k_bytes, s));
    there.push_back(memory + s * k_bytes);
    here.push_back(operands[s].data());
    check_gpu(library,
              library.copy(memory + s * k_bytes, operands[s].data(), k_bytes, stream.get()),
              "cudaMemcpyAsync");
  }
  std::vector<std::byte> got(k_bytes);
  std::vector<std::byte> expected(k_bytes);
  check_gpu(library, library.sum(dtype, memory, there, k_bytes / size_of(dtype), 0, stream.get()),
            "the summation kernel");
  check_gpu(library, library.copy(got.data(), memory, k_bytes, stream.get()), "cudaMemcpyAsync");
  check_gpu(library, library.synchronize(stream.get()), "the summation kernel");
  sum_into(dtype, expected.data(), here, k_bytes / size_of(dtype));
  const auto [a, b] = std::mismatch(got.begin(), got.end(), expected.begin());
  if (a != got.end() && cell.has_value()) {
    discard(cell, CellStatus::mismatch,
            fmt::format("the sum differs from the processor's at byte {}", a - got.begin()));
  }
}

void measure_sum(GpuPlaces& places, std::size_t gpu, DType dtype, int sources, std::uint64_t part,
                 Cell& cell, Seconds budget) {
  GpuLibrary& library = places.library();
  const Seconds since = places.bench().clock().now();
  std::byte* const memory = places.target({true, gpu});
  const int device = places.gpus()[gpu].device;
  const auto count = static_cast<std::size_t>(sources);
  const std::uint64_t rows = places.large_bytes() / (count * part);
  if (rows == 0) {
    fail(ErrorKind::unavailable, "the operands are longer than the memory set aside");
  }
  {
    const GpuOwned<GpuStream> stream(library, library.make_stream(device));
    // 0x3c everywhere is an ordinary number in all types: denormals would measure something else.
    check_gpu(library, library.set(memory, 0x3c, places.large_bytes(), stream.get()),
              "cudaMemsetAsync");
    check_gpu(library, library.synchronize(stream.get()), "cudaMemsetAsync");
  }
  std::uint64_t row = 0; // another one each time, so that the operands are not in the L2 cache
  std::vector<const void*> from(count);
  const auto sum = [&](GpuStream stream) {
    std::byte* const first = memory + row * count * part;
    row = (row + 1) % rows;
    for (std::size_t s = 0; s < count; ++s) {
      from[s] = first + s * part;
    }
    return library.sum(dtype, first, from, part / size_of(dtype), 0, stream);
  };
  const Samples samples = places.sample({{device, sum}}, true, since, budget);
  fill_cell(cell, samples, static_cast<double>(part) * static_cast<double>(sources - 1));
  verify_sum(places, gpu, dtype, sources, cell);
}

CellPlan sum_plan(const Places& places, std::size_t gpu, DType dtype, int sources,
                  std::uint64_t part) {
  return {.key = {.test = k_gpu_reduce,
                  .from = places->gpus()[gpu].id,
                  .bytes = part,
                  .sources = sources,
                  .dtype = std::string(name_of(dtype))},
          .visit = Seconds(0.015),
          .measure = [=](Cell& cell, Seconds budget) {
            measure_sum(*places, gpu, dtype, sources, part, cell, budget);
          }};
}

std::vector<CellPlan> kernel_plans(const Places& places) {
  std::vector<CellPlan> plans;
  const bool thorough = places->bench().thorough();
  for (std::size_t gpu = 0; gpu < places->gpus().size(); ++gpu) {
    for (const DType dtype : {DType::fp32, DType::fp16, DType::bf16}) {
      for (const int sources : {2, 4, 8}) {
        for (const std::uint64_t part : {k_mib, 4 * k_mib, 16 * k_mib}) {
          if (thorough || (sources != 4 && part == 4 * k_mib)) {
            plans.push_back(sum_plan(places, gpu, dtype, sources, part));
          }
        }
      }
    }
    if (!thorough) {
      continue;
    }
    const int all = places->library()
                        .devices()[static_cast<std::size_t>(places->gpus()[gpu].device)]
                        .multiprocessors;
    std::vector<Copy> ways{{{true, gpu}, {true, gpu}},
                           {{true, gpu}, {false, places->gpus()[gpu].near_node}}};
    for (std::size_t other = 0; other < places->gpus().size(); ++other) {
      if (other != gpu && places->peers(gpu, other)) {
        ways.push_back({{true, gpu}, {true, other}});
        break; // one is enough for the shape of the curve
      }
    }
    for (Copy& copy : ways) {
      copy.engine = Engine::sm;
      copy.bytes = places->large_bytes();
      for (int blocks = 1; blocks <= all;
           blocks = blocks < all ? std::min(2 * blocks, all) : all + 1) {
        copy.blocks = blocks;
        plans.push_back(blocks_plan(places, copy));
      }
    }
  }
  return plans;
}

Campaign campaign_of(const Places& places, const char* name, std::vector<CellPlan> plans,
                     bool last = false) {
  return {
      .name = name, .plans = std::move(plans), .end = [places] { places->close(); }, .last = last};
}

} // namespace

std::vector<Campaign> gpu_campaigns(GpuLibrary& library, Workbench& bench, const Topology& topology,
                                    const GpuProbeOptions& options) {
  const auto places = std::make_shared<GpuPlaces>(library, bench, topology, options);
  return {
      campaign_of(places, "GPU bandwidth", bandwidth_plans(places)),
      campaign_of(places, "GPU copies by size", curve_plans(places)),
      campaign_of(places, "GPU latency", latency_plans(places), true),
      campaign_of(places, "GPU kernels", kernel_plans(places)),
      campaign_of(places, "GPU contention", gpu_contention_plans(places), true),
      gpu_links_campaign(places, topology, options.links_time),
  };
}

} // namespace reckon
